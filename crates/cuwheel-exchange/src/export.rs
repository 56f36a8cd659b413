//! Our arrays as DLPack tensors.
//!
//! A tensor that is handed out owns a share of the array, in Rust: its deleter needs neither Python nor a thread state,
//! so it may run on any thread and after Python has ended.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use cuwheel_device_array::{Array, ArrayView, Classified, DType, Device, ErrorKind, MemoryKind};

use crate::abi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
    DlpackFlags, VERSION,
};

/// Why an array has no description in DLPack.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ExportError {
    /// The data type is not one of DLPack's.
    #[error("DLPack has no data type for {0}; view the array as bytes first: array.view(\"uint8\")")]
    DType(DType),
    /// A stride is no whole number of elements.
    #[error(
        "DLPack counts strides in elements, and those of this array are no whole number of them; copy the array first"
    )]
    Strides,
    /// The form of export has no place for a flag that the array needs.
    #[error("the array is read-only, which this form of export cannot say; ask for max_version=(1, 0) or newer")]
    ReadOnly,
}

impl Classified for ExportError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Buffer
    }
}

/// DLPack's name of the place where an array is: type and number, which is 0 for memory that the host sees.
pub fn dlpack_device(view: &ArrayView) -> (i32, i32) {
    let device = device(view);
    (device.device_type.0.cast_signed(), device.device_id)
}

#[inline]
pub(crate) fn device(view: &ArrayView) -> DLDevice {
    device_of(view.kind(), view.device())
}

#[inline]
pub(crate) fn device_of(kind: MemoryKind, device: Device) -> DLDevice {
    match kind {
        // A device's number comes from the driver, as an `int`.
        MemoryKind::Device => DLDevice { device_type: DLDeviceType::CUDA, device_id: device.ordinal().cast_signed() },
        MemoryKind::Pinned | MemoryKind::Mapped => DLDevice { device_type: DLDeviceType::CUDAHOST, device_id: 0 },
        MemoryKind::Managed => DLDevice { device_type: DLDeviceType::CUDAMANAGED, device_id: 0 },
        MemoryKind::Host => DLDevice { device_type: DLDeviceType::CPU, device_id: 0 },
    }
}

/// Describes an array on `device`. The result points into `view`, and to nothing that a reader may write to.
pub(crate) fn describe(view: &ArrayView, device: DLDevice) -> Result<DLTensor, ExportError> {
    let dtype = view.dtype();
    let (code, bits, lanes) = dtype.dlpack().ok_or(ExportError::DType(dtype))?;
    let strides = view.strides_elements().ok_or(ExportError::Strides)?;
    let shape = view.shape();
    let is_scalar = shape.is_empty();
    Ok(DLTensor {
        data: ptr::with_exposed_provenance_mut::<c_void>(view.address()),
        device,
        ndim: dimensions(shape),
        dtype: DLDataType { code: DLDataTypeCode(code), bits, lanes },
        shape: if is_scalar { ptr::null_mut() } else { shape.as_ptr().cast_mut() },
        strides: if is_scalar { ptr::null_mut() } else { strides.as_ptr().cast_mut() },
        byte_offset: 0,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "layouts have at most 64 dimensions")]
fn dimensions(shape: &[i64]) -> i32 {
    shape.len() as i32
}

/// A tensor of either kind together with the array that it describes and keeps alive.
struct Exported<T> {
    tensor: T,
    array: Array,
}

/// A tensor that shares `array`, described as being on `device`; it is freed by its deleter only.
pub(crate) fn versioned(
    array: Array,
    device: DLDevice,
    flags: DlpackFlags,
) -> Result<NonNull<DLManagedTensorVersioned>, ExportError> {
    let read_only = if array.is_read_only() { DlpackFlags::READ_ONLY } else { DlpackFlags::empty() };
    boxed(array, device, |dl_tensor, manager_ctx| DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx,
        deleter: Some(delete::<DLManagedTensorVersioned>),
        flags: flags | read_only,
        dl_tensor,
    })
}

/// As [`versioned`], for consumers from before DLPack 1.0, who cannot be told that an array is read-only.
pub(crate) fn legacy(array: Array, device: DLDevice) -> Result<NonNull<DLManagedTensor>, ExportError> {
    if array.is_read_only() {
        return Err(ExportError::ReadOnly);
    }
    boxed(array, device, |dl_tensor, manager_ctx| DLManagedTensor {
        dl_tensor,
        manager_ctx,
        deleter: Some(delete::<DLManagedTensor>),
    })
}

/// Puts the array where it stays, and the tensor that points into it beside it.
fn boxed<T>(
    array: Array,
    device: DLDevice,
    tensor: impl FnOnce(DLTensor, *mut c_void) -> T,
) -> Result<NonNull<T>, ExportError> {
    let mut place = Box::<Exported<T>>::new_uninit();
    let exported = place.as_mut_ptr();
    // SAFETY: `exported` points to memory for one value. The array is written first and never moved again; the tensor is
    // written last, so that an error before leaves nothing that would be dropped twice.
    unsafe {
        (&raw mut (*exported).array).write(array);
        let description = match describe(&(*exported).array, device) {
            Ok(description) => description,
            Err(error) => {
                (&raw mut (*exported).array).drop_in_place();
                return Err(error);
            }
        };
        (&raw mut (*exported).tensor).write(tensor(description, exported.cast()));
        let exported = Box::into_raw(place.assume_init());
        Ok(NonNull::new_unchecked(&raw mut (*exported).tensor))
    }
}

/// The deleter in every tensor that is handed out.
///
/// # Safety
/// `tensor` must be one that [`boxed`] made, and nobody may use it afterwards.
unsafe extern "C" fn delete<T: Managed>(tensor: *mut T) {
    if tensor.is_null() {
        return;
    }
    // SAFETY: the context is the allocation that `boxed` made, and this is its end.
    let exported = unsafe { Box::from_raw((*tensor).context().cast::<Exported<T>>()) };
    // Errors of the driver wait for the next call; a panic must not reach the foreign caller.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(exported)));
}

/// What both kinds of tensor have.
trait Managed {
    fn context(&self) -> *mut c_void;
}

impl Managed for DLManagedTensorVersioned {
    fn context(&self) -> *mut c_void {
        self.manager_ctx
    }
}

impl Managed for DLManagedTensor {
    fn context(&self) -> *mut c_void {
        self.manager_ctx
    }
}
