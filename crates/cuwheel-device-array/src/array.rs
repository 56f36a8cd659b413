//! Arrays: memory somewhere, and everything there is to know about it without touching it.

mod described;
mod views;

use std::any::Any;
use std::ops::{Deref, Range};
use std::sync::Arc;

pub use described::Described;

use crate::{
    Allocation, DType, Device, Dims, DriverError, Error, Layout, LayoutError, MemoryKind, Order, Stream,
    pointer_attributes,
};

/// What an [`ArrayView`] is made of.
// What a launch looks at comes first, so that it lies together in the processor's caches.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct ArrayParts {
    /// The address of the first element, which is not the lowest one when a stride is negative. Ignored without
    /// elements.
    pub pointer: u64,
    /// The type of the elements.
    pub dtype: DType,
    /// The device that the memory is on or belongs to; device 0 when it belongs to none.
    pub device: Device,
    /// The kind of the memory.
    pub kind: MemoryKind,
    /// Whether the elements must not be written through this array.
    pub read_only: bool,
    /// The stream in whose order the memory is used.
    pub stream: Stream,
    /// Shape and strides, made for `dtype`.
    pub layout: Layout,
}

/// A description of a strided array in memory of any kind: everything but a hold on the memory.
///
/// Nothing here touches the memory or promises that it exists. Nothing changes once it is made.
#[derive(Debug, Clone)]
pub struct ArrayView(ArrayParts);

/// A strided array in memory of any kind: its description, to which it dereferences, and what keeps the memory alive.
///
/// Cloning and viewing share the memory. Nothing here changes once it is made, so threads can share an array freely;
/// whether its elements can be used at the same time is for streams to order.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Array {
    view: ArrayView,
    memory: Arc<dyn Any + Send + Sync>,
}

impl ArrayView {
    /// The array that `parts` describes.
    ///
    /// Fails when the elements would not lie in the address space.
    #[inline]
    pub fn new(mut parts: ArrayParts) -> Result<Self, LayoutError> {
        if parts.layout.is_empty() {
            parts.pointer = 0;
        } else {
            check_addresses(parts.pointer, parts.layout.extents_bytes(parts.dtype)?)?;
        }
        Ok(Self(parts))
    }

    /// The address of the first element; 0 without elements.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.0.pointer
    }

    /// [`pointer`](Self::pointer), as wide as this machine's addresses: the machines that CUDA runs on have 64 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "addresses of the driver fit in those of the process")]
    pub fn address(&self) -> usize {
        self.0.pointer as usize
    }

    /// Shape and strides.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The number of elements along each dimension.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        self.0.layout.shape()
    }

    /// The strides in elements, if they are whole numbers; kept, not computed.
    #[inline]
    pub fn strides_elements(&self) -> Option<&[i64]> {
        self.0.layout.strides_elements()
    }

    /// The strides in bytes.
    ///
    /// # Errors
    /// Packed elements have none.
    pub fn strides_bytes(&self) -> Result<Dims, LayoutError> {
        self.0.layout.strides_bytes(self.0.dtype)
    }

    /// Whether the elements lie one beside the other with the last index varying fastest.
    #[inline]
    pub fn is_c_contiguous(&self) -> bool {
        self.0.layout.is_c_contiguous()
    }

    /// Whether the elements lie one beside the other with the first index varying fastest.
    #[inline]
    pub fn is_f_contiguous(&self) -> bool {
        self.0.layout.is_f_contiguous()
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.0.layout.ndim()
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.0.layout.size()
    }

    /// The bytes that the elements take without gaps between them.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        // The extents were found to fit, but elements of a broadcast array may count more than once.
        self.0.layout.size_bytes(self.0.dtype).unwrap_or(usize::MAX)
    }

    /// The half-open range of addresses that the elements cover; `0..0` without elements.
    pub fn addresses(&self) -> Range<u64> {
        let Self(ArrayParts { pointer, layout, dtype, .. }) = self;
        // `new` made sure that neither end leaves the address space.
        layout.extents_bytes(*dtype).map_or(0..0, |extents| {
            pointer.wrapping_add_signed(extents.start)..pointer.wrapping_add_signed(extents.end)
        })
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The kind of the memory.
    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.0.kind
    }

    /// The device that the memory is on or belongs to.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The stream in whose order the memory is used.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.0.stream
    }

    /// Whether the elements must not be written through this array.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// The same memory, not to be written through the result.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.0.read_only = true;
        self
    }

    /// The same memory, used in the order of another stream. The caller sees to the order of the two.
    #[must_use]
    pub fn with_stream(mut self, stream: Stream) -> Self {
        self.0.stream = stream;
        self
    }

    /// The same memory, with the kind and the device that the driver knows its address by, where the description may
    /// not say: DLPack has no device numbers for memory that the host sees, and the CUDA array interface has no kinds.
    ///
    /// Without elements nothing is asked, and nothing changes for memory that the driver does not know.
    pub fn located(mut self) -> Result<Self, DriverError> {
        if self.0.pointer == 0 {
            return Ok(self);
        }
        let known = pointer_attributes(self.0.pointer)?;
        let Some(device) = known.device else { return Ok(self) };
        self.0.device = device;
        // Mapped memory is pinned memory to the driver.
        if !(self.0.kind == MemoryKind::Mapped && known.kind == MemoryKind::Pinned) {
            self.0.kind = known.kind;
        }
        Ok(self)
    }
}

/// Makes sure that elements which cover `extents_bytes` around `pointer` lie in the address space.
#[inline]
fn check_addresses(pointer: u64, extents_bytes: Range<i64>) -> Result<(), LayoutError> {
    let fits = pointer.checked_add_signed(extents_bytes.start).is_some()
        && pointer.checked_add_signed(extents_bytes.end).is_some();
    if fits { Ok(()) } else { Err(LayoutError::TooLarge) }
}

impl Array {
    /// An array over memory that someone else owns and `keep_alive` keeps.
    ///
    /// # Safety
    /// Until `keep_alive` is dropped, all bytes that `view` describes are memory of the kind that it says, on that
    /// device, and may be written unless it is read-only.
    #[inline]
    pub unsafe fn borrowed(view: ArrayView, keep_alive: Arc<dyn Any + Send + Sync>) -> Self {
        Self { view, memory: keep_alive }
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
        Ok(Self { view: ArrayView::new(parts)?, memory })
    }

    /// What keeps the memory alive.
    #[inline]
    pub fn memory(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.memory
    }

    /// The same memory, not to be written through the result.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { view: self.view.read_only(), ..self }
    }

    /// The same memory, used in the order of another stream. The caller sees to the order of the two.
    #[must_use]
    pub fn with_stream(self, stream: Stream) -> Self {
        Self { view: self.view.with_stream(stream), ..self }
    }
}

impl Deref for Array {
    type Target = ArrayView;

    #[inline]
    fn deref(&self) -> &ArrayView {
        &self.view
    }
}
