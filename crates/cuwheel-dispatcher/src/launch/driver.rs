//! The driver's functions for libraries, kernels and launches: each is looked up by name once, and may be absent.
//!
//! The declarations are cudarc's; the compiler checks that those here are the same, but for the result, which is an
//! integer here because a newer driver may answer with a code that no enumeration lists. What is newer than the oldest
//! driver has its declaration from `cuda.h` of CUDA 12.4.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys;
use cuwheel_device_array::{Device, Driver, DriverError};

macro_rules! functions {
    (
        checked { $($needed_for:literal: $($name:ident($($argument:ident: $kind:ty),*),)+)+ }
        newer { $($new_needed_for:literal: $($new:ident($($new_argument:ident: $new_kind:ty),*),)+)+ }
    ) => {
        /// The functions that are used here, or why there is none.
        #[expect(non_snake_case, reason = "the names are the driver's")]
        struct Functions {
            $($($name: Result<unsafe extern "C" fn($($kind),*) -> u32, DriverError>,)+)+
            $($($new: Result<unsafe extern "C" fn($($new_kind),*) -> u32, DriverError>,)+)+
        }

        impl Functions {
            fn load(driver: &Driver) -> Self {
                Self {
                    $($($name: driver.symbol(stringify!($name), $needed_for).map(|symbol| {
                        // SAFETY: the type is that of cudarc's declaration, which the constant below checks, but for the
                        // result: an enumeration of 32 bits there, the integer that it is here.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> u32>(symbol.as_ptr()) }
                    }),)+)+
                    $($($new: driver.symbol(stringify!($new), $new_needed_for).map(|symbol| {
                        // SAFETY: the type is that of the declaration in `cuda.h`, with the integer that its result is.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($new_kind),*) -> u32>(symbol.as_ptr()) }
                    }),)+)+
                }
            }
        }

        #[expect(non_snake_case, clippy::too_many_arguments, reason = "names and arguments are the driver's")]
        impl Api {
            // What each of them asks for is in the reference of the CUDA driver.
            $($(functions!(@method $name($($argument: $kind),*));)+)+
            $($(functions!(@method $new($($new_argument: $new_kind),*));)+)+
        }

        const _: () = {
            $($(let _: unsafe fn($($kind),*) -> sys::CUresult = sys::$name;)+)+
        };
    };
    (@method $name:ident($($argument:ident: $kind:ty),*)) => {
        #[inline]
        pub(super) unsafe fn $name(self, $($argument: $kind),*) -> Result<(), DriverError> {
            match &self.functions.$name {
                // SAFETY: the caller keeps what the reference of the CUDA driver asks for.
                Ok(function) => self.driver.check(unsafe { function($($argument),*) }, stringify!($name)),
                Err(error) => Err(error.clone()),
            }
        }
    };
}

functions! {
    checked {
        "describing a device":
            cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int),
            cuDeviceGetAttribute(value: *mut c_int, attribute: sys::CUdevice_attribute, device: sys::CUdevice),
        "loading images":
            cuLibraryLoadData(
                library: *mut sys::CUlibrary, code: *const c_void, options: *mut sys::CUjit_option,
                values: *mut *mut c_void, count: c_uint, library_options: *mut sys::CUlibraryOption,
                library_values: *mut *mut c_void, library_count: c_uint),
            cuLibraryUnload(library: sys::CUlibrary),
        "finding kernels":
            cuLibraryGetKernel(kernel: *mut sys::CUkernel, library: sys::CUlibrary, name: *const c_char),
            cuKernelGetFunction(function: *mut sys::CUfunction, kernel: sys::CUkernel),
        "describing a kernel":
            cuKernelGetAttribute(
                value: *mut c_int, attribute: sys::CUfunction_attribute, kernel: sys::CUkernel, device: sys::CUdevice),
            cuOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks: *mut c_int, function: sys::CUfunction, threads: c_int, shared_bytes: usize),
        "launches with more shared memory than usual":
            cuFuncSetAttribute(function: sys::CUfunction, attribute: sys::CUfunction_attribute, value: c_int),
        "launches":
            cuLaunchKernelEx(
                config: *const sys::CUlaunchConfig, function: sys::CUfunction, each: *mut *mut c_void,
                extra: *mut *mut c_void),
    }
    newer {
        "launching kernels that another library has loaded":
            cuCtxGetId(context: sys::CUcontext, id: *mut u64),
        "listing the kernels of an image":
            cuLibraryGetKernelCount(count: *mut c_uint, library: sys::CUlibrary),
            cuLibraryEnumerateKernels(kernels: *mut sys::CUkernel, room: c_uint, library: sys::CUlibrary),
            cuKernelGetName(name: *mut *const c_char, kernel: sys::CUkernel),
        "launching a kernel without a signature; give it one":
            cuKernelGetParamInfo(kernel: sys::CUkernel, index: usize, offset: *mut usize, size_bytes: *mut usize),
    }
}

/// The driver with the functions for launches.
#[derive(Clone, Copy)]
pub(super) struct Api {
    driver: &'static Driver,
    functions: &'static Functions,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

#[cold]
fn load(driver: &Driver) -> &'static Functions {
    FUNCTIONS.get_or_init(|| Functions::load(driver))
}

impl Api {
    #[inline]
    pub(super) fn get() -> Result<Self, DriverError> {
        let driver = Driver::get()?;
        let functions = match FUNCTIONS.get() {
            Some(functions) => functions,
            None => load(driver),
        };
        Ok(Self { driver, functions })
    }

    /// The context that is current in this thread; 0 without one.
    #[inline]
    pub(super) fn current_context(self) -> Result<usize, DriverError> {
        self.driver.current_context()
    }

    /// The error of a call in a context that is not the right one.
    pub(super) fn invalid_context(self, call: &'static str) -> DriverError {
        const INVALID_CONTEXT: u32 = 201;
        self.driver.check(INVALID_CONTEXT, call).err().unwrap_or(DriverError::Forked)
    }

    pub(super) fn device_count(self) -> usize {
        self.driver.device_count()
    }

    /// The driver's own number for a device.
    pub(super) fn device(self, device: Device) -> Result<sys::CUdevice, DriverError> {
        let mut handle = 0;
        let ordinal = c_int::try_from(device.ordinal()).unwrap_or(c_int::MAX);
        // SAFETY: the pointer is to a local variable.
        unsafe { self.cuDeviceGet(&raw mut handle, ordinal) }?;
        Ok(handle)
    }

    pub(super) fn device_attribute(
        self,
        device: sys::CUdevice,
        attribute: sys::CUdevice_attribute,
    ) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: the pointer is to a local variable.
        unsafe { self.cuDeviceGetAttribute(&raw mut value, attribute, device) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    pub(super) fn kernel_attribute(
        self,
        kernel: sys::CUkernel,
        attribute: sys::CUfunction_attribute,
        device: sys::CUdevice,
    ) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: the pointer is to a local variable; the kernel's library is loaded, as who has its handle sees to.
        unsafe { self.cuKernelGetAttribute(&raw mut value, attribute, kernel, device) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}
