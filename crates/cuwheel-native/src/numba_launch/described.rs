//! Arrays of other libraries as a launch passes them, noted when their types were found: each is described once for a call.

use cuwheel_device_array::{Described, Device, MemoryKind};
use cuwheel_exchange::Producing;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::plan::WORDS_BEFORE_SHAPE;

/// The words of an array: those of two dimensions need no memory of their own.
pub(super) type Words = SmallVec<[u64; WORDS_BEFORE_SHAPE + 4]>;

/// What was noted of the arguments of one call. It holds only until other code runs, which may change an array.
pub(crate) type DescribedArrays = SmallVec<[DescribedArray; 4]>;

/// An array that its producer has described.
pub(crate) struct DescribedArray {
    /// The address of the object.
    object: usize,
    pub(super) words: Words,
    pub(super) device: Device,
    pub(super) producing: Producing,
}

impl DescribedArray {
    /// What a launch needs of the array, if it can be launched with as it is described.
    #[inline]
    pub(crate) fn new(object: &Bound<'_, PyAny>, array: &Described<'_>, producing: Option<Producing>) -> Option<Self> {
        Some(Self {
            object: object.as_ptr().addr(),
            words: words(array)?,
            device: array.device(),
            producing: producing?,
        })
    }

    #[inline]
    pub(super) fn is_of(&self, object: &Bound<'_, PyAny>) -> bool {
        self.object == object.as_ptr().addr()
    }
}

/// The words of an array in memory of the device, as the parameters of a kernel have them.
#[inline]
pub(super) fn words(array: &Described<'_>) -> Option<Words> {
    let itemsize = array.dtype().size_bytes().filter(|_| array.kind() == MemoryKind::Device)?;
    let elements = array.elements();
    let mut words = Words::new();
    words.extend([0, 0, elements.size() as u64, itemsize as u64, array.pointer()]);
    words.extend(elements.shape().iter().map(|size| size.cast_unsigned()));
    let in_bytes = |stride: &i64| stride.wrapping_mul(itemsize.cast_signed() as i64).cast_unsigned();
    words.extend(elements.strides().iter().map(in_bytes));
    Some(words)
}
