//! A description of an array by DLPack, checked.
//!
//! Every field may be wrong: whoever can make Python objects can make descriptions.

use std::ffi::c_void;
use std::slice;

use cuwheel_device_array::{DType, DTypeError, Described, Device, Elements, Layout, LayoutError, MemoryKind, Order};

use crate::abi::{self, DLDeviceType, DLTensor, DlpackFlags};

/// More dimensions than any library has; a larger number is garbage.
pub(crate) const MOST_DIMENSIONS: i32 = 64;

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

/// Errors are kept on the heap, so that where there is none the result stays in registers.
type Result<T, E = Box<TensorError>> = std::result::Result<T, E>;

/// What a description says, checked.
///
/// Producers from before DLPack 1.2 leave the strides out for an array in C order; `c_order` is where they are put then.
///
/// # Safety
/// `shape` and `strides` of the tensor must each be null or point to as many numbers as it says it has dimensions, which do
/// not change while the result is used.
#[inline]
pub(crate) unsafe fn described<'a>(
    tensor: &'a DLTensor,
    flags: DlpackFlags,
    c_order: &'a mut Option<Layout>,
) -> Result<Described<'a>> {
    let (kind, device) = place(tensor)?;
    let dtype = match DType::from_dlpack(tensor.dtype.code.0, tensor.dtype.bits, tensor.dtype.lanes) {
        Ok(dtype) => dtype,
        Err(error) => return fail(error),
    };
    if flags.contains(DlpackFlags::IS_SUBBYTE_TYPE_PADDED) && dtype.size_bytes().is_none() {
        return fail(TensorError::PaddedElements(dtype));
    }
    // SAFETY: as the caller promises.
    let elements = unsafe { elements(tensor, c_order)? };
    let pointer = pointer(tensor, elements)?;
    match Described::new(pointer, elements, dtype, kind, device) {
        Ok(described) if flags.contains(DlpackFlags::READ_ONLY) => Ok(described.read_only()),
        Ok(described) => Ok(described),
        Err(error) => fail(error),
    }
}

#[cold]
fn fail<T>(error: impl Into<TensorError>) -> Result<T> {
    Err(Box::new(error.into()))
}

#[inline]
fn place(tensor: &DLTensor) -> Result<(MemoryKind, Device)> {
    let kind = match tensor.device.device_type {
        // The usual one without a table of jumps.
        device_type if device_type == DLDeviceType::CUDA => MemoryKind::Device,
        DLDeviceType::CUDAHOST => MemoryKind::Pinned,
        DLDeviceType::CUDAMANAGED => MemoryKind::Managed,
        DLDeviceType::CPU => MemoryKind::Host,
        other => return fail(TensorError::OtherDevice(other)),
    };
    let number = tensor.device.device_id;
    match u32::try_from(number) {
        Ok(ordinal) => Ok((kind, Device::new(ordinal))),
        Err(_) => fail(TensorError::DeviceNumber(number)),
    }
}

/// # Safety
/// As for [`described`].
#[inline]
unsafe fn elements<'a>(tensor: &'a DLTensor, c_order: &'a mut Option<Layout>) -> Result<Elements<'a>> {
    let ndim = match usize::try_from(tensor.ndim) {
        Ok(ndim) if tensor.ndim <= MOST_DIMENSIONS => ndim,
        _ => return fail(TensorError::Dimensions(tensor.ndim)),
    };
    let (shape, strides): (&[i64], &[i64]) = if ndim == 0 {
        (&[], &[])
    } else if tensor.shape.is_null() {
        return fail(TensorError::NoShape(tensor.ndim));
    } else {
        // SAFETY: not null, and as the caller promises.
        let shape = unsafe { slice::from_raw_parts(tensor.shape, ndim) };
        if tensor.strides.is_null() {
            (shape, in_c_order(shape, c_order)?)
        } else {
            // SAFETY: as above.
            (shape, unsafe { slice::from_raw_parts(tensor.strides, ndim) })
        }
    };
    match Elements::new(shape, strides) {
        Ok(elements) => Ok(elements),
        Err(error) => fail(of_producer(error)),
    }
}

#[cold]
fn in_c_order<'a>(shape: &[i64], c_order: &'a mut Option<Layout>) -> Result<&'a [i64]> {
    let layout = Layout::contiguous(shape, Order::C).or_else(|error| fail(of_producer(error)))?;
    // A layout in C order counts its strides in elements.
    Ok(c_order.insert(layout).strides_elements().unwrap_or_default())
}

/// An error in a shape is the producer's, not the caller's.
fn of_producer(error: LayoutError) -> TensorError {
    match error {
        LayoutError::NegativeSize { axis, size } => TensorError::NegativeSize { dimension: axis, size },
        other => other.into(),
    }
}

/// The address of the first element; 0 if there is none, whatever the producer says.
#[inline]
fn pointer(tensor: &DLTensor, elements: Elements<'_>) -> Result<u64> {
    if elements.is_empty() {
        return Ok(0);
    }
    let data: *mut c_void = tensor.data;
    if data.is_null() {
        return fail(TensorError::NoData);
    }
    match (data.addr() as u64).checked_add(tensor.byte_offset) {
        Some(pointer) => Ok(pointer),
        None => fail(TensorError::Offset(tensor.byte_offset)),
    }
}
