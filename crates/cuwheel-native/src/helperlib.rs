//! The Python module `_helperlib`: sizes and limits of C types, and the characters of strings for native callers.
//!
//! Names, results and exceptions follow the module of that name in numba-cuda.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::slice;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::submodule::Submodule;

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_helperlib", populate };

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let helpers = PyDict::new(py);
    let address = (extract_unicode as ExtractUnicode as *const ()).expose_provenance();
    helpers.set_item("extract_unicode", address)?;
    module.add("c_helpers", helpers)?;
    module.add("long_min", std::ffi::c_long::MIN)?;
    module.add("long_max", std::ffi::c_long::MAX)?;
    module.add("py_buffer_size", size_of::<ffi::Py_buffer>())?;
    module.add("py_gil_state_size", size_of::<ffi::PyGILState_STATE>())?;
    for (name, kind) in [("1byte", 1), ("2byte", 2), ("4byte", 4)] {
        module.add(format!("py_unicode_{name}_kind").as_str(), kind)?;
    }
    // What Python 3.12 took out of its C API. Not among the names that every version has.
    if py.version_info() < (3, 12) {
        module.setattr("py_unicode_wchar_kind", 0)?;
    }
    Ok(())
}

/// The type of [`extract_unicode`].
type ExtractUnicode = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *mut ffi::Py_ssize_t,
    *mut c_int,
    *mut c_uint,
    *mut ffi::Py_hash_t,
) -> *mut c_void;

/// Where the characters of a string are, and of what kind; null, without an exception, if that cannot be told.
///
/// The thread need not be attached to the interpreter. The result is good for as long as the string is alive. The hash
/// is -1 for instances of subclasses, which may have one of their own.
///
/// # Safety
/// `string` must be null or a live Python object that the caller keeps alive, and each of the other pointers null or
/// good for writing.
unsafe extern "C" fn extract_unicode(
    string: *mut ffi::PyObject,
    length: *mut ffi::Py_ssize_t,
    kind: *mut c_int,
    ascii: *mut c_uint,
    hash: *mut ffi::Py_hash_t,
) -> *mut c_void {
    let characters = Python::try_attach(|py| {
        // SAFETY: the caller keeps the object alive, and the thread is attached.
        let string = unsafe { Bound::from_borrowed_ptr_or_opt(py, string) }?;
        Characters::of(string.cast::<PyString>().ok()?)
    });
    let Some(Some(characters)) = characters else { return ptr::null_mut() };
    for (place, value) in [(length, characters.length), (hash, characters.hash)] {
        if !place.is_null() {
            // SAFETY: the caller promises that it may be written.
            unsafe { place.write(value) };
        }
    }
    if !kind.is_null() {
        // SAFETY: as above.
        unsafe { kind.write(characters.kind) };
    }
    if !ascii.is_null() {
        // SAFETY: as above.
        unsafe { ascii.write(c_uint::from(characters.is_ascii)) };
    }
    characters.data.cast_mut().cast()
}

/// The characters of a string, where Python keeps them.
struct Characters {
    data: *const u8,
    length: ffi::Py_ssize_t,
    /// Bytes for each character.
    kind: c_int,
    is_ascii: bool,
    hash: ffi::Py_hash_t,
}

impl Characters {
    fn of(string: &Bound<'_, PyString>) -> Option<Self> {
        // Instances of subclasses have their characters elsewhere, and may say what they like of themselves.
        let exact = Some(string).filter(|string| string.is_exact_instance_of::<PyString>());
        let hash = exact.map_or(Ok(-1), |string| string.hash()).ok()?;
        let code_points = code_points(string)?;
        let length = ffi::Py_ssize_t::try_from(code_points.len()).ok()?;
        let largest = code_points.iter().copied().max().unwrap_or(0);
        let (data, kind) = match largest {
            0..0x80 => (ascii_data(string)?, 1),
            0x80..0x100 => (inside(exact?, &code_points, 1)?, 1),
            0x100..0x1_0000 => (inside(exact?, &code_points, 2)?, 2),
            _ => (inside(exact?, &code_points, 4)?, 4),
        };
        Some(Self { data, length, kind, is_ascii: largest < 0x80, hash })
    }
}

/// The code points of a string.
fn code_points(string: &Bound<'_, PyString>) -> Option<Vec<u32>> {
    let mut code_points = vec![0_u32; string.len().ok()? + 1];
    let room = ffi::Py_ssize_t::try_from(code_points.len()).ok()?;
    // SAFETY: the thread is attached, as the type of `string` witnesses, and there is room for all characters and the
    // null that is asked for.
    let copied = unsafe { ffi::PyUnicode_AsUCS4(string.as_ptr(), code_points.as_mut_ptr(), room, 1) };
    if copied.is_null() {
        drop(PyErr::take(string.py()));
        return None;
    }
    code_points.pop();
    Some(code_points)
}

/// The characters of a string without any but ASCII ones: they are their own UTF-8.
fn ascii_data(string: &Bound<'_, PyString>) -> Option<*const u8> {
    // SAFETY: the thread is attached, as the type of `string` witnesses.
    let data = unsafe { ffi::PyUnicode_AsUTF8AndSize(string.as_ptr(), ptr::null_mut()) };
    if data.is_null() {
        drop(PyErr::take(string.py()));
        return None;
    }
    Some(data.cast())
}

/// Where in a string object its characters begin, `kind` bytes each. `string` is an instance of `str` itself.
///
/// Python's limited API does not tell. They follow the object's head, whose size is that of another string less its
/// characters; and what is found there is compared with the characters before it is believed.
fn inside(string: &Bound<'_, PyString>, code_points: &[u32], kind: usize) -> Option<*const u8> {
    let py = string.py();
    // One character of two bytes, and a null.
    let head = size_bytes(PyString::new(py, "\u{100}").as_any())?.checked_sub(2 * 2)?;
    let length = code_points.len() * kind;
    // The object ends with a null, of the same size.
    if head + length + kind > size_bytes(string.as_any())? {
        return None;
    }
    let data = string.as_ptr().cast::<u8>().cast_const().wrapping_add(head);
    // SAFETY: Python says of the string that it has more bytes than are read; it is alive and never changes.
    let found = unsafe { slice::from_raw_parts(data, length) };
    let is_same =
        code_points.iter().zip(found.chunks_exact(kind)).all(|(code, bytes)| code.to_ne_bytes()[..kind] == *bytes);
    is_same.then_some(data)
}

/// The size of an object, without what the garbage collector puts before it.
fn size_bytes(object: &Bound<'_, PyAny>) -> Option<usize> {
    object.call_method0(intern!(object.py(), "__sizeof__")).ok()?.extract().ok()
}

const _: () = assert!(cfg!(target_endian = "little"), "the narrow characters of a wide one are its first bytes");
