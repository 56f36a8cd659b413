//! The shapes of launches, in plain Rust, so that `cargo test` tests them without a GPU.

/// Threads of each block: a power of two.
pub const THREADS: u32 = 256;

/// More blocks than this keep no GPU busier; their threads go on with further elements.
const MOST_BLOCKS: usize = 4096;

/// Blocks for `items` elements, with `each` of them for a block. There is always one, since a grid is not empty.
pub fn blocks(items: usize, each: u32) -> u32 {
    let blocks = items.div_ceil(each as usize).clamp(1, MOST_BLOCKS);
    u32::try_from(blocks).expect("a few thousand")
}

/// Dynamic shared memory of a block in which each thread has a double.
pub fn doubles_bytes() -> u32 {
    THREADS * size_of::<f64>() as u32
}
