//! NVRTC's functions: each is looked up by name, and a library that lacks one is not used.
//!
//! The declarations are cudarc's; the compiler checks that those here are the same, but for the result, which is an integer
//! here because a newer NVRTC may answer with a code that no enumeration lists.

use std::ffi::{CStr, c_char, c_int};

use cudarc::nvrtc::sys;
use libloading::Library;

macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*),)+) => {
        /// The functions that are used here.
        #[expect(non_snake_case, reason = "the names are NVRTC's")]
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> u32,)+
            describe: Option<Describe>,
        }

        impl Functions {
            /// Looks every function up; the error is what is missing.
            pub(super) fn load(library: &Library) -> Result<Self, String> {
                Ok(Self {
                    $(
                        // SAFETY: the type is that of cudarc's declaration, which the constant below checks, but for the
                        // result: an enumeration of 32 bits there, the integer that it is here.
                        $name: *unsafe { library.get(stringify!($name)) }
                            .map_err(|_| concat!("it has no function ", stringify!($name)).to_owned())?,
                    )+
                    // SAFETY: this is the declaration in `nvrtc.h`, but for the enumeration, an integer of 32 bits.
                    describe: unsafe { library.get("nvrtcGetErrorString") }.ok().map(|symbol| *symbol),
                })
            }
        }

        const _: () = {
            $(let _: unsafe fn($($kind),*) -> sys::nvrtcResult = sys::$name;)+
        };
    };
}

functions! {
    nvrtcVersion(major: *mut c_int, minor: *mut c_int),
    nvrtcGetNumSupportedArchs(count: *mut c_int),
    nvrtcGetSupportedArchs(architectures: *mut c_int),
    nvrtcCreateProgram(
        program: *mut sys::nvrtcProgram, source: *const c_char, name: *const c_char, header_count: c_int,
        headers: *const *const c_char, include_names: *const *const c_char),
    nvrtcDestroyProgram(program: *mut sys::nvrtcProgram),
    nvrtcAddNameExpression(program: sys::nvrtcProgram, expression: *const c_char),
    nvrtcCompileProgram(program: sys::nvrtcProgram, option_count: c_int, options: *const *const c_char),
    nvrtcGetLoweredName(program: sys::nvrtcProgram, expression: *const c_char, lowered: *mut *const c_char),
    nvrtcGetProgramLogSize(program: sys::nvrtcProgram, size_bytes: *mut usize),
    nvrtcGetProgramLog(program: sys::nvrtcProgram, log: *mut c_char),
    nvrtcGetCUBINSize(program: sys::nvrtcProgram, size_bytes: *mut usize),
    nvrtcGetCUBIN(program: sys::nvrtcProgram, cubin: *mut c_char),
    nvrtcGetPTXSize(program: sys::nvrtcProgram, size_bytes: *mut usize),
    nvrtcGetPTX(program: sys::nvrtcProgram, ptx: *mut c_char),
}

/// `nvrtcGetErrorString`. It takes any code, which cudarc's type for codes cannot hold.
type Describe = unsafe extern "C" fn(code: u32) -> *const c_char;

impl Functions {
    /// NVRTC's name of a code, such as `NVRTC_ERROR_COMPILATION`.
    pub(super) fn name_of(&self, code: u32) -> String {
        let unknown = || "an error that NVRTC does not name".to_owned();
        let Some(describe) = self.describe else { return unknown() };
        // SAFETY: it takes any integer.
        let text = unsafe { describe(code) };
        if text.is_null() {
            return unknown();
        }
        // SAFETY: NVRTC gives a text of its own, which ends in a zero and lasts as long as the library.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
