//! `cuDevice*`.

use std::ffi::c_char;

use super::exports::exports;
use super::{Out, Text};
use crate::device::NAME;
use crate::error::{Code, Outcome};

exports! {
    [2000 Setup] fn cuDeviceGet(device: Out<i32>, ordinal: i32) |driver| {
        driver.device(ordinal)?;
        device.set(ordinal)
    }

    [2000 Setup] fn cuDeviceGetCount(count: Out<i32>) |driver| {
        count.set(i32::try_from(driver.devices.len()).map_err(|_| Code::INVALID_VALUE)?)
    }

    [2000 Setup] fn cuDeviceGetName(name: Out<c_char>, length: i32, device: i32) |driver| {
        driver.device(device)?;
        set_text(&name, length, NAME)
    }

    [9020 Setup] fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) |driver| { uuid.set(driver.device_uuid(device)?) }

    [11040 Setup] fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) |driver| {
        uuid.set(driver.device_uuid(device)?)
    }

    [3020 Setup] fn cuDeviceTotalMem_v2(size: Out<usize>, device: i32) |driver| {
        driver.device(device)?;
        size.set(crate::index(driver.settings.memory_bytes))
    }

    [2000 Setup] fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) |driver| {
        value.set(driver.device_attribute(attribute, device)?)
    }

    [2000 Setup] fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) |driver| {
        driver.device(device)?;
        let (first, second) = driver.settings.compute_capability;
        major.set(first)?;
        minor.set(second)
    }

    [4010 Setup] fn cuDeviceGetPCIBusId(name: Out<c_char>, length: i32, device: i32) |driver| {
        let text = driver.device_bus_id(device)?;
        set_text(&name, length, &text)
    }

    [4010 Setup] fn cuDeviceGetByPCIBusId(device: Out<i32>, bus_id: Text) |driver| {
        device.set(driver.device_by_bus_id(&bus_id.get()?)?)
    }

    [4000 Setup] fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) |driver| {
        driver.device(device)?;
        driver.device(peer)?;
        can.set(i32::from(device != peer))
    }

    [8000 Setup] fn cuDeviceGetP2PAttribute(value: Out<i32>, attribute: u32, source: i32, destination: i32) |driver| {
        driver.device(source)?;
        driver.device(destination)?;
        if source == destination || !(1..=5).contains(&attribute) {
            return Err(Code::INVALID_VALUE);
        }
        value.set(i32::from(attribute != 4))
    }

    [11020 Setup] fn cuDeviceGetDefaultMemPool(pool: Out<u64>, device: i32) |driver| {
        pool.set(driver.device(device)?.default_pool)
    }

    [11020 Setup] fn cuDeviceGetMemPool(pool: Out<u64>, device: i32) |driver| { pool.set(driver.device(device)?.pool) }

    [11020 Setup] fn cuDeviceSetMemPool(device: i32, pool: u64) |driver| { driver.set_device_pool(device, pool) }

    [7000 Setup] fn cuDevicePrimaryCtxRetain(context: Out<u64>, device: i32) |driver| {
        context.require()?;
        context.set(driver.retain_primary(device)?)
    }

    [11000 Setup] fn cuDevicePrimaryCtxRelease_v2(device: i32) |driver| { driver.release_primary(device) }

    [11000 Setup] fn cuDevicePrimaryCtxReset_v2(device: i32) |driver| { driver.reset_primary(device) }

    [11000 Setup] fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) |driver| {
        driver.set_primary_flags(device, flags)
    }

    [7000 Setup] fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) |driver| {
        let (known, is_active) = driver.primary_state(device)?;
        flags.set(known)?;
        active.set(i32::from(is_active))
    }
}

/// Writes as much of a text as fits, ended by a zero.
fn set_text(place: &Out<c_char>, length: i32, text: &str) -> Outcome {
    let room = usize::try_from(length).ok().and_then(|length| length.checked_sub(1)).ok_or(Code::INVALID_VALUE)?;
    let ended: Vec<c_char> =
        text.bytes().take(room).chain([0]).map(|byte| c_char::from_ne_bytes(byte.to_ne_bytes())).collect();
    // SAFETY: the caller says that `length` bytes are there; no more are written.
    unsafe { place.set_all(&ended) }
}
