//! The extent of an image of which a caller gives only the address, as `cuModuleLoadData` takes it.

use super::{cubin, fatbin, ptx};

/// Copies the image at `address`, as long as it says that it is. None when nothing there says so.
///
/// # Safety
/// `address` is that of a cubin, a fat binary, the wrapper of one, or a text that ends in a zero; that is what `cuda.h` asks of
/// callers. Anything else is readable up to the first zero, or for 64 bytes.
pub(crate) unsafe fn copy(address: *const u8) -> Option<Vec<u8>> {
    // SAFETY: the first four bytes are there, or a zero before them, which `prefix` stops at.
    let magic = unsafe { prefix(address) };
    let length = if magic.as_slice() == cubin::MAGIC {
        // SAFETY: a cubin begins with a header of 64 bytes.
        let header = unsafe { std::slice::from_raw_parts(address, cubin::HEADER_BYTES) };
        cubin::length(header)?
    } else if magic.as_slice() == fatbin::MAGIC {
        // SAFETY: a fat binary begins with a header of 16 bytes.
        let header = unsafe { std::slice::from_raw_parts(address, fatbin::HEADER_BYTES) };
        fatbin::length(header)?
    } else if magic.as_slice() == fatbin::WRAPPER_MAGIC {
        // SAFETY: a wrapper is two words of four bytes and the pointer to the fat binary.
        let wrapped = unsafe { address.add(8).cast::<*const u8>().read_unaligned() };
        // SAFETY: what a wrapper points to is a fat binary.
        return unsafe { copy(wrapped) };
    } else {
        // SAFETY: what has no magic number is a text, ended by a zero.
        let text = unsafe { std::ffi::CStr::from_ptr(address.cast()) };
        return ptx::looks_like(text.to_bytes()).then(|| text.to_bytes().to_vec());
    };
    // SAFETY: the image says that it is so long.
    Some(unsafe { std::slice::from_raw_parts(address, length) }.to_vec())
}

/// The first four bytes, or fewer where a zero ends them.
///
/// # Safety
/// The bytes up to the first zero, or four, can be read.
unsafe fn prefix(address: *const u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4);
    for index in 0..4 {
        // SAFETY: no zero came before this byte.
        let byte = unsafe { address.add(index).read() };
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    bytes
}
