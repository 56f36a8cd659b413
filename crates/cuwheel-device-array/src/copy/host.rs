//! Strided copies by the processor.

use std::convert::Infallible;

use super::Place;
use super::dimensions::{Blocks, Lead};

/// Copies elements of `item` bytes from `source` to `destination`, which have the same shape.
///
/// # Safety
/// Both are memory that the processor can read, and write at the destination, for all elements. They do not overlap.
pub(super) unsafe fn copy(destination: &Place<'_>, source: &Place<'_>, item: i64) {
    let Some(mut blocks) = Blocks::new(destination, source, item, Lead::Destination) else { return };
    // Elements that lie in a row are the inner loop, not a call for each.
    let inner = blocks.dimensions.pop();
    let width = usize::try_from(blocks.width).unwrap_or(0);
    let (count, to_step, from_step) = inner.map_or((1, 0, 0), |inner| (inner.size, inner.destination, inner.source));
    let Ok(()) = blocks.try_for_each::<Infallible>(|to, from| {
        let row = Row { to: pointer(to).cast_mut(), from: pointer(from), count, to_step, from_step };
        // SAFETY: the caller promises memory for all elements, and these are some of them.
        unsafe {
            match width {
                1 => row.copy::<1>(),
                2 => row.copy::<2>(),
                4 => row.copy::<4>(),
                8 => row.copy::<8>(),
                16 => row.copy::<16>(),
                _ => row.copy_blocks(width),
            }
        }
        Ok(())
    });
}

/// An address as a pointer. The memory was passed in as a number, or allocated with its provenance exposed.
#[expect(clippy::cast_possible_truncation, reason = "the memory is the processor's, so its addresses are")]
fn pointer(address: u64) -> *const u8 {
    std::ptr::with_exposed_provenance(address as usize)
}

/// Blocks at regular distances, in bytes.
struct Row {
    to: *mut u8,
    from: *const u8,
    count: i64,
    to_step: i64,
    from_step: i64,
}

impl Row {
    /// Copies blocks of `WIDTH` bytes.
    ///
    /// # Safety
    /// As for [`copy`](copy()).
    unsafe fn copy<const WIDTH: usize>(self) {
        // SAFETY: the caller's promise; a width that is known is copied in registers.
        unsafe { self.copy_blocks(WIDTH) }
    }

    /// Copies blocks of `width` bytes.
    ///
    /// # Safety
    /// As for [`copy`](copy()).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the loop is made for each width that is a constant")]
    #[expect(clippy::cast_possible_truncation, reason = "the steps are inside of the processor's address space")]
    unsafe fn copy_blocks(self, width: usize) {
        let (mut to, mut from) = (self.to, self.from);
        for _ in 0..self.count {
            // SAFETY: the caller promises memory for all elements, which the sides do not share.
            unsafe { from.copy_to_nonoverlapping(to, width) };
            to = to.wrapping_offset(self.to_step as isize);
            from = from.wrapping_offset(self.from_step as isize);
        }
    }
}
