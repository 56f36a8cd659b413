//! A description of an array by DLPack, checked, and as an [`ArrayView`].
//!
//! Every field may be wrong: whoever can make Python objects can make descriptions.

use std::ffi::c_void;
use std::slice;

use cuwheel_device_array::{
    ArrayParts, ArrayView, DType, DTypeError, Device, Layout, LayoutError, MemoryKind, Order, Stream,
};

use crate::abi::{self, DLDeviceType, DLTensor, DlpackFlags};

/// More dimensions than any library has; a larger number is garbage.
const MOST_DIMENSIONS: i32 = 64;

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TensorError {
    #[error("the tensor is on a {} device; move it to a CUDA device first", abi::device_type_name(*.0))]
    OtherDevice(DLDeviceType),
    #[error("the tensor says that it has {0} dimensions; its producer is at fault")]
    Dimensions(i32),
    #[error("the tensor says that dimension {dimension} has {size} elements; its producer is at fault")]
    NegativeSize { dimension: usize, size: i64 },
    #[error("the tensor has {0} dimensions and no shape; its producer is at fault")]
    NoShape(i32),
    #[error("the tensor has elements and no address; its producer is at fault")]
    NoData,
    #[error("the tensor's offset of {0} bytes leads out of the address space; its producer is at fault")]
    Offset(u64),
    #[error("the tensor's device has the number {0}; its producer is at fault")]
    DeviceNumber(i32),
    #[error(
        "the tensor holds one {0} in each byte, and device arrays pack them; convert it to a packed or a wider type first"
    )]
    PaddedElements(DType),
    #[error(transparent)]
    DType(#[from] DTypeError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// The array that a description is of.
///
/// # Safety
/// `shape` and `strides` of the tensor must each be null or point to as many numbers as it says it has dimensions.
pub(crate) unsafe fn view(tensor: &DLTensor, flags: DlpackFlags) -> Result<ArrayView, TensorError> {
    let (kind, device) = place(tensor)?;
    let dtype = DType::from_dlpack(tensor.dtype.code.0, tensor.dtype.bits, tensor.dtype.lanes)?;
    if flags.contains(DlpackFlags::IS_SUBBYTE_TYPE_PADDED) && dtype.size_bytes().is_none() {
        return Err(TensorError::PaddedElements(dtype));
    }
    // SAFETY: as the caller promises.
    let layout = unsafe { layout(tensor)? };
    let pointer = pointer(tensor, &layout)?;
    let read_only = flags.contains(DlpackFlags::READ_ONLY);
    let parts = ArrayParts { pointer, layout, dtype, kind, device, stream: Stream::LEGACY, read_only };
    Ok(ArrayView::new(parts)?)
}

fn place(tensor: &DLTensor) -> Result<(MemoryKind, Device), TensorError> {
    let kind = match tensor.device.device_type {
        DLDeviceType::CUDA => MemoryKind::Device,
        DLDeviceType::CUDAHOST => MemoryKind::Pinned,
        DLDeviceType::CUDAMANAGED => MemoryKind::Managed,
        DLDeviceType::CPU => MemoryKind::Host,
        other => return Err(TensorError::OtherDevice(other)),
    };
    let number = tensor.device.device_id;
    Ok((kind, Device::new(u32::try_from(number).map_err(|_| TensorError::DeviceNumber(number))?)))
}

/// # Safety
/// As for [`view`].
unsafe fn layout(tensor: &DLTensor) -> Result<Layout, TensorError> {
    let ndim = match usize::try_from(tensor.ndim) {
        Ok(ndim) if tensor.ndim <= MOST_DIMENSIONS => ndim,
        _ => return Err(TensorError::Dimensions(tensor.ndim)),
    };
    if ndim == 0 {
        return Ok(Layout::contiguous(&[], Order::C)?);
    }
    if tensor.shape.is_null() {
        return Err(TensorError::NoShape(tensor.ndim));
    }
    // SAFETY: not null, and as the caller promises.
    let shape = unsafe { slice::from_raw_parts(tensor.shape, ndim) };
    if let Some(dimension) = shape.iter().position(|size| *size < 0) {
        return Err(TensorError::NegativeSize { dimension, size: shape[dimension] });
    }
    // Producers from before DLPack 1.2 leave the strides out for an array in C order.
    if tensor.strides.is_null() {
        return Ok(Layout::contiguous(shape, Order::C)?);
    }
    // SAFETY: not null, and as the caller promises.
    let strides = unsafe { slice::from_raw_parts(tensor.strides, ndim) };
    Ok(Layout::from_elements(shape, strides)?)
}

/// The address of the first element; 0 if there is none, whatever the producer says.
fn pointer(tensor: &DLTensor, layout: &Layout) -> Result<u64, TensorError> {
    if layout.is_empty() {
        return Ok(0);
    }
    let data: *mut c_void = tensor.data;
    if data.is_null() {
        return Err(TensorError::NoData);
    }
    (data.addr() as u64).checked_add(tensor.byte_offset).ok_or(TensorError::Offset(tensor.byte_offset))
}
