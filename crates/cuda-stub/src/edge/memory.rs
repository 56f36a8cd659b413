//! `cuMemAlloc*`, `cuMemFree*`, `cuMemHost*` and what is asked of memory. Pools are in `pools.rs`, copies in `copies.rs`.

use super::Out;
use super::exports::exports;
use crate::error::Code;

exports! {
    [3020 Unsafe] fn cuMemAlloc_v2(address: Out<u64>, size: usize) |driver| {
        address.require()?;
        address.set(driver.allocate(size as u64)?)
    }

    [3020 Unsafe] fn cuMemAllocPitch_v2(address: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32)
    |driver| {
        address.require()?;
        pitch.require()?;
        let (start, row) = driver.allocate_pitch(width as u64, height as u64, element)?;
        pitch.set(crate::index(row))?;
        address.set(start)
    }

    [3020 Unsafe] fn cuMemFree_v2(address: u64) |driver| { driver.free(address) }

    [3020 Unsafe] fn cuMemAllocHost_v2(address: Out<u64>, size: usize) |driver| {
        address.require()?;
        address.set(driver.allocate_host(size as u64, 0)?)
    }

    [2020 Unsafe] fn cuMemHostAlloc(address: Out<u64>, size: usize, flags: u32) |driver| {
        address.require()?;
        address.set(driver.allocate_host(size as u64, flags)?)
    }

    [2000 Unsafe] fn cuMemFreeHost(address: u64) |driver| { driver.free_host(address) }

    [6050 Unsafe] fn cuMemHostRegister_v2(address: u64, size: usize, flags: u32) |driver| {
        driver.register_host(address, size as u64, flags)
    }

    [4000 Unsafe] fn cuMemHostUnregister(address: u64) |driver| { driver.unregister_host(address) }

    [3020 Normal] fn cuMemHostGetDevicePointer_v2(pointer: Out<u64>, address: u64, flags: u32) |driver| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        pointer.set(driver.device_pointer(address)?)
    }

    [2030 Normal] fn cuMemHostGetFlags(flags: Out<u32>, address: u64) |driver| {
        driver.device_pointer(address)?;
        flags.set(driver.memory.get(address).map_or(0, |known| known.owner.flags))
    }

    [6000 Unsafe] fn cuMemAllocManaged(address: Out<u64>, size: usize, flags: u32) |driver| {
        address.require()?;
        address.set(driver.allocate_managed(size as u64, flags)?)
    }

    [3020 Normal] fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) |driver| {
        let device = driver.current_device()?;
        let (unused, all) = driver.memory_info(device);
        free.set(crate::index(unused))?;
        total.set(crate::index(all))
    }

    [3020 Normal] fn cuMemGetAddressRange_v2(start: Out<u64>, size: Out<usize>, address: u64) |driver| {
        let (first, length) = driver.address_range(address)?;
        start.set_if_wanted(first);
        size.set_if_wanted(crate::index(length));
        Ok(())
    }
}
