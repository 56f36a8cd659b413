//! What the driver knows of an address that someone passed in.

use std::ffi::{c_int, c_uint, c_void};
use std::ops::Range;

use cudarc::driver::sys;

use super::MemoryKind;
use crate::{Device, Driver, DriverError};

/// What the driver says of an address. Source: `CUpointer_attribute` in `cuda.h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointerAttributes {
    /// The kind of the memory. Mapped memory is not told apart from pinned memory; memory that the driver does not know
    /// is ordinary host memory.
    pub kind: MemoryKind,
    /// The device that the memory is on or belongs to; `None` for memory that the driver does not know.
    pub device: Option<Device>,
    /// Whether it is managed memory.
    pub is_managed: bool,
    /// The `CUcontext` that it belongs to; 0 for memory from pools and memory that the driver does not know.
    pub context: usize,
    /// The addresses of the allocation that it lies in; `None` for memory that the driver does not know.
    pub range: Option<Range<u64>>,
}

/// What the driver knows of the memory at `address`.
pub fn pointer_attributes(address: u64) -> Result<PointerAttributes, DriverError> {
    use sys::CUpointer_attribute_enum as Attribute;
    let driver = Driver::get()?;
    let mut memory_type: c_uint = 0;
    let mut is_managed: c_uint = 0;
    let mut ordinal: c_int = -1;
    let mut context: sys::CUcontext = std::ptr::null_mut();
    let mut start: sys::CUdeviceptr = 0;
    let mut size: usize = 0;
    let mut attributes = [
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        Attribute::CU_POINTER_ATTRIBUTE_CONTEXT,
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    ];
    let mut values: [*mut c_void; 6] = [
        (&raw mut memory_type).cast(),
        (&raw mut is_managed).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut context).cast(),
        (&raw mut start).cast(),
        (&raw mut size).cast(),
    ];
    // SAFETY: there are as many values as attributes, each a variable of the size that `cuda.h` gives for it; the truth
    // value is written as one byte by some drivers and as four by others, and its variable has four, all zero.
    unsafe { driver.cuPointerGetAttributes(6, attributes.as_mut_ptr(), values.as_mut_ptr(), address) }?;
    let device = u32::try_from(ordinal).ok().filter(|_| memory_type != 0).map(Device::new);
    let kind = match memory_type {
        _ if is_managed != 0 => MemoryKind::Managed,
        0 => MemoryKind::Host,
        1 => MemoryKind::Pinned,
        _ => MemoryKind::Device,
    };
    let range = (memory_type != 0).then(|| start..start.saturating_add(size as u64));
    Ok(PointerAttributes { kind, device, is_managed: is_managed != 0, context: context as usize, range })
}
