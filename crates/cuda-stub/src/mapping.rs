//! Address space of this process: ranges that are reserved, and the parts of them that hold bytes. Moves of bytes between
//! addresses are here too. Which addresses are meant is not decided here.

use std::ptr::{self, NonNull};

/// The unit of protection.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A range of addresses that belongs to this value until it is dropped.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is a range of the process, not of a thread; whoever holds the value owns the range.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves addresses that nobody can read or write. None when the process may not have so many.
    pub(crate) fn reserve(length: u64) -> Option<Self> {
        Self::map(length, libc::PROT_NONE)
    }

    /// Zeroed bytes that take up memory only where they are touched.
    pub(crate) fn anonymous(length: u64) -> Option<Self> {
        Self::map(length, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn map(length: u64, protection: i32) -> Option<Self> {
        let length = usize::try_from(length).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED { None } else { Some(Self { start: NonNull::new(start.cast())?, length }) }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    pub(crate) fn length(&self) -> u64 {
        self.length as u64
    }

    pub(crate) fn pointer(&self, offset: u64) -> *mut u8 {
        self.start.as_ptr().wrapping_add(usize::try_from(offset).unwrap_or(usize::MAX))
    }

    /// Makes whole pages of the range readable and writable; they read as zero. False when memory is short.
    pub(crate) fn open(&mut self, offset: u64, length: u64) -> bool {
        self.protect(offset, length, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Forgets the bytes of whole pages and refuses further access.
    pub(crate) fn close(&mut self, offset: u64, length: u64) {
        assert!(offset + length <= self.length(), "pages lie in the mapping");
        // SAFETY: the pages lie in this mapping, which is anonymous and private, and which this value owns.
        unsafe { libc::madvise(self.pointer(offset).cast(), crate::index(length), libc::MADV_DONTNEED) };
        self.protect(offset, length, libc::PROT_NONE);
    }

    fn protect(&mut self, offset: u64, length: u64, protection: i32) -> bool {
        assert!(offset + length <= self.length(), "pages lie in the mapping");
        // SAFETY: the pages lie in this mapping, which this value owns.
        unsafe { libc::mprotect(self.pointer(offset).cast(), crate::index(length), protection) == 0 }
    }

    /// Fills bytes with what memory that nobody wrote is to be known by. They are of an anonymous mapping, or opened.
    pub(crate) fn poison(&mut self, offset: u64, length: u64, byte: u8) {
        assert!(offset + length <= self.length(), "bytes lie in the mapping");
        // SAFETY: the range lies in this mapping, and the caller opened it: were it closed, the process would end here.
        unsafe { ptr::write_bytes(self.pointer(offset), byte, crate::index(length)) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owned the range; what points into it is resolved anew for each use.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Copies `length` bytes; the ranges may overlap.
///
/// # Safety
/// `source` is valid for reads and `destination` for writes of `length` bytes.
pub(crate) unsafe fn copy(destination: *mut u8, source: *const u8, length: u64) {
    // SAFETY: the caller's promise.
    unsafe { ptr::copy(source, destination, crate::index(length)) };
}

/// Writes `pattern` `length / pattern.len()` times.
///
/// # Safety
/// `destination` is valid for writes of `length` bytes.
pub(crate) unsafe fn fill(destination: *mut u8, pattern: &[u8], length: u64) {
    // SAFETY: the caller's promise; the bytes are written before they are read, and no reference outlives the call.
    let bytes = unsafe {
        ptr::write_bytes(destination, pattern[0], crate::index(length));
        std::slice::from_raw_parts_mut(destination, crate::index(length))
    };
    if pattern.len() > 1 {
        for chunk in bytes.chunks_exact_mut(pattern.len()) {
            chunk.copy_from_slice(pattern);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_pages_hold_bytes_and_closed_ones_lose_them() {
        let mut mapping = Mapping::reserve(16 * PAGE_BYTES).unwrap();
        let offset = 2 * PAGE_BYTES;
        for _ in 0..2 {
            assert!(mapping.open(offset, PAGE_BYTES));
            let place = mapping.pointer(offset);
            // SAFETY: the page was just opened.
            unsafe {
                assert_eq!(place.read(), 0);
                fill(place, &[1, 2, 3], 9);
                copy(place.add(1), place, 3);
                assert_eq!(std::slice::from_raw_parts(place, 6), [1, 1, 2, 3, 2, 3]);
            }
            mapping.close(offset, PAGE_BYTES);
        }
    }
}
