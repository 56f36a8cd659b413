//! `cuStream*`, but for captures, and `cuLaunchHostFunc`.

use super::Out;
use super::exports::exports;
use super::pools::{LOCATION_DEVICE, Location};
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::memory::MemoryKind;

/// `CU_DEVICE_CPU`.
const HOST_DEVICE: i32 = -1;
use crate::work::{HostCall, Work};

exports! {
    [2000 Normal] fn cuStreamCreate(stream: Out<u64>, flags: u32) |driver| {
        stream.require()?;
        stream.set(driver.create_stream(flags, 0)?)
    }

    [5050 Normal] fn cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: i32) |driver| {
        stream.require()?;
        stream.set(driver.create_stream(flags, priority)?)
    }

    [4000 Normal] fn cuStreamDestroy_v2(stream: u64) |driver| { driver.destroy_stream(stream) }

    [2000 Normal cuStreamSynchronize_ptsz] fn cuStreamSynchronize(stream: u64) |driver| {
        driver.synchronise_stream(stream)
    }

    [2000 Normal cuStreamQuery_ptsz] fn cuStreamQuery(stream: u64) |driver| { driver.synchronise_stream(stream) }

    [3020 Normal cuStreamWaitEvent_ptsz] fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32) |driver| {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        driver.wait_event(stream, event)
    }

    [5050 Normal cuStreamGetPriority_ptsz] fn cuStreamGetPriority(stream: u64, priority: Out<i32>) |driver| {
        let handle = driver.stream_handle(stream)?;
        priority.set(driver.stream(handle)?.priority)
    }

    [5050 Normal cuStreamGetFlags_ptsz] fn cuStreamGetFlags(stream: u64, flags: Out<u32>) |driver| {
        let handle = driver.stream_handle(stream)?;
        flags.set(driver.stream(handle)?.flags)
    }

    [12000 Normal cuStreamGetId_ptsz] fn cuStreamGetId(stream: u64, id: Out<u64>) |driver| {
        let handle = driver.stream_handle(stream)?;
        id.set(driver.stream(handle)?.id)
    }

    [9020 Normal cuStreamGetCtx_ptsz] fn cuStreamGetCtx(stream: u64, context: Out<u64>) |driver| {
        let handle = driver.stream_handle(stream)?;
        context.set(driver.stream(handle)?.context)
    }

    [12050 Normal cuStreamGetCtx_v2_ptsz] fn cuStreamGetCtx_v2(stream: u64, context: Out<u64>, green: Out<u64>)
    |driver| {
        let handle = driver.stream_handle(stream)?;
        green.set_if_wanted(0);
        context.set(driver.stream(handle)?.context)
    }

    [12080 Normal cuStreamGetDevice_ptsz] fn cuStreamGetDevice(stream: u64, device: Out<i32>) |driver| {
        let handle = driver.stream_handle(stream)?;
        device.set(i32::try_from(driver.stream(handle)?.device).map_err(|_| Code::INVALID_DEVICE)?)
    }

    // Where managed memory is does not show; that it is managed memory, and its place on the stream, do.
    [8000 Normal cuMemPrefetchAsync_ptsz] fn cuMemPrefetchAsync(address: u64, size: usize, device: i32, stream: u64)
    |driver| {
        if device != HOST_DEVICE {
            driver.device(device)?;
        }
        prefetch(driver, address, size, stream)
    }

    [12020 Normal cuMemPrefetchAsync_v2_ptsz] fn cuMemPrefetchAsync_v2(
        address: u64, size: usize, location: Location, flags: u32, stream: u64,
    ) |driver| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if location.kind == LOCATION_DEVICE {
            driver.device(location.id)?;
        }
        prefetch(driver, address, size, stream)
    }

    [8000 Normal] fn cuMemAdvise(address: u64, size: usize, _advice: u32, _device: i32) |driver| {
        managed(driver, address, size)
    }

    [12020 Normal] fn cuMemAdvise_v2(address: u64, size: usize, _advice: u32, _location: Location) |driver| {
        managed(driver, address, size)
    }

    // All work is done at once, and what it would hold up is not modelled.
    [6000 Normal cuStreamAttachMemAsync_ptsz] fn cuStreamAttachMemAsync(
        stream: u64, address: u64, length: usize, flags: u32,
    ) |driver| {
        let handle = driver.stream_handle(stream)?;
        let whole = driver.memory.get(address).filter(|known| known.kind == MemoryKind::Managed);
        if whole.is_none_or(|known| length != 0 && length as u64 != known.size) || !matches!(flags, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        driver.submit(handle, Work::Mark)
    }

    // Unlike `cuLaunchHostFunc`, not in a capture.
    [5000 Normal cuStreamAddCallback_ptsz] fn cuStreamAddCallback(
        stream: u64, function: Option<unsafe extern "C" fn(u64, u32, usize)>, argument: usize, flags: u32,
    ) |driver| {
        let handle = driver.stream_handle(stream)?;
        let function = function.filter(|_| flags == 0).ok_or(Code::INVALID_VALUE)?;
        if let Some(capture) = driver.stream(handle)?.capture {
            driver.invalidate_captures(|known| known.id == capture);
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        driver.submit(handle, Work::HostCall(HostCall::Callback { function, stream, argument }))
    }

    [10000 Normal cuLaunchHostFunc_ptsz] fn cuLaunchHostFunc(
        stream: u64, function: Option<unsafe extern "C" fn(usize)>, argument: usize,
    ) |driver| {
        let handle = driver.stream_handle(stream)?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        driver.submit(handle, Work::HostCall(HostCall::Function { function, argument }))
    }
}

/// Whether so many bytes from an address are managed memory.
fn managed(driver: &Driver, address: u64, size: usize) -> Outcome {
    let known =
        driver.memory.get(address).filter(|known| known.kind == MemoryKind::Managed).ok_or(Code::INVALID_VALUE)?;
    let fits = address.checked_add(size as u64).is_some_and(|end| end <= known.end());
    if fits { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

fn prefetch(driver: &mut Driver, address: u64, size: usize, stream: u64) -> Outcome {
    managed(driver, address, size)?;
    let stream = driver.stream_handle(stream)?;
    driver.submit(stream, Work::Mark)
}
