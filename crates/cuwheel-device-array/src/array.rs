//! Arrays: memory somewhere, and everything there is to know about it without touching it.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::{Allocation, DType, Device, Error, Layout, LayoutError, MemoryKind, Order, Stream};

/// What an [`Array`] is made of, beside the owner of its memory.
#[derive(Debug, Clone)]
pub struct ArrayParts {
    /// The address of the first element, which is not the lowest one when a stride is negative. Ignored without elements.
    pub pointer: u64,
    /// Shape and strides, made for `dtype`.
    pub layout: Layout,
    /// The type of the elements.
    pub dtype: DType,
    /// The kind of the memory.
    pub kind: MemoryKind,
    /// The device that the memory is on or belongs to; device 0 when it belongs to none.
    pub device: Device,
    /// The stream in whose order the memory is used.
    pub stream: Stream,
    /// Whether the elements must not be written through this array.
    pub read_only: bool,
}

/// A strided array in memory of any kind, together with what keeps the memory alive.
///
/// Cloning and viewing share the memory. Nothing here changes once it is made, so threads can share an array freely;
/// whether its elements can be used at the same time is for streams to order.
#[derive(Clone)]
pub struct Array {
    parts: ArrayParts,
    memory: Arc<dyn Any + Send + Sync>,
}

impl Array {
    /// An array over memory that someone else owns and `keep_alive` keeps.
    ///
    /// This is what every import runs: it allocates nothing for up to five dimensions and takes a few nanoseconds. It
    /// fails when the elements would not lie in the address space.
    ///
    /// # Safety
    /// Until `keep_alive` is dropped, all bytes that `parts` describes are memory of the kind that `parts` says, on that
    /// device, and may be written unless `parts.read_only`.
    #[inline]
    pub unsafe fn borrowed(mut parts: ArrayParts, keep_alive: Arc<dyn Any + Send + Sync>) -> Result<Self, LayoutError> {
        if parts.layout.is_empty() {
            parts.pointer = 0;
        } else {
            let extents = parts.layout.extents_bytes(parts.dtype)?;
            let fits = parts.pointer.checked_add_signed(extents.start).is_some()
                && parts.pointer.checked_add_signed(extents.end).is_some();
            if !fits {
                return Err(LayoutError::TooLarge);
            }
        }
        Ok(Self { parts, memory: keep_alive })
    }

    /// An array in new memory, whose elements are unspecified.
    ///
    /// `shape` is in elements. `stream` is the order in which the memory may be used, and is freed.
    pub fn empty(
        shape: &[i64],
        dtype: DType,
        kind: MemoryKind,
        device: Device,
        stream: &Stream,
        order: Order,
    ) -> Result<Self, Error> {
        let layout = Layout::contiguous(shape, order)?;
        let memory = Arc::new(Allocation::new(kind, layout.size_bytes(dtype)?, device, stream)?);
        let pointer = memory.address();
        let parts = ArrayParts { pointer, layout, dtype, kind, device, stream: stream.clone(), read_only: false };
        // SAFETY: the memory was allocated for just these elements, and `memory` keeps it.
        Ok(unsafe { Self::borrowed(parts, memory) }?)
    }

    /// The address of the first element; 0 without elements.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.parts.pointer
    }

    /// Shape and strides.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.parts.layout
    }

    /// The number of elements along each dimension.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        self.parts.layout.shape()
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.parts.layout.ndim()
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.parts.layout.size()
    }

    /// The bytes that the elements take without gaps between them.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        // The extents were found to fit, but elements of a broadcast array may count more than once.
        self.parts.layout.size_bytes(self.parts.dtype).unwrap_or(usize::MAX)
    }

    /// The half-open range of addresses that the elements cover; `0..0` without elements.
    pub fn addresses(&self) -> Range<u64> {
        let Self { parts: ArrayParts { pointer, layout, dtype, .. }, .. } = self;
        // `borrowed` made sure that neither end leaves the address space.
        layout.extents_bytes(*dtype).map_or(0..0, |extents| {
            pointer.wrapping_add_signed(extents.start)..pointer.wrapping_add_signed(extents.end)
        })
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.parts.dtype
    }

    /// The kind of the memory.
    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.parts.kind
    }

    /// The device that the memory is on or belongs to.
    #[inline]
    pub fn device(&self) -> Device {
        self.parts.device
    }

    /// The stream in whose order the memory is used.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.parts.stream
    }

    /// Whether the elements must not be written through this array.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.parts.read_only
    }

    /// What keeps the memory alive.
    #[inline]
    pub fn memory(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.memory
    }

    /// The same memory, not to be written through the result.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.parts.read_only = true;
        self
    }

    /// The same memory, used in the order of another stream. The caller sees to the order of the two.
    #[must_use]
    pub fn with_stream(mut self, stream: Stream) -> Self {
        self.parts.stream = stream;
        self
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.fmt(formatter)
    }
}
