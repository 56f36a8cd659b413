//! Arrays as most are, for who needs no more than the address of their elements: in the memory of a device, in the order of C,
//! described by the exchange table of their class.
//!
//! Any other array is `None` here, and so is what is wrong with one. Who gets that asks in a way that reads them all, and says
//! what is wrong.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

use cuwheel_device_array::{DType, Device};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::abi::{DLDataTypeCode, DLDeviceType, DLTensor};
use crate::lookup::known_of;
use crate::table::Table;
use crate::tensor::MOST_DIMENSIONS;

/// An array of which only this is needed.
#[derive(Debug, Clone, Copy)]
pub struct UsualArray {
    /// The address of the first element.
    pub pointer: u64,
    /// The handle of the stream that its producer works on.
    pub stream: usize,
}

/// Reads the arrays of one call, all on one device. Between them no code runs but that of their producers.
#[derive(Debug)]
pub struct UsualArrays {
    device: Device,
    class: Option<Class>,
}

/// The class of the last array.
#[derive(Debug, Clone, Copy)]
struct Class {
    address: NonNull<ffi::PyTypeObject>,
    table: Table,
    has_lazy_views: bool,
    /// The stream that it works on on the device, once it was asked.
    stream: Option<usize>,
}

impl UsualArrays {
    /// Reads arrays in the memory of `device`.
    #[inline]
    pub fn on(device: Device) -> Self {
        Self { device, class: None }
    }

    /// An array with elements of the type with these code, bits and lanes, or of any type. An exception that its producer
    /// raised is gone.
    #[inline(never)]
    pub fn read(&mut self, object: &Bound<'_, PyAny>, elements: Option<(u8, u8, u16)>) -> Option<UsualArray> {
        let py = object.py();
        let class = NonNull::new(object.get_type_ptr())?;
        let of_class = match &mut self.class {
            Some(known) if known.address == class => known,
            known => known.insert(Class::of(object, class)?),
        };
        let mut place = MaybeUninit::uninit();
        let description = usable(of_class.table.view(object, &mut place)?)?;
        let pointer = pointer(description, self.device, elements, of_class.has_lazy_views)?;
        let stream = match of_class.stream {
            Some(stream) => stream,
            None => *of_class.stream.insert(usable(of_class.table.current_stream(py, description.device)?)?),
        };
        Some(UsualArray { pointer, stream })
    }
}

impl Class {
    #[inline]
    fn of(object: &Bound<'_, PyAny>, address: NonNull<ffi::PyTypeObject>) -> Option<Self> {
        let known = usable(known_of(object))?;
        Some(Self { address, table: known.table?, has_lazy_views: known.has_lazy_views, stream: None })
    }
}

#[inline]
fn usable<T>(result: PyResult<T>) -> Option<T> {
    #[cold]
    fn discard(error: PyErr) {
        // PyO3 drops references at once only where it knows that the thread is attached, which calls do not tell it.
        Python::attach(|_| drop(error));
    }

    match result {
        Ok(value) => Some(value),
        Err(error) => {
            discard(error);
            None
        }
    }
}

/// The address of the first element of a usual array. What is left out is read more closely elsewhere.
#[inline]
fn pointer(tensor: &DLTensor, device: Device, elements: Option<(u8, u8, u16)>, has_lazy_views: bool) -> Option<u64> {
    let given @ (code, bits, lanes) = (tensor.dtype.code.0, tensor.dtype.bits, tensor.dtype.lanes);
    let is_of_type =
        elements.map_or_else(|| DType::from_dlpack(code, bits, lanes).is_ok(), |elements| elements == given);
    let is_usual = tensor.device.device_type == DLDeviceType::CUDA
        && u32::try_from(tensor.device.device_id) == Ok(device.ordinal())
        && is_of_type
        // What may be a conjugate.
        && !(has_lazy_views && code == DLDataTypeCode::COMPLEX.0);
    let count = count_in_c_order(tensor).filter(|&count| is_usual && count > u64::from(has_lazy_views))?;
    let pointer = (tensor.data.addr() as u64).checked_add(tensor.byte_offset).filter(|_| !tensor.data.is_null())?;
    let size_bytes = count.checked_mul((u64::from(bits) * u64::from(lanes)).div_ceil(8))?;
    pointer.checked_add(size_bytes).map(|_end| pointer)
}

/// The number of elements, if they lie in the order of C.
#[inline]
fn count_in_c_order(tensor: &DLTensor) -> Option<u64> {
    let ndim = usize::try_from(tensor.ndim).ok().filter(|_| tensor.ndim <= MOST_DIMENSIONS)?;
    if ndim == 0 {
        return Some(1);
    }
    if tensor.shape.is_null() || tensor.strides.is_null() {
        return None;
    }
    // SAFETY: not null, and a producer describes as many dimensions as it says, in memory that it leaves alone while a
    // consumer looks at an array.
    let (shape, strides) =
        unsafe { (slice::from_raw_parts(tensor.shape, ndim), slice::from_raw_parts(tensor.strides, ndim)) };
    let mut count = 1_i64;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size < 1 || stride != count && size != 1 {
            return None;
        }
        count = count.checked_mul(size)?;
    }
    u64::try_from(count).ok()
}
