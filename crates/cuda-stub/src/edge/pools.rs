//! `cuMemPool*`, `cuMemAllocAsync` and `cuMemFreeAsync`.

use super::exports::exports;
use super::{In, Out};
use crate::error::{Code, Outcome};
use crate::pool::Pool;

/// `CUmemLocationType`.
pub(super) const LOCATION_DEVICE: u32 = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: u32 = 1;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Location {
    pub(super) kind: u32,
    pub(super) id: i32,
}

/// `CUmemPoolProps`, as far as it is looked at.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    allocation_kind: u32,
    handle_kinds: u32,
    location: Location,
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Access {
    location: Location,
    flags: u32,
}

exports! {
    [11020 Normal cuMemAllocAsync_ptsz] fn cuMemAllocAsync(address: Out<u64>, size: usize, stream: u64) |driver| {
        address.require()?;
        address.set(driver.allocate_async(size as u64, None, stream)?)
    }

    [11020 Normal cuMemAllocFromPoolAsync_ptsz] fn cuMemAllocFromPoolAsync(
        address: Out<u64>, size: usize, pool: u64, stream: u64,
    ) |driver| {
        address.require()?;
        address.set(driver.allocate_async(size as u64, Some(pool), stream)?)
    }

    [11020 Normal cuMemFreeAsync_ptsz] fn cuMemFreeAsync(address: u64, stream: u64) |driver| {
        driver.free_async(address, stream)
    }

    [11020 Normal] fn cuMemPoolCreate(pool: Out<u64>, properties: In<Properties>) |driver| {
        pool.require()?;
        let wanted = properties.get()?;
        if wanted.allocation_kind != PINNED || wanted.location.kind != LOCATION_DEVICE {
            return Err(Code::NOT_SUPPORTED);
        }
        pool.set(driver.create_pool(wanted.location.id)?)
    }

    [11020 Normal] fn cuMemPoolDestroy(pool: u64) |driver| { driver.destroy_pool(pool) }

    [11020 Normal] fn cuMemPoolTrimTo(pool: u64, keep: usize) |driver| { driver.trim_pool(pool, keep as u64) }

    [11020 Normal] fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: Out<u8>) |driver| {
        let known = driver.pool(pool)?.attribute(attribute)?;
        set_number(&value, Pool::attribute_is_int(attribute), known)
    }

    [11020 Normal] fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: In<u8>) |driver| {
        let value = get_number(&value, Pool::attribute_is_int(attribute))?;
        driver.pool(pool)?.set_attribute(attribute, value)
    }

    [11020 Normal] fn cuMemPoolSetAccess(pool: u64, access: In<Access>, count: usize) |driver| {
        for index in 0..count {
            // SAFETY: the caller says that `count` items are there.
            let wanted = unsafe { access.item(index) }?;
            let device = driver.device(wanted.location.id)?.ordinal;
            driver.pool(pool)?.set_access(device, wanted.flags)?;
        }
        Ok(())
    }

    [11020 Normal] fn cuMemPoolGetAccess(flags: Out<u32>, pool: u64, location: In<Location>) |driver| {
        let device = driver.device(location.get()?.id)?.ordinal;
        flags.set(driver.pool(pool)?.access(device))
    }
}

/// Writes an `int` or a `cuuint64_t`; which, depends on the attribute that the caller named.
fn set_number(place: &Out<u8>, is_int: bool, value: u64) -> Outcome {
    let bytes = value.to_le_bytes();
    // SAFETY: the caller says that a value of the attribute's size fits.
    unsafe { place.set_all(if is_int { &bytes[..4] } else { &bytes[..] }) }
}

fn get_number(place: &In<u8>, is_int: bool) -> Outcome<u64> {
    let mut bytes = [0; 8];
    for (index, byte) in bytes.iter_mut().enumerate().take(if is_int { 4 } else { 8 }) {
        // SAFETY: the caller says that a value of the attribute's size is there.
        *byte = unsafe { place.item(index) }?;
    }
    Ok(u64::from_le_bytes(bytes))
}
