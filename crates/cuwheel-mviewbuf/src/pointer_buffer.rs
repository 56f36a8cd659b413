//! Memory known only by its address and length. Says whether the two can belong together; never touches the memory.

use std::num::NonZeroUsize;

use thiserror::Error;

/// An address and a length in bytes that memory can have: not null, not negative, inside the address space.
///
/// Whether such memory exists, and for how long, only the owner of the memory knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerBuffer {
    address: NonZeroUsize,
    size_bytes: isize,
}

/// Why an address and a length do not describe memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PointerBufferError {
    /// The length is below zero.
    #[error("negative buffer size")]
    NegativeSize,
    /// The address is zero.
    #[error("null buffer pointer")]
    NullPointer,
    /// The end of the memory is not an address.
    #[error("a buffer of {size_bytes} bytes at address {address:#x} ends outside the address space")]
    OutsideAddressSpace {
        /// The address of the first byte.
        address: usize,
        /// The length.
        size_bytes: isize,
    },
}

impl PointerBuffer {
    /// Checks that memory of `size_bytes` bytes can lie at `address`.
    pub fn new(address: usize, size_bytes: isize) -> Result<Self, PointerBufferError> {
        if size_bytes < 0 {
            return Err(PointerBufferError::NegativeSize);
        }
        let address = NonZeroUsize::new(address).ok_or(PointerBufferError::NullPointer)?;
        if address.get().checked_add_signed(size_bytes).is_none() {
            return Err(PointerBufferError::OutsideAddressSpace { address: address.get(), size_bytes });
        }
        Ok(Self { address, size_bytes })
    }

    /// The address of the first byte.
    #[must_use]
    pub fn address(self) -> NonZeroUsize {
        self.address
    }

    /// The length in bytes, zero or more.
    #[must_use]
    pub fn size_bytes(self) -> isize {
        self.size_bytes
    }
}
