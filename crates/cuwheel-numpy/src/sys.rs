//! Declarations of `shim.h`, and of the two functions of Python that count references. No behaviour.

use std::ffi::{c_char, c_int, c_void};
use std::marker::{PhantomData, PhantomPinned};

/// A Python object, of which nothing is known here.
#[repr(C)]
#[derive(Debug)]
pub struct PyObject {
    opaque: [u8; 0],
    /// Neither `Send`, `Sync` nor `Unpin`.
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// The largest number of dimensions of any NumPy version, as `shim.h` has it.
pub const MAX_DIMENSIONS: usize = number_after(include_bytes!("shim.h"), b"#define CUWHEEL_NUMPY_MAX_DIMENSIONS ");

/// What [`cuwheel_numpy_kind`] returns for an instance of `numpy.ndarray` itself.
pub const EXACT_ARRAY: c_int = kind_after(b"#define CUWHEEL_NUMPY_EXACT_ARRAY ");
/// What [`cuwheel_numpy_kind`] returns for an instance of a subclass of `numpy.ndarray`.
pub const ARRAY: c_int = kind_after(b"#define CUWHEEL_NUMPY_ARRAY ");
/// What [`cuwheel_numpy_kind`] returns for a scalar.
pub const SCALAR: c_int = kind_after(b"#define CUWHEEL_NUMPY_SCALAR ");

/// What a descriptor says about one item.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// `NPY_TYPES`.
    pub type_number: c_int,
    /// The character of `numpy.dtype.kind`.
    pub kind: c_char,
    /// The character of `numpy.dtype.byteorder`, but never `=` for a swapped one.
    pub byte_order: c_char,
    /// In bytes.
    pub itemsize: isize,
    /// In bytes.
    pub alignment: isize,
}

/// The state of an array. Of `shape` and `strides`, the first `dimension_count` values are set.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Array {
    /// The address of the first item.
    pub data: *mut c_void,
    /// At most [`MAX_DIMENSIONS`].
    pub dimension_count: c_int,
    /// `NPY_ARRAY_…`.
    pub flags: c_int,
    /// What the items are.
    pub element: Element,
    /// Items along each dimension.
    pub shape: [isize; MAX_DIMENSIONS],
    /// Bytes from one item to the next.
    pub strides: [isize; MAX_DIMENSIONS],
}

/// What an array is, in as few words as tell arrays of numbers apart.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Outline {
    /// Not negative.
    pub dimension_count: c_int,
    /// `NPY_ARRAY_…`.
    pub flags: c_int,
    /// `NPY_TYPES`.
    pub type_number: c_int,
    /// As in [`Element`].
    pub byte_order: c_char,
}

/// The unit of a date or of a duration: `count` times `unit`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datetime {
    /// `NPY_DATETIMEUNIT`.
    pub unit: c_int,
    /// One or more.
    pub count: c_int,
}

#[expect(missing_docs, reason = "shim.h describes them")]
unsafe extern "C" {
    pub fn cuwheel_numpy_import() -> c_int;
    pub fn cuwheel_numpy_is_array(object: *mut PyObject) -> c_int;
    pub fn cuwheel_numpy_is_exact_array(object: *mut PyObject) -> c_int;
    pub fn cuwheel_numpy_is_scalar(object: *mut PyObject) -> c_int;
    pub fn cuwheel_numpy_is_descriptor(object: *mut PyObject) -> c_int;
    pub fn cuwheel_numpy_kind(object: *mut PyObject) -> c_int;
    pub fn cuwheel_numpy_read_array(array: *mut PyObject, state: *mut Array) -> c_int;
    pub fn cuwheel_numpy_read_outline(array: *mut PyObject, outline: *mut Outline);
    pub fn cuwheel_numpy_read_descriptor(descriptor: *mut PyObject, element: *mut Element);
    pub fn cuwheel_numpy_read_datetime(descriptor: *mut PyObject, datetime: *mut Datetime) -> c_int;
    pub fn cuwheel_numpy_array_descriptor(array: *mut PyObject) -> *mut PyObject;
    pub fn cuwheel_numpy_scalar_descriptor(scalar: *mut PyObject) -> *mut PyObject;

    pub fn Py_DecRef(object: *mut PyObject);
}

const fn kind_after(name: &[u8]) -> c_int {
    match number_after(include_bytes!("shim.h"), name) {
        1 => 1,
        2 => 2,
        3 => 3,
        _ => panic!("shim.h defines another number of kinds"),
    }
}

/// The number that follows `name` in `text`. There must be one: otherwise the constant above does not compile.
const fn number_after(text: &[u8], name: &[u8]) -> usize {
    let mut start = 0;
    while !starts_with(text, start, name) {
        start += 1;
    }
    let mut number = 0;
    let mut position = start + name.len();
    while text[position].is_ascii_digit() {
        number = 10 * number + (text[position] - b'0') as usize;
        position += 1;
    }
    assert!(number > 0, "shim.h does not define the constant as a number");
    number
}

const fn starts_with(text: &[u8], start: usize, prefix: &[u8]) -> bool {
    let mut length = 0;
    while length < prefix.len() {
        if text[start + length] != prefix[length] {
            return false;
        }
        length += 1;
    }
    true
}
