//! Arrays as someone else describes them: checked while the numbers are still theirs, and made into a view last.

use super::{ArrayParts, ArrayView, check_addresses};
use crate::layout::Elements;
use crate::{DType, Device, LayoutError, MemoryKind, Stream};

/// What an [`ArrayView`] is made of, but for the stream, with a shape and strides that are borrowed.
///
/// This is what every import runs: small, so that it can be handed around, and without an allocation.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pointer: u64,
    elements: Elements<'a>,
    dtype: DType,
    kind: MemoryKind,
    device: Device,
    read_only: bool,
}

impl<'a> Described<'a> {
    /// Elements around the one at `pointer`, which is ignored without elements.
    ///
    /// Fails when the elements would not lie in the address space.
    #[inline]
    pub fn new(
        pointer: u64,
        elements: Elements<'a>,
        dtype: DType,
        kind: MemoryKind,
        device: Device,
    ) -> Result<Self, LayoutError> {
        let is_empty = elements.is_empty();
        if !is_empty {
            check_addresses(pointer, elements.extents_bytes(dtype)?)?;
        }
        let pointer = if is_empty { 0 } else { pointer };
        Ok(Self { pointer, elements, dtype, kind, device, read_only: false })
    }

    /// The same, not to be written.
    #[must_use]
    #[inline]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// The address of the first element; 0 without elements.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// Whether the elements must not be written.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Shape and strides.
    #[inline]
    pub fn elements(&self) -> Elements<'a> {
        self.elements
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The kind of the memory.
    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// The device that the memory is on or belongs to.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The view, of memory that is used in the order of `stream`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the view is to be written where it stays: copying it costs the most")]
    pub fn on(self, stream: Stream) -> ArrayView {
        let Self { pointer, elements, dtype, kind, device, read_only } = self;
        ArrayView(ArrayParts { pointer, layout: elements.layout(), dtype, kind, device, stream, read_only })
    }
}
