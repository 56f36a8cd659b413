//! Views of an array: other shapes, parts and types of the same memory. Nothing is copied.

use std::sync::Arc;

use super::{Array, ArrayParts, ArrayView};
use crate::{DType, Error, Index, Layout};

impl ArrayView {
    /// `a[indices]` for integers, slices, new axes and an ellipsis.
    pub fn index(&self, indices: &[Index]) -> Result<Self, Error> {
        let (layout, offset) = self.layout().index(indices, self.dtype())?;
        Ok(self.with_layout(layout, offset))
    }

    /// The same elements, in the order of C, in another shape; one size may be negative, for whatever is left over.
    /// Fails where only a copy can have the shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<Self, Error> {
        Ok(self.with_layout(self.layout().reshape(shape)?, 0))
    }

    /// The same elements, in the order of C, in one dimension. Fails where that takes a copy.
    pub fn ravel(&self) -> Result<Self, Error> {
        Ok(self.with_layout(self.layout().ravel()?, 0))
    }

    /// The dimensions in another order, reversed without `axes`. Negative axes count from the end.
    pub fn transpose(&self, axes: Option<&[i64]>) -> Result<Self, Error> {
        Ok(self.with_layout(self.layout().transpose(axes)?, 0))
    }

    /// Without the dimensions `axes`, which must have one element each; without `axes`, without all that do.
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Result<Self, Error> {
        Ok(self.with_layout(self.layout().squeeze(axes)?, 0))
    }

    /// The elements of dimensions of size one repeated until the shape is this one. The result is read-only, for
    /// several of its elements are the same.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<Self, Error> {
        Ok(self.with_layout(self.layout().broadcast_to(shape)?, 0).read_only())
    }

    /// The same bytes as elements of another type.
    pub fn view(&self, dtype: DType) -> Result<Self, Error> {
        let mut view = self.with_layout(self.layout().view(self.dtype(), dtype)?, 0);
        view.0.dtype = dtype;
        Ok(view)
    }

    /// Some of the same memory in another layout, whose first element lies `offset` bytes behind the first one here.
    fn with_layout(&self, layout: Layout, offset: i64) -> Self {
        let &Self(ArrayParts { pointer, dtype, kind, device, ref stream, read_only, .. }) = self;
        // Inside of the elements here, so it cannot leave the address space.
        let pointer = if layout.is_empty() { 0 } else { pointer.wrapping_add_signed(offset) };
        Self(ArrayParts { pointer, layout, dtype, kind, device, stream: stream.clone(), read_only })
    }
}

/// The views of [`ArrayView`], sharing the memory.
impl Array {
    /// See [`ArrayView::index`].
    pub fn index(&self, indices: &[Index]) -> Result<Self, Error> {
        self.view.index(indices).map(|view| self.sharing(view))
    }

    /// See [`ArrayView::reshape`].
    pub fn reshape(&self, shape: &[i64]) -> Result<Self, Error> {
        self.view.reshape(shape).map(|view| self.sharing(view))
    }

    /// See [`ArrayView::ravel`].
    pub fn ravel(&self) -> Result<Self, Error> {
        self.view.ravel().map(|view| self.sharing(view))
    }

    /// See [`ArrayView::transpose`].
    pub fn transpose(&self, axes: Option<&[i64]>) -> Result<Self, Error> {
        self.view.transpose(axes).map(|view| self.sharing(view))
    }

    /// See [`ArrayView::squeeze`].
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Result<Self, Error> {
        self.view.squeeze(axes).map(|view| self.sharing(view))
    }

    /// See [`ArrayView::broadcast_to`].
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<Self, Error> {
        self.view.broadcast_to(shape).map(|view| self.sharing(view))
    }

    /// See [`ArrayView::view`].
    pub fn view(&self, dtype: DType) -> Result<Self, Error> {
        self.view.view(dtype).map(|view| self.sharing(view))
    }

    fn sharing(&self, view: ArrayView) -> Self {
        Self { view, memory: Arc::clone(&self.memory) }
    }
}
