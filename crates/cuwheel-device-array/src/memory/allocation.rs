//! Memory that is owned: allocated in the order of a stream, and freed exactly once, whoever drops it and wherever.

use std::alloc;
use std::ffi::c_void;

use cudarc::driver::sys;
use thiserror::Error;

use super::{MemoryKind, deferred, pending};
use crate::driver::code;
use crate::stream::CaptureStatus;
use crate::{Classified, CudaError, Device, Driver, DriverError, ErrorKind, Stream};

/// The alignment of ordinary host memory, in bytes: the one that DLPack advises.
const HOST_ALIGNMENT: usize = 256;

/// Memory that is freed when this is dropped.
///
/// Device memory comes from the device's current memory pool in the order of a stream and goes back in the same order,
/// so neither waits. Memory of the other kinds is freed once the stream is done. Dropping never fails: what goes wrong
/// is reported by the next call that can, see [`take_deferred_error`](crate::take_deferred_error). When the process
/// ends and after a `fork` nothing is freed, for there is nothing left to free from.
#[derive(Debug)]
pub struct Allocation(Block);

/// The memory of an [`Allocation`], without the promise to free it.
#[derive(Debug)]
pub(crate) struct Block {
    address: u64,
    size_bytes: usize,
    kind: MemoryKind,
    device: Device,
    stream: Stream,
    /// Whether it came from a memory pool in the order of the stream.
    is_pooled: bool,
}

/// Why memory cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AllocationError {
    /// There is not enough memory.
    #[error(
        "out of {kind} memory: {requested} bytes were asked for on device {}, where {free} of {total} are free; release \
         arrays that are no longer needed, or work on smaller pieces",
        device.ordinal()
    )]
    OutOfDeviceMemory {
        /// The bytes asked for.
        requested: usize,
        /// The bytes that are free on the device.
        free: usize,
        /// The bytes that the device has.
        total: usize,
        /// The device.
        device: Device,
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// The host has not enough memory, or none that can be pinned.
    #[error(
        "out of {kind} memory: {requested} bytes were asked for, and {free} of the host's {total} are free; release arrays \
         that are no longer needed, or work on smaller pieces"
    )]
    OutOfHostMemory {
        /// The bytes asked for.
        requested: usize,
        /// The bytes of the host's memory that are free.
        free: usize,
        /// The bytes of memory that the host has.
        total: usize,
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// Memory allocated during a capture would belong to the graph and vanish with it.
    #[error(
        "memory cannot be allocated on a stream that is being captured into a graph; allocate before the capture, or on \
         another stream"
    )]
    Capturing,
    /// The driver is absent or refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl Classified for AllocationError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfDeviceMemory { .. } | Self::OutOfHostMemory { .. } => ErrorKind::Memory,
            Self::Capturing => ErrorKind::Driver,
            Self::Driver(error) => error.kind(),
        }
    }

    fn cuda_error(&self) -> Option<&CudaError> {
        match self {
            Self::Driver(error) => error.cuda_error(),
            _ => None,
        }
    }
}

impl Allocation {
    /// Allocates `size_bytes` bytes for use on `device` in the order of `stream`. Their contents are unspecified.
    ///
    /// Zero bytes have the address 0 and need no driver; nor does ordinary host memory.
    pub fn new(kind: MemoryKind, size_bytes: usize, device: Device, stream: &Stream) -> Result<Self, AllocationError> {
        let mut new = Self(Block { address: 0, size_bytes, kind, device, stream: stream.clone(), is_pooled: false });
        if size_bytes != 0 {
            // What is allocated when a later step fails is freed as `new` is dropped.
            new.0.allocate()?;
        }
        Ok(new)
    }

    /// The address of the first byte; 0 for no bytes.
    #[inline]
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// The number of bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.0.size_bytes
    }

    /// The kind of the memory.
    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.0.kind
    }

    /// The device that the memory was allocated for.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The stream in whose order the memory is freed.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.0.stream
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.0.address == 0 {
            return;
        }
        let block = Block { address: self.0.address, stream: self.0.stream.clone(), ..self.0 };
        match block.free() {
            Err(DriverError::Cuda(error)) if error.is_refused_by_capture() => pending::put(block),
            result => deferred::keep("freeing memory", result),
        }
    }
}

impl Block {
    fn allocate(&mut self) -> Result<(), AllocationError> {
        if self.kind == MemoryKind::Host {
            return self.allocate_host();
        }
        let _guard = self.device.enter()?;
        pending::retry();
        let driver = Driver::get()?;
        // Graphs have memory of their own, which lives and dies with a launch; an array does not.
        if self.stream.capture_status_here(driver)? != CaptureStatus::None {
            return Err(AllocationError::Capturing);
        }
        let result = match self.kind {
            MemoryKind::Device => self.allocate_device(driver),
            _ => unaffected_by_captures(|| self.allocate_unordered(driver)),
        };
        result.map_err(|error| match error {
            DriverError::Cuda(error) if error.code == code::OUT_OF_MEMORY => self.out_of_memory(driver),
            error => error.into(),
        })
    }

    fn allocate_device(&mut self, driver: &Driver) -> Result<(), DriverError> {
        // SAFETY: the pointer is to a local variable, the context is the device's and the stream is valid.
        match unsafe { driver.cuMemAllocAsync(&raw mut self.address, self.size_bytes, self.stream.raw()) } {
            // Virtual GPUs may lack memory pools.
            Err(DriverError::Cuda(error)) if error.code == code::NOT_SUPPORTED => {
                unaffected_by_captures(|| self.allocate_unordered(driver))
            }
            result => {
                self.is_pooled = result.is_ok();
                result
            }
        }
    }

    /// Memory that is allocated at once, without regard to streams.
    fn allocate_unordered(&mut self, driver: &Driver) -> Result<(), DriverError> {
        let mut address: *mut c_void = std::ptr::null_mut();
        let flags = match self.kind {
            MemoryKind::Mapped => sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP,
            _ => sys::CU_MEMHOSTALLOC_PORTABLE,
        };
        let attach = sys::CUmemAttach_flags_enum::CU_MEM_ATTACH_GLOBAL as u32;
        // SAFETY: the pointers are to a local variable and to a field, and the context is the device's.
        unsafe {
            match self.kind {
                MemoryKind::Managed => driver.cuMemAllocManaged(&raw mut self.address, self.size_bytes, attach),
                MemoryKind::Device => driver.cuMemAlloc_v2(&raw mut self.address, self.size_bytes),
                _ => driver.cuMemHostAlloc(&raw mut address, self.size_bytes, flags).map(|()| {
                    self.address = address as u64;
                }),
            }
        }
    }

    fn allocate_host(&mut self) -> Result<(), AllocationError> {
        let memory = alloc::Layout::from_size_align(self.size_bytes, HOST_ALIGNMENT).ok().map(|layout| {
            // SAFETY: the size is not zero.
            unsafe { alloc::alloc(layout) }
        });
        self.address = memory.map_or(0, |memory| memory.expose_provenance() as u64);
        if self.address == 0 { Err(out_of_host_memory(self.size_bytes, self.kind)) } else { Ok(()) }
    }

    fn out_of_memory(&self, driver: &Driver) -> AllocationError {
        if matches!(self.kind, MemoryKind::Pinned | MemoryKind::Mapped) {
            return out_of_host_memory(self.size_bytes, self.kind);
        }
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to local variables, and the context is the device's.
        match unsafe { driver.cuMemGetInfo_v2(&raw mut free, &raw mut total) } {
            Err(error) => error.into(),
            Ok(()) => AllocationError::OutOfDeviceMemory {
                requested: self.size_bytes,
                free,
                total,
                device: self.device,
                kind: self.kind,
            },
        }
    }

    /// Frees the memory, or leaves it as it is and says why.
    pub(crate) fn free(&self) -> Result<(), DriverError> {
        if self.kind == MemoryKind::Host {
            self.free_host();
            return Ok(());
        }
        let driver = Driver::get()?;
        let _guard = self.device.enter_quietly(driver)?;
        // Whoever drops the memory may be another thread, whose per-thread stream is another one. The legacy stream
        // waits for all of them.
        let stream = if self.stream.is_per_thread() { Stream::LEGACY } else { self.stream.clone() };
        if stream.capture_status_here(driver)? != CaptureStatus::None {
            return driver.check(code::STREAM_CAPTURE_UNSUPPORTED, "cuMemFreeAsync");
        }
        if self.is_pooled {
            // SAFETY: the memory is from a pool and not freed yet: its owner is being dropped, and work that uses it
            // was ordered before this point of the stream by whoever put it in.
            return unsafe { driver.cuMemFreeAsync(self.address, stream.raw()) };
        }
        unaffected_by_captures(|| {
            // SAFETY: the stream is valid; when it is done, nothing uses the memory any more, for the same reason.
            unsafe { driver.cuStreamSynchronize(stream.raw()) }?;
            // SAFETY: the memory was allocated by the function's counterpart and is not freed yet.
            unsafe {
                match self.kind {
                    MemoryKind::Pinned | MemoryKind::Mapped => driver.cuMemFreeHost(self.address as *mut c_void),
                    _ => driver.cuMemFree_v2(self.address),
                }
            }
        })
    }

    fn free_host(&self) {
        let Ok(layout) = alloc::Layout::from_size_align(self.size_bytes, HOST_ALIGNMENT) else { return };
        let Ok(address) = usize::try_from(self.address) else { return };
        // SAFETY: the memory was allocated with this layout, which was valid then, and is not freed yet.
        unsafe { alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), layout) }
    }
}

/// Runs what the driver takes for unsafe while any thread captures a stream: allocating and loading here is not part of
/// anyone's capture, and must not end it.
pub fn unaffected_by_captures(action: impl FnOnce() -> Result<(), DriverError>) -> Result<(), DriverError> {
    let driver = Driver::get()?;
    let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as u32;
    // SAFETY: the pointer is to a local variable of the enumeration's size; what comes back is only given back.
    unsafe { driver.cuThreadExchangeStreamCaptureMode((&raw mut mode).cast()) }?;
    let result = action();
    // SAFETY: as above.
    let restored = unsafe { driver.cuThreadExchangeStreamCaptureMode((&raw mut mode).cast()) };
    result.and(restored)
}

/// Says how much memory the host has; zero where it does not tell.
pub(crate) fn out_of_host_memory(requested: usize, kind: MemoryKind) -> AllocationError {
    let pages = |name| {
        // SAFETY: the function only reads a number.
        usize::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
    };
    let page = pages(libc::_SC_PAGESIZE);
    let free = pages(libc::_SC_AVPHYS_PAGES).saturating_mul(page);
    let total = pages(libc::_SC_PHYS_PAGES).saturating_mul(page);
    AllocationError::OutOfHostMemory { requested, free, total, kind }
}
