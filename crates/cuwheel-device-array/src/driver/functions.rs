//! The driver's functions as methods: each is looked up by name once, and may be absent.
//!
//! cudarc has such functions too. They end the process when one is missing, and take the driver's answer as a Rust
//! enumeration, which is undefined behaviour when a newer driver answers with a code that it does not list. So only its
//! declarations are used; the compiler checks that those here are the same.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cudarc::driver::sys;
use libloading::Library;

use super::{Driver, DriverError};

macro_rules! functions {
    ($($needed_for:literal: $($name:ident($($argument:ident: $kind:ty),*),)+)+) => {
        /// The functions of the driver that are used here, as far as it has them.
        #[expect(non_snake_case, reason = "the names are the driver's")]
        #[derive(Debug)]
        pub(super) struct Functions {
            $($($name: Option<unsafe extern "C" fn($($kind),*) -> u32>,)+)+
        }

        impl Functions {
            /// Looks every function up.
            pub(super) fn load(library: &Library) -> Self {
                Self {
                    $($(
                        // SAFETY: the type is that of cudarc's declaration, which the constant below checks, but for
                        // the result: an enumeration of 32 bits there, the integer that it is here.
                        $name: unsafe { library.get(stringify!($name)) }.ok().map(|symbol| *symbol),
                    )+)+
                }
            }
        }

        #[expect(non_snake_case, reason = "the names are the driver's")]
        impl Driver {
            // What each of them asks for is in the reference of the CUDA driver.
            $($(
                #[inline]
                pub(crate) unsafe fn $name(&self, $($argument: $kind),*) -> Result<(), DriverError> {
                    super::check_process()?;
                    let function = self.functions.$name.ok_or_else(|| self.missing(stringify!($name), $needed_for))?;
                    // SAFETY: the caller keeps what the reference of the CUDA driver asks for.
                    self.check(unsafe { function($($argument),*) }, stringify!($name))
                }
            )+)+
        }

        const _: () = {
            $($(let _: unsafe fn($($kind),*) -> sys::CUresult = sys::$name;)+)+
        };
    };
}

functions! {
    "starting CUDA":
        cuInit(flags: c_uint),
        cuDriverGetVersion(version: *mut c_int),
        cuDeviceGetCount(count: *mut c_int),
        cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int),
    "describing a device":
        cuDeviceGetName(name: *mut c_char, length: c_int, device: sys::CUdevice),
        cuDeviceGetAttribute(value: *mut c_int, attribute: sys::CUdevice_attribute, device: sys::CUdevice),
        cuMemGetInfo_v2(free: *mut usize, total: *mut usize),
    "using a device":
        cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: sys::CUdevice),
        cuCtxGetCurrent(context: *mut sys::CUcontext),
        cuCtxGetDevice(device: *mut sys::CUdevice),
        cuCtxPushCurrent_v2(context: sys::CUcontext),
        cuCtxPopCurrent_v2(context: *mut sys::CUcontext),
    "device memory in the order of a stream":
        cuMemAllocAsync(address: *mut sys::CUdeviceptr, size_bytes: usize, stream: sys::CUstream),
        cuMemFreeAsync(address: sys::CUdeviceptr, stream: sys::CUstream),
    "device memory without memory pools":
        cuMemAlloc_v2(address: *mut sys::CUdeviceptr, size_bytes: usize),
        cuMemFree_v2(address: sys::CUdeviceptr),
    "pinned host memory":
        cuMemHostAlloc(address: *mut *mut c_void, size_bytes: usize, flags: c_uint),
        cuMemFreeHost(address: *mut c_void),
    "managed memory":
        cuMemAllocManaged(address: *mut sys::CUdeviceptr, size_bytes: usize, flags: c_uint),
    "memory while another stream is being captured":
        cuThreadExchangeStreamCaptureMode(mode: *mut sys::CUstreamCaptureMode),
    "streams":
        cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint),
        cuStreamDestroy_v2(stream: sys::CUstream),
        cuStreamSynchronize(stream: sys::CUstream),
        cuStreamIsCapturing(stream: sys::CUstream, status: *mut sys::CUstreamCaptureStatus),
    "ordering streams by events":
        cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint),
        cuEventCreate(event: *mut sys::CUevent, flags: c_uint),
        cuEventRecord(event: sys::CUevent, stream: sys::CUstream),
        cuEventSynchronize(event: sys::CUevent),
        cuEventQuery(event: sys::CUevent),
        cuEventDestroy_v2(event: sys::CUevent),
    "timing by events":
        cuEventElapsedTime(milliseconds: *mut f32, start: sys::CUevent, end: sys::CUevent),
    "copies":
        cuMemcpyAsync(destination: sys::CUdeviceptr, source: sys::CUdeviceptr, size_bytes: usize, stream: sys::CUstream),
    "strided copies":
        cuMemcpy2DAsync_v2(copy: *const sys::CUDA_MEMCPY2D, stream: sys::CUstream),
    "copies between devices":
        cuMemcpyPeerAsync(
            destination: sys::CUdeviceptr, destination_context: sys::CUcontext,
            source: sys::CUdeviceptr, source_context: sys::CUcontext, size_bytes: usize, stream: sys::CUstream),
    "filling memory":
        cuMemsetD8Async(address: sys::CUdeviceptr, value: u8, count: usize, stream: sys::CUstream),
        cuMemsetD16Async(address: sys::CUdeviceptr, value: u16, count: usize, stream: sys::CUstream),
        cuMemsetD32Async(address: sys::CUdeviceptr, value: u32, count: usize, stream: sys::CUstream),
    "filling strided memory":
        cuMemsetD2D8Async(
            address: sys::CUdeviceptr, pitch_bytes: usize, value: u8, width: usize, height: usize, stream: sys::CUstream),
        cuMemsetD2D16Async(
            address: sys::CUdeviceptr, pitch_bytes: usize, value: u16, width: usize, height: usize, stream: sys::CUstream),
        cuMemsetD2D32Async(
            address: sys::CUdeviceptr, pitch_bytes: usize, value: u32, width: usize, height: usize, stream: sys::CUstream),
    "finding out about an address":
        cuPointerGetAttributes(
            count: c_uint, attributes: *mut sys::CUpointer_attribute, values: *mut *mut c_void, address: sys::CUdeviceptr),
}

/// `cuGetErrorName` and `cuGetErrorString`. They take any code, which cudarc's type for codes cannot hold.
type Describe = unsafe extern "C" fn(code: u32, text: *mut *const c_char) -> u32;

/// The driver's name and description of a code.
pub(super) fn describe(library: &Library, code: u32) -> (String, String) {
    let text = |function: &'static str| {
        // SAFETY: this is the declaration in `cuda.h` but for the enumerations, which are integers of 32 bits.
        let function = unsafe { library.get::<Describe>(function) }.ok()?;
        let mut text = std::ptr::null();
        // SAFETY: the pointer is to a local variable; a code that the driver does not know gives an error and null.
        let answer = unsafe { function(code, &raw mut text) };
        // SAFETY: on success the driver gives a string of its own, which ends in a zero and lasts as long as it does.
        (answer == 0 && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    (
        text("cuGetErrorName").unwrap_or_else(|| "an error that the driver does not name".to_owned()),
        text("cuGetErrorString").unwrap_or_else(|| "no description".to_owned()),
    )
}
