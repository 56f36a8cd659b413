//! Kernels: found when they are first used, known on each device after the first launch there, and launched.

use std::ffi::c_void;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys;
use cuwheel_device_array::{CudaError, Device, DriverError, Stream, is_usual, unaffected_by_captures};

use super::attributes::RawAttributes;
use super::driver::Api;
use super::plain::PlainSignature;
use super::{Arguments, LaunchConfig, LaunchError, Limits, Module, Signature};

/// A kernel of a module. Clones are the same kernel; two are equal if module, name and signature are.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    module: Module,
    name: Box<str>,
    /// As it was given.
    signature: Option<Signature>,
    found: OnceLock<Found>,
}

/// What is known of a kernel once the driver was asked.
struct Found {
    api: Api,
    devices: Box<[OnceLock<OnDevice>]>,
    kernel: usize,
    /// The parameters where the kernel has them.
    signature: Signature,
}

/// What is known of a kernel on a device.
// What a launch looks at comes first, so that it lies together: a launch of the driver's takes the processor's nearest caches
// for itself.
#[repr(C)]
struct OnDevice {
    /// The device's primary context.
    context: usize,
    function: usize,
    device: Device,
    /// The most dynamic shared memory that the driver has been told of.
    shared_bytes: AtomicU32,
    plain: Option<PlainSignature>,
    limits: Limits,
}

/// What the driver says of a kernel on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Threads that a block may have.
    pub max_threads_per_block: u32,
    /// Bytes of shared memory that the kernel declares.
    pub shared_bytes: u32,
    /// Bytes of constant memory.
    pub const_bytes: u32,
    /// Bytes of local memory of each thread, where registers do not suffice.
    pub local_bytes: u32,
    /// Registers of each thread.
    pub registers: u32,
    /// The PTX that it was compiled from, such as 80 for 8.0.
    pub ptx_version: u32,
    /// The architecture that it was compiled for, such as 90 for 9.0.
    pub binary_version: u32,
}

/// Dynamic shared memory that needs no permission.
const USUAL_SHARED_BYTES: u32 = 48 * 1024;

impl Kernel {
    pub(super) fn new(module: Module, name: &str, signature: Option<Signature>) -> Self {
        Self(Arc::new(Inner { module, name: name.into(), signature, found: OnceLock::new() }))
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.0.module
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The signature that was given.
    pub fn given_signature(&self) -> Option<&Signature> {
        self.0.signature.as_ref()
    }

    /// The parameters: as the signature says, where the driver says they are. Asks the driver the first time.
    #[inline]
    pub fn signature(&self) -> Result<&Signature, LaunchError> {
        Ok(&self.found()?.signature)
    }

    #[inline]
    fn found(&self) -> Result<&Found, LaunchError> {
        match self.0.found.get() {
            Some(found) => Ok(found),
            None => self.find(),
        }
    }

    #[cold]
    fn find(&self) -> Result<&Found, LaunchError> {
        let Inner { module, name, signature, found } = &*self.0;
        let api = Api::get()?;
        // What a kernel takes belongs to no device, but a driver that loads lazily may want a context to load it into.
        let _guard = Device::current()?.enter()?;
        let kernel = module.find(api, name)?;
        let mut layout = Ok(Vec::new());
        unaffected_by_captures(|| {
            layout = self::layout(api, kernel as sys::CUkernel);
            Ok(())
        })?;
        let signature = match (signature, layout) {
            (Some(signature), Ok(layout)) => signature.at(&layout, name)?,
            // An older driver finds out at the launch whether the size of all is right.
            (Some(signature), Err(error)) if does_not_tell(&error) => signature.clone(),
            (_, Err(error)) => return Err(error.into()),
            (None, Ok(layout)) => Signature::from_layout(&layout),
        };
        let devices = (0..api.device_count()).map(|_| OnceLock::new()).collect();
        Ok(found.get_or_init(|| Found { api, devices, kernel, signature }))
    }

    #[inline]
    fn on_device<'a>(&'a self, found: &'a Found, device: Device) -> Result<&'a OnDevice, LaunchError> {
        let count = found.devices.len();
        let ordinal = device.ordinal();
        let known = found.devices.get(ordinal as usize).ok_or(DriverError::NoSuchDevice { ordinal, count })?;
        match known.get() {
            Some(on_device) => Ok(on_device),
            None => self.find_on(found, device, known),
        }
    }

    /// The device's context is current.
    #[cold]
    fn find_on<'a>(
        &self,
        found: &Found,
        device: Device,
        known: &'a OnceLock<OnDevice>,
    ) -> Result<&'a OnDevice, LaunchError> {
        let api = Api::get()?;
        let mut function: sys::CUfunction = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable; the kernel's library is loaded as long as its module is kept.
        unaffected_by_captures(|| unsafe { api.cuKernelGetFunction(&raw mut function, found.kernel as sys::CUkernel) })
            .map_err(|error| self.0.module.not_loaded(error, device, &self.0.module.log()))?;
        let limits = limits(api, found.kernel as sys::CUkernel, device)?;
        let context = api.current_context()?;
        let shared_bytes = AtomicU32::new(USUAL_SHARED_BYTES.saturating_sub(limits.static_shared_bytes));
        let (function, plain) = (function as usize, PlainSignature::of(&found.signature));
        Ok(known.get_or_init(|| OnDevice { context, function, device, shared_bytes, plain, limits }))
    }

    /// What the driver says of the kernel on a device.
    pub fn attributes(&self, device: Device) -> Result<Attributes, LaunchError> {
        use sys::CUfunction_attribute as Attribute;
        let found = self.found()?;
        let _guard = device.enter()?;
        self.on_device(found, device)?;
        let api = Api::get()?;
        let number = api.device(device)?;
        let attribute = |attribute| api.kernel_attribute(found.kernel as sys::CUkernel, attribute, number);
        Ok(Attributes {
            max_threads_per_block: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            const_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            ptx_version: attribute(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
            binary_version: attribute(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        })
    }

    /// The limits that launches on a device are held against.
    pub fn limits(&self, device: Device) -> Result<&Limits, LaunchError> {
        let found = self.found()?;
        let _guard = device.enter()?;
        Ok(&self.on_device(found, device)?.limits)
    }

    /// Puts a launch on a stream of `device`, whose context is made current for the call.
    ///
    /// # Safety
    /// The arguments are what the kernel takes: addresses of memory that the device can use until the launch is done, with
    /// as many elements as the kernel touches. `stream` is one of the device.
    pub unsafe fn launch(
        &self,
        arguments: &Arguments,
        config: &LaunchConfig,
        device: Device,
        stream: &Stream,
    ) -> Result<(), LaunchError> {
        let _guard = device.enter_often()?;
        // SAFETY: as the caller promises, and the context is current.
        unsafe { self.launch_here(arguments, config, device, stream) }
    }

    /// The same in the context that is current.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), and the device's primary context is current.
    pub(super) unsafe fn launch_here(
        &self,
        arguments: &Arguments,
        config: &LaunchConfig,
        device: Device,
        stream: &Stream,
    ) -> Result<(), LaunchError> {
        let found = self.found()?;
        let on_device = self.on_device(found, device)?;
        config.check(&on_device.limits)?;
        if config.shared_bytes > on_device.shared_bytes.load(Ordering::Relaxed) {
            allow_shared_bytes(on_device, config.shared_bytes)?;
        }
        // SAFETY: as the caller promises, and the function is of the device whose context is current.
        unsafe { submit(found.api, on_device.function, arguments.bytes(), config, stream.handle()) }
            .map_err(|error| self.not_launched(error, on_device, config))
    }

    /// The kernel on the device whose primary context is current in this thread, if it was launched or asked about there
    /// before, has plain parameters only, and [the driver can be used as ever](cuwheel_device_array::is_usual).
    #[inline]
    pub fn ready(&self) -> Option<ReadyKernel<'_>> {
        let found = self.0.found.get().filter(|_| is_usual())?;
        let context = found.api.current_context().ok()?;
        let is_here = |on_device: &&OnDevice| on_device.context == context;
        let on_device = found.devices.iter().filter_map(OnceLock::get).find(is_here)?;
        Some(ReadyKernel { kernel: self, api: found.api, on_device, signature: on_device.plain.as_ref()? })
    }

    /// What the driver's refusal of a launch means.
    #[cold]
    fn not_launched(&self, error: DriverError, on_device: &OnDevice, config: &LaunchConfig) -> LaunchError {
        let what = || format!("kernel {:?} was not launched with {config}", self.name());
        let remedy = match &error {
            DriverError::Cuda(error) => remedy(error, on_device, config),
            _ => String::new(),
        };
        LaunchError::refused(error, what, || remedy)
    }
}

/// A kernel where nothing is left to be done before it is launched: on the device of the current context.
#[derive(Clone, Copy)]
pub struct ReadyKernel<'a> {
    kernel: &'a Kernel,
    api: Api,
    on_device: &'a OnDevice,
    signature: &'a PlainSignature,
}

impl ReadyKernel<'_> {
    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        self.on_device.device
    }

    /// The context, a `CUcontext`: the primary one of the device.
    #[inline]
    pub fn context(&self) -> usize {
        self.on_device.context
    }

    /// The parameters.
    #[inline]
    pub fn signature(&self) -> &PlainSignature {
        self.signature
    }

    /// Whether a configuration has nothing but grid, block and shared memory, and fits.
    #[inline]
    pub fn fits(&self, config: &LaunchConfig) -> bool {
        config.is_plain()
            && config.check(&self.on_device.limits).is_ok()
            && config.shared_bytes <= self.on_device.shared_bytes.load(Ordering::Relaxed)
    }

    /// Puts a launch on a stream, with the parameters packed one behind the other.
    ///
    /// # Safety
    /// The context has been current since [`Kernel::ready`], and the configuration [fits](Self::fits). `bytes` are as many as
    /// the signature says; what is in them and the stream are as for [`Kernel::launch`], or a default stream's handle.
    #[inline]
    pub unsafe fn launch(&self, bytes: &[u8], config: &LaunchConfig, stream: usize) -> Result<(), Box<LaunchError>> {
        // SAFETY: as the caller promises.
        match unsafe { submit_with(self.api, self.on_device.function, bytes, config, stream, NO_ATTRIBUTES) } {
            Ok(()) => Ok(()),
            Err(error) => Err(Box::new(self.kernel.not_launched(error, self.on_device, config))),
        }
    }
}

/// Tells the driver that the kernel uses more shared memory than usual.
#[cold]
fn allow_shared_bytes(on_device: &OnDevice, shared_bytes: u32) -> Result<(), LaunchError> {
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let value = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
    // SAFETY: the function is one of a library that is loaded.
    unsafe { Api::get()?.cuFuncSetAttribute(on_device.function as sys::CUfunction, attribute, value) }?;
    on_device.shared_bytes.fetch_max(shared_bytes, Ordering::Relaxed);
    Ok(())
}

/// Attributes of a launch as the driver takes them, a number and an address: none.
const NO_ATTRIBUTES: (u32, *mut sys::CUlaunchAttribute) = (0, std::ptr::null_mut());

/// Calls the driver.
///
/// Of its two functions `cuLaunchKernelEx` takes less time, also for launches that `cuLaunchKernel` could make.
///
/// # Safety
/// As for [`Kernel::launch`]; the context of the function is current.
#[inline]
pub(super) unsafe fn submit(
    api: Api,
    function: usize,
    bytes: &[u8],
    config: &LaunchConfig,
    stream: usize,
) -> Result<(), DriverError> {
    if config.is_plain() {
        // SAFETY: as the caller promises; there are no attributes.
        unsafe { submit_with(api, function, bytes, config, stream, NO_ATTRIBUTES) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { submit_with_attributes(api, function, bytes, config, stream) }
    }
}

/// The same with clusters or attributes. Apart, so that it takes no room from the launches without.
///
/// # Safety
/// As for [`submit`].
#[cold]
#[inline(never)]
unsafe fn submit_with_attributes(
    api: Api,
    function: usize,
    bytes: &[u8],
    config: &LaunchConfig,
    stream: usize,
) -> Result<(), DriverError> {
    let mut attributes = RawAttributes::new(config);
    // SAFETY: as the caller promises; the attributes are a local variable.
    unsafe { submit_with(api, function, bytes, config, stream, attributes.as_raw()) }
}

/// # Safety
/// As for [`submit`]; there are as many attributes as it says.
#[inline]
unsafe fn submit_with(
    api: Api,
    function: usize,
    bytes: &[u8],
    config: &LaunchConfig,
    stream: usize,
    (count, attributes): (u32, *mut sys::CUlaunchAttribute),
) -> Result<(), DriverError> {
    /// `CU_LAUNCH_PARAM_*` of `cuda.h`.
    const BUFFER_POINTER: *mut c_void = std::ptr::without_provenance_mut(1);
    const BUFFER_SIZE: *mut c_void = std::ptr::without_provenance_mut(2);
    let mut size = bytes.len();
    let mut extra =
        [BUFFER_POINTER, bytes.as_ptr().cast_mut().cast(), BUFFER_SIZE, (&raw mut size).cast(), std::ptr::null_mut()];
    let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (config.grid.sizes(), config.block.sizes());
    let config = sys::CUlaunchConfig {
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: block_x,
        blockDimY: block_y,
        blockDimZ: block_z,
        sharedMemBytes: config.shared_bytes,
        hStream: stream as sys::CUstream,
        attrs: attributes,
        numAttrs: count,
    };
    let (function, each) = (function as sys::CUfunction, std::ptr::null_mut());
    // SAFETY: the configuration is a local variable, and its attributes are as the caller promises; the list ends in a null,
    // and tells of a block of bytes of the size that it says.
    unsafe { api.cuLaunchKernelEx(&raw const config, function, each, extra.as_mut_ptr()) }
}

/// What is known of the cause of a refused launch.
fn remedy(error: &CudaError, on_device: &OnDevice, config: &LaunchConfig) -> String {
    const INVALID_VALUE: u32 = 1;
    const OUT_OF_RESOURCES: u32 = 701;
    const COOPERATIVE_TOO_LARGE: u32 = 720;
    const INVALID_CLUSTER_SIZE: u32 = 912;
    let limits = &on_device.limits;
    match error.code {
        COOPERATIVE_TOO_LARGE => {
            let (blocks, most) = (config.grid.count(), resident_blocks(on_device, config));
            format!(
                "a cooperative grid has to fit on the device at once: {blocks} blocks were asked for, and {most} fit on \
                 {}; let each block do more",
                limits.device
            )
        }
        OUT_OF_RESOURCES => {
            "a block needs more registers or shared memory than a multiprocessor has; use smaller blocks".to_owned()
        }
        INVALID_CLUSTER_SIZE => {
            let blocks = config.cluster.map_or(1, super::Extent::count);
            format!("a cluster of {blocks} blocks is more than {} has room for; 8 blocks always fit", limits.device)
        }
        INVALID_VALUE if !config.attributes.is_empty() => {
            "no limit that is known is exceeded; an attribute may be one that the driver or the device does not have"
                .to_owned()
        }
        INVALID_VALUE => {
            "no limit that is known is exceeded; see that the signature has all parameters of the kernel".to_owned()
        }
        _ if error.is_refused_by_capture() => "launch before or after the capture of the stream".to_owned(),
        _ => "run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the cause".to_owned(),
    }
}

/// The number of blocks that the device runs at a time.
fn resident_blocks(on_device: &OnDevice, config: &LaunchConfig) -> u64 {
    let mut blocks = 0;
    let threads = i32::try_from(config.block.count()).unwrap_or(i32::MAX);
    let count = Api::get().and_then(|api| {
        let function = on_device.function as sys::CUfunction;
        let shared = config.shared_bytes as usize;
        // SAFETY: the pointer is to a local variable, and the function is one of a library that is loaded.
        unsafe { api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function, threads, shared) }
    });
    count.map_or(0, |()| u64::try_from(blocks).unwrap_or(0) * u64::from(on_device.limits.multiprocessors))
}

/// Whether the driver cannot say what a kernel takes, rather than failing to.
fn does_not_tell(error: &DriverError) -> bool {
    /// `CUDA_ERROR_NOT_FOUND` and `CUDA_ERROR_NOT_SUPPORTED`.
    const CODES: [u32; 2] = [500, 801];
    match error {
        DriverError::MissingSymbol { .. } => true,
        DriverError::Cuda(error) => CODES.contains(&error.code),
        _ => false,
    }
}

/// Offset and size of each parameter, as the driver tells from CUDA 12.4 on.
pub(super) fn layout(api: Api, kernel: sys::CUkernel) -> Result<Vec<(usize, usize)>, DriverError> {
    /// `CUDA_ERROR_INVALID_VALUE`: there is no such parameter.
    const INVALID_VALUE: u32 = 1;
    let mut layout = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the pointers are to local variables; the kernel's library is loaded.
        match unsafe { api.cuKernelGetParamInfo(kernel, layout.len(), &raw mut offset, &raw mut size) } {
            Ok(()) => layout.push((offset, size)),
            Err(DriverError::Cuda(error)) if error.code == INVALID_VALUE => return Ok(layout),
            Err(error) => return Err(error),
        }
    }
}

fn limits(api: Api, kernel: sys::CUkernel, device: Device) -> Result<Limits, DriverError> {
    use sys::CUdevice_attribute as Of;
    use sys::CUfunction_attribute as OfKernel;
    let number = api.device(device)?;
    let of = |attribute| api.device_attribute(number, attribute);
    let of_kernel = |attribute| api.kernel_attribute(kernel, attribute, number);
    Ok(Limits {
        device,
        grid: [
            of(Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            of(Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            of(Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        block: [
            of(Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            of(Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            of(Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        threads_per_block: of(Of::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        kernel_threads_per_block: of_kernel(OfKernel::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        shared_bytes: of(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        static_shared_bytes: of_kernel(OfKernel::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        multiprocessors: of(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clusters: of(Of::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0,
        cooperative: of(Of::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
    })
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.name == other.0.name && self.0.signature == other.0.signature && self.0.module.is(&other.0.module)
    }
}

impl Eq for Kernel {}

impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The image is left out: it is long, and equal kernels have equal names.
        self.0.name.hash(state);
        self.0.signature.hash(state);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kernel").field("name", &self.0.name).field("module", &self.0.module).finish()
    }
}
