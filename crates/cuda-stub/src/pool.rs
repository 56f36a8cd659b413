//! Pools, and memory that is allocated and freed in the order of a stream.

use crate::access::Place;
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::memory::{MemoryKind, Owner};
use crate::work::Work;

/// One pool of device memory.
pub(crate) struct Pool {
    pub(crate) device: usize,
    pub(crate) is_default: bool,
    /// Bytes that stay in the pool when they are not used.
    release_threshold: u64,
    pub(crate) reserved: u64,
    reserved_high: u64,
    pub(crate) used: u64,
    used_high: u64,
    /// The three rules of reuse: following events, opportunistic, internal dependencies.
    reuse: [u32; 3],
    /// `CUmemAccess_flags` for other devices.
    access: Vec<(usize, u32)>,
}

impl Pool {
    pub(crate) fn new(device: usize, is_default: bool) -> Self {
        Self {
            device,
            is_default,
            release_threshold: 0,
            reserved: 0,
            reserved_high: 0,
            used: 0,
            used_high: 0,
            reuse: [1; 3],
            access: Vec::new(),
        }
    }

    fn trim(&mut self, keep: u64) {
        self.reserved = self.reserved.min(keep.max(self.used));
    }

    /// `cuMemPoolGetAttribute`.
    pub(crate) fn attribute(&self, attribute: u32) -> Outcome<u64> {
        Ok(match attribute {
            1..=3 => u64::from(self.reuse[attribute as usize - 1]),
            4 => self.release_threshold,
            5 => self.reserved,
            6 => self.reserved_high,
            7 => self.used,
            8 => self.used_high,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// `cuMemPoolSetAttribute`. The high marks can only be set back to zero.
    pub(crate) fn set_attribute(&mut self, attribute: u32, value: u64) -> Outcome {
        match attribute {
            1..=3 => self.reuse[attribute as usize - 1] = u32::from(value != 0),
            4 => self.release_threshold = value,
            6 if value == 0 => self.reserved_high = self.reserved,
            8 if value == 0 => self.used_high = self.used,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// Whether an attribute is an `int` and not a `cuuint64_t`.
    pub(crate) fn attribute_is_int(attribute: u32) -> bool {
        attribute <= 3
    }

    pub(crate) fn set_access(&mut self, device: usize, flags: u32) -> Outcome {
        if device == self.device && flags != 3 {
            return Err(Code::INVALID_DEVICE);
        }
        self.access.retain(|(known, _)| *known != device);
        self.access.push((device, flags));
        Ok(())
    }

    pub(crate) fn access(&self, device: usize) -> u32 {
        let given = self.access.iter().find(|(known, _)| *known == device).map(|(_, flags)| *flags);
        given.unwrap_or(if device == self.device { 3 } else { 0 })
    }
}

impl Driver {
    pub(crate) fn pool(&mut self, handle: u64) -> Outcome<&mut Pool> {
        self.pools.get_mut(handle).ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn create_pool(&mut self, device: i32) -> Outcome<u64> {
        let device = self.device(device)?.ordinal;
        Ok(self.pools.insert(Pool::new(device, false)))
    }

    /// `cuMemPoolDestroy`. Memory from the pool stays until it is freed.
    pub(crate) fn destroy_pool(&mut self, handle: u64) -> Outcome {
        if self.pool(handle)?.is_default {
            return Err(Code::INVALID_VALUE);
        }
        self.pools.remove(handle);
        for device in self.devices.iter_mut().filter(|device| device.pool == handle) {
            device.pool = device.default_pool;
        }
        Ok(())
    }

    pub(crate) fn set_device_pool(&mut self, device: i32, pool: u64) -> Outcome {
        let ordinal = self.device(device)?.ordinal;
        if self.pool(pool)?.device != ordinal {
            return Err(Code::INVALID_VALUE);
        }
        self.device_mut(device)?.pool = pool;
        Ok(())
    }

    pub(crate) fn trim_pool(&mut self, handle: u64, keep: u64) -> Outcome {
        self.pool(handle)?.trim(keep);
        Ok(())
    }

    /// A synchronisation gives unused memory of pools back, down to their thresholds.
    pub(crate) fn trim_pools(&mut self) {
        for pool in self.pools.values_mut() {
            pool.trim(pool.release_threshold);
        }
    }

    /// `cuMemAllocAsync` and `cuMemAllocFromPoolAsync`; the pool of the stream's device unless one is named.
    pub(crate) fn allocate_async(&mut self, size: u64, pool: Option<u64>, raw_stream: u64) -> Outcome<u64> {
        let stream = self.stream_handle(raw_stream)?;
        let (context, stream_device, capture) = {
            let known = self.stream(stream)?;
            (known.context, known.device, known.capture)
        };
        let pool = pool.unwrap_or(self.devices[stream_device].pool);
        let device = self.pool(pool)?.device;
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.have_memory(device, size)?;
        let owner = Owner { device, context, pool: Some(pool), stream: Some(stream), flags: 0 };
        let origin = self.place_text();
        let address = self.memory.allocate(MemoryKind::Device, size, owner, origin).ok_or(Code::OUT_OF_MEMORY)?;
        let pool = self.pool(pool)?;
        pool.used += size;
        pool.used_high = pool.used_high.max(pool.used);
        pool.reserved = pool.reserved.max(pool.used);
        pool.reserved_high = pool.reserved_high.max(pool.reserved);
        if let Some(capture) = capture {
            self.own_by_capture(capture, address);
        }
        self.submit(stream, Work::Allocate(address))?;
        Ok(address)
    }

    /// Whether a device has `size` bytes left.
    pub(crate) fn have_memory(&self, device: usize, size: u64) -> Outcome {
        let left = self.settings.memory_bytes.saturating_sub(self.memory.used[device]);
        if size > left { Err(Code::OUT_OF_MEMORY) } else { Ok(()) }
    }

    /// `cuMemFreeAsync`.
    pub(crate) fn free_async(&mut self, address: u64, raw_stream: u64) -> Outcome {
        let stream = self.stream_handle(raw_stream)?;
        self.freeable(address)?;
        self.submit(stream, Work::Free(address))
    }

    /// The free itself, when its turn on the stream has come.
    pub(crate) fn free_at(&mut self, stream: u64, address: u64, place: &Place) {
        self.touch_whole(stream, address, place);
        if self.is_of_graph(address) {
            return;
        }
        let by = place.text();
        self.forget_allocation(address, &by);
    }
}
