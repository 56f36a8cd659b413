//! The state of an array at one moment, or an outline of it. A copy: it does not follow the array, and outlives it.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

use crate::element::{self, Element};
use crate::result::{self, Error};
use crate::sys;

/// Where an array's items are and what they are, as of when it was asked.
///
/// Python code may give an array another shape or data type at any time, in place. Therefore shape and strides are
/// copied. While they are copied no other thread may do so, which free-threaded Python alone allows: see
/// [`NumPy::import`](crate::NumPy::import).
pub struct ArrayState {
    /// All fields are set, but of `shape` and `strides` only the first `dimension_count` values.
    raw: MaybeUninit<sys::Array>,
}

impl ArrayState {
    /// # Safety
    /// The thread must be attached, NumPy must be imported, and `array` must be a live array that no other thread
    /// changes in place meanwhile.
    pub(crate) unsafe fn read(array: NonNull<sys::PyObject>) -> Result<Self, Error> {
        let mut state = Self { raw: MaybeUninit::uninit() };
        // SAFETY: the caller promises what is required. On success the invariant of `raw` holds.
        unsafe { result::read_array(array, &mut state.raw)? };
        Ok(state)
    }

    /// The address of the item whose indices are all zero. Not null, but nothing may be there if the array is empty.
    #[must_use]
    pub fn address(&self) -> usize {
        // SAFETY: the field is set, by the invariant of `raw`.
        unsafe { (*self.raw.as_ptr()).data.expose_provenance() }
    }

    /// The number of items along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[isize] {
        // SAFETY: that many values are set, by the invariant of `raw`, which stays borrowed as long as the result.
        unsafe { slice::from_raw_parts((&raw const (*self.raw.as_ptr()).shape).cast(), self.dimension_count()) }
    }

    /// The bytes from one item to the next along each dimension.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        // SAFETY: that many values are set, by the invariant of `raw`, which stays borrowed as long as the result.
        unsafe { slice::from_raw_parts((&raw const (*self.raw.as_ptr()).strides).cast(), self.dimension_count()) }
    }

    /// What the items are.
    #[must_use]
    pub fn element(&self) -> Element {
        // SAFETY: the field is set, by the invariant of `raw`.
        Element(unsafe { (*self.raw.as_ptr()).element })
    }

    /// How the memory is laid out and may be used.
    #[must_use]
    pub fn flags(&self) -> ArrayFlags {
        // SAFETY: the field is set, by the invariant of `raw`.
        ArrayFlags(unsafe { (*self.raw.as_ptr()).flags })
    }

    /// Whether the items can be read and written as they are: aligned, writeable and in this machine's byte order.
    #[must_use]
    pub fn is_behaved(&self) -> bool {
        self.flags().is_aligned() && self.flags().is_writeable() && self.element().is_native_byte_order()
    }

    fn dimension_count(&self) -> usize {
        // SAFETY: the field is set, by the invariant of `raw`.
        let count = unsafe { (*self.raw.as_ptr()).dimension_count };
        // The shim has checked that it is neither negative nor too large.
        usize::try_from(count).unwrap_or(0)
    }
}

/// What an array is, in as few words as tell arrays of numbers apart: cheaper to ask for than [`ArrayState`].
#[derive(Debug, Clone, Copy)]
pub struct ArrayOutline(pub(crate) sys::Outline);

impl ArrayOutline {
    /// The number of dimensions.
    #[must_use]
    pub fn dimension_count(&self) -> usize {
        // NumPy has no arrays with fewer than none.
        usize::try_from(self.0.dimension_count).unwrap_or(0)
    }

    /// The number of the items' type, as `numpy.dtype.num`.
    #[must_use]
    pub fn type_number(&self) -> i32 {
        self.0.type_number
    }

    /// How the memory is laid out and may be used.
    #[must_use]
    pub fn flags(&self) -> ArrayFlags {
        ArrayFlags(self.0.flags)
    }

    /// Whether the items can be read and written as they are: aligned, writeable and in this machine's byte order.
    #[must_use]
    pub fn is_behaved(&self) -> bool {
        self.flags().is_aligned() && self.flags().is_writeable() && element::is_native(self.0.byte_order)
    }
}

/// An array's flags, with the values of `NPY_ARRAY_…` in NumPy's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayFlags(i32);

impl ArrayFlags {
    const C_CONTIGUOUS: i32 = 0x0001;
    const F_CONTIGUOUS: i32 = 0x0002;
    const ALIGNED: i32 = 0x0100;
    const WRITEABLE: i32 = 0x0400;

    /// All flags, including those without a method here.
    #[must_use]
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Whether the items are one after another, the last index moving fastest.
    #[must_use]
    pub fn is_c_contiguous(self) -> bool {
        self.0 & Self::C_CONTIGUOUS != 0
    }

    /// Whether the items are one after another, the first index moving fastest.
    #[must_use]
    pub fn is_f_contiguous(self) -> bool {
        self.0 & Self::F_CONTIGUOUS != 0
    }

    /// Whether every item lies at a multiple of its alignment.
    #[must_use]
    pub fn is_aligned(self) -> bool {
        self.0 & Self::ALIGNED != 0
    }

    /// Whether the items may be written.
    #[must_use]
    pub fn is_writeable(self) -> bool {
        self.0 & Self::WRITEABLE != 0
    }
}
