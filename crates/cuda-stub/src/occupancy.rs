//! How many blocks of a kernel a multiprocessor holds.

use crate::device::{
    BLOCKS_PER_MULTIPROCESSOR, MOST_THREADS_PER_BLOCK, MULTIPROCESSORS, REGISTERS_PER_MULTIPROCESSOR,
    SHARED_BYTES_PER_MULTIPROCESSOR, SHARED_BYTES_RESERVED_PER_BLOCK, THREADS_PER_MULTIPROCESSOR, WARP,
};
use crate::image::Kernel;

/// Registers are given to warps in units of so many.
const REGISTER_UNIT: u32 = 256;

/// Blocks of `threads` threads that fit at once; zero when not even one does.
pub(crate) fn blocks_per_multiprocessor(kernel: &Kernel, threads: u32, dynamic_shared_bytes: u32) -> u32 {
    if threads == 0 || threads > MOST_THREADS_PER_BLOCK {
        return 0;
    }
    let warps = threads.div_ceil(WARP);
    let by_threads = THREADS_PER_MULTIPROCESSOR / (warps * WARP);
    let registers = warps * (kernel.registers * WARP).next_multiple_of(REGISTER_UNIT);
    let by_registers = REGISTERS_PER_MULTIPROCESSOR.checked_div(registers).unwrap_or(BLOCKS_PER_MULTIPROCESSOR);
    let shared =
        kernel.shared_bytes.saturating_add(dynamic_shared_bytes).saturating_add(SHARED_BYTES_RESERVED_PER_BLOCK);
    let by_shared = SHARED_BYTES_PER_MULTIPROCESSOR / shared;
    by_threads.min(by_registers).min(by_shared).min(BLOCKS_PER_MULTIPROCESSOR)
}

/// The smallest grid and the block size with the most threads at once, for blocks of at most `limit` threads (0: no limit).
pub(crate) fn best_block(kernel: &Kernel, shared: impl Fn(u32) -> u32, limit: u32) -> (u32, u32) {
    let most = if limit == 0 { MOST_THREADS_PER_BLOCK } else { limit.min(MOST_THREADS_PER_BLOCK) };
    let sizes = (1..=most.div_ceil(WARP)).rev().map(|warps| (warps * WARP).min(most));
    let measured = sizes.map(|size| (size, blocks_per_multiprocessor(kernel, size, shared(size))));
    // Of equal ones the larger block is kept, which comes first.
    let best = measured.reduce(|best, next| if next.0 * next.1 > best.0 * best.1 { next } else { best });
    best.map_or((0, 0), |(size, blocks)| (blocks * MULTIPROCESSORS, size))
}

/// Dynamic shared memory that `blocks` blocks at once can each have.
pub(crate) fn shared_bytes_for(kernel: &Kernel, blocks: u32) -> u32 {
    let share = SHARED_BYTES_PER_MULTIPROCESSOR.checked_div(blocks).unwrap_or(0);
    share.saturating_sub(SHARED_BYTES_RESERVED_PER_BLOCK).saturating_sub(kernel.shared_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_decides() {
        let kernel = |registers, shared_bytes| Kernel { name: "k".into(), parameters: None, registers, shared_bytes };
        for (kernel, threads, dynamic, blocks) in [
            (kernel(16, 0), 1024, 0, 2),
            (kernel(16, 0), 32, 0, 32),
            (kernel(64, 0), 1024, 0, 1),
            (kernel(255, 0), 1024, 0, 0),
            (kernel(16, 0), 32, 99 << 10, 2),
            (kernel(16, 48 << 10), 32, 0, 4),
            (kernel(16, 0), 1025, 0, 0),
        ] {
            assert_eq!(blocks_per_multiprocessor(&kernel, threads, dynamic), blocks, "{kernel:?} {threads} {dynamic}");
        }
        assert_eq!(best_block(&kernel(32, 0), |_| 0, 0), (264, 1024));
        assert_eq!(best_block(&kernel(32, 0), |_| 0, 100), (132 * 32, 64));
        assert_eq!(shared_bytes_for(&kernel(16, 0), 2), 115_712);
    }
}
