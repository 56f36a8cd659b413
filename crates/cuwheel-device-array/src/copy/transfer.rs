//! Strided copies by the driver.

use cudarc::driver::sys;

use super::dimensions::{Blocks, Dimension};
use crate::{Driver, DriverError, Stream};

/// Which of two sides the driver does not know by their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The destination is ordinary host memory.
    Destination,
    /// The source is ordinary host memory.
    Source,
    /// Neither is.
    Neither,
}

/// Puts the copies of all blocks into a stream, as few as there can be.
///
/// # Safety
/// The context of the stream's device is current. Both sides are memory for all blocks until the stream has done the
/// copies, and what other streams do with it is ordered.
pub(super) unsafe fn copy(driver: &Driver, mut blocks: Blocks, host: Host, stream: &Stream) -> Result<(), DriverError> {
    let rows = blocks.take_rows();
    let width = blocks.width.unsigned_abs();
    blocks.try_for_each(|destination, source| {
        // SAFETY: the caller's promise; these are some of the blocks.
        unsafe {
            match rows {
                None => driver.cuMemcpyAsync(destination, source, to_usize(width), stream.raw()),
                Some(rows) => {
                    let copy = copy_of_rows(destination, source, width, rows, host);
                    driver.cuMemcpy2DAsync_v2(&raw const copy, stream.raw())
                }
            }
        }
    })
}

fn copy_of_rows(destination: u64, source: u64, width: u64, rows: Dimension, host: Host) -> sys::CUDA_MEMCPY2D {
    let memory = |is_host| {
        if is_host { sys::CUmemorytype::CU_MEMORYTYPE_HOST } else { sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED }
    };
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: memory(host == Host::Source),
        srcHost: std::ptr::with_exposed_provenance(to_usize(source)),
        srcDevice: source,
        srcArray: std::ptr::null_mut(),
        srcPitch: to_usize(rows.source.unsigned_abs()),
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: memory(host == Host::Destination),
        dstHost: std::ptr::with_exposed_provenance_mut(to_usize(destination)),
        dstDevice: destination,
        dstArray: std::ptr::null_mut(),
        dstPitch: to_usize(rows.destination.unsigned_abs()),
        WidthInBytes: to_usize(width),
        Height: to_usize(rows.size.unsigned_abs()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the machines that CUDA runs on have 64 bits")]
fn to_usize(number: u64) -> usize {
    number as usize
}
