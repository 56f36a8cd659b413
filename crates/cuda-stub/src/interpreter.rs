//! Whether a thread that calls the driver keeps the other threads of a Python interpreter waiting meanwhile.

use std::ffi::c_int;

use libloading::os::unix::Library;

/// Whether this thread holds the global interpreter lock, or is attached where there is none; `None` without Python in the
/// process.
pub(crate) fn is_held() -> Option<bool> {
    // SAFETY: `PyGILState_Check` of Python's C API is declared so, and may be called at any time.
    let check = unsafe { Library::this().get::<unsafe extern "C" fn() -> c_int>(b"PyGILState_Check\0") }.ok()?;
    // SAFETY: as above.
    Some(unsafe { check() } != 0)
}
