//! Devices and what they say of themselves: an H200's figures, where the settings say nothing else.

use crate::driver::Driver;
use crate::error::{Code, Outcome};

/// One device.
pub(crate) struct Device {
    pub(crate) ordinal: usize,
    pub(crate) primary: u64,
    pub(crate) default_pool: u64,
    /// What allocations come from unless they name a pool.
    pub(crate) pool: u64,
    /// How often the primary context is retained.
    pub(crate) retained: u64,
}

pub(crate) const NAME: &str = "cuda-stub stand-in for NVIDIA H200";
pub(crate) const MOST_THREADS_PER_BLOCK: u32 = 1024;
pub(crate) const MOST_BLOCK: [u32; 3] = [1024, 1024, 64];
pub(crate) const MOST_GRID: [u32; 3] = [0x7fff_ffff, 65535, 65535];
pub(crate) const SHARED_BYTES_PER_BLOCK: u32 = 49_152;
pub(crate) const SHARED_BYTES_PER_BLOCK_OPT_IN: u32 = 232_448;
pub(crate) const SHARED_BYTES_PER_MULTIPROCESSOR: u32 = 233_472;
pub(crate) const SHARED_BYTES_RESERVED_PER_BLOCK: u32 = 1024;
pub(crate) const MULTIPROCESSORS: u32 = 132;
pub(crate) const THREADS_PER_MULTIPROCESSOR: u32 = 2048;
pub(crate) const BLOCKS_PER_MULTIPROCESSOR: u32 = 32;
pub(crate) const REGISTERS_PER_MULTIPROCESSOR: u32 = 65_536;
pub(crate) const WARP: u32 = 32;
pub(crate) const MOST_BLOCKS_PER_CLUSTER: u32 = 8;
pub(crate) const MOST_BLOCKS_PER_CLUSTER_NON_PORTABLE: u32 = 16;

/// The highest `CUdevice_attribute` that has a value here; some below it have none and read as zero.
const LAST_ATTRIBUTE: u32 = 150;

/// Attributes that are the same for each device, by their numbers in `cuda.h`.
#[rustfmt::skip]
const ATTRIBUTES: &[(u32, u32)] = &[
    (1, MOST_THREADS_PER_BLOCK),
    (2, MOST_BLOCK[0]), (3, MOST_BLOCK[1]), (4, MOST_BLOCK[2]),
    (5, MOST_GRID[0]), (6, MOST_GRID[1]), (7, MOST_GRID[2]),
    (8, SHARED_BYTES_PER_BLOCK), (9, 65_536), (10, WARP), (11, 0x7fff_ffff), (12, 65_536),
    (13, 1_980_000), (14, 512), (15, 1), (16, MULTIPROCESSORS), (19, 1),
    (21, 131_072), (22, 131_072), (23, 65_536), (24, 16_384), (25, 16_384), (26, 16_384),
    (27, 32_768), (28, 32_768), (29, 2_048), (30, 512), (31, 1), (32, 1), (36, 3_201_000), (37, 6_144),
    (38, 62_914_560), (39, THREADS_PER_MULTIPROCESSOR), (40, 3), (41, 1), (51, 32),
    (78, 1), (79, 1), (80, 1), (81, SHARED_BYTES_PER_MULTIPROCESSOR), (82, REGISTERS_PER_MULTIPROCESSOR),
    (83, 1), (87, 2), (89, 1), (90, 1), (91, 1), (95, 1), (96, 1), (97, SHARED_BYTES_PER_BLOCK_OPT_IN),
    (98, 1), (99, 1), (106, BLOCKS_PER_MULTIPROCESSOR), (108, 39_321_600), (109, 134_217_728),
    (111, SHARED_BYTES_RESERVED_PER_BLOCK), (113, 1), (115, 1), (120, 1), (122, 1), (123, 1),
    (126, 4), (129, 1),
];

impl Driver {
    pub(crate) fn device(&self, ordinal: i32) -> Outcome<&Device> {
        usize::try_from(ordinal).ok().and_then(|index| self.devices.get(index)).ok_or(Code::INVALID_DEVICE)
    }

    pub(crate) fn device_mut(&mut self, ordinal: i32) -> Outcome<&mut Device> {
        usize::try_from(ordinal).ok().and_then(|index| self.devices.get_mut(index)).ok_or(Code::INVALID_DEVICE)
    }

    /// `cuDeviceGetAttribute`. A number that no driver knows is an error; one without a value here reads as zero.
    pub(crate) fn device_attribute(&self, attribute: u32, ordinal: i32) -> Outcome<i32> {
        let device = self.device(ordinal)?;
        let (major, minor) = self.settings.compute_capability;
        match attribute {
            0 => Err(Code::INVALID_VALUE),
            33 => Ok(i32::try_from(device.ordinal).map_or(0, |ordinal| ordinal + 1)),
            75 => Ok(major),
            76 => Ok(minor),
            _ if attribute > LAST_ATTRIBUTE => Err(Code::INVALID_VALUE),
            _ => {
                let value = ATTRIBUTES.iter().find(|(number, _)| *number == attribute).map_or(0, |(_, value)| *value);
                Ok(value.cast_signed())
            }
        }
    }

    /// Sixteen bytes that tell devices apart.
    pub(crate) fn device_uuid(&self, ordinal: i32) -> Outcome<[u8; 16]> {
        let device = self.device(ordinal)?;
        let mut uuid = *b"cuda-stub-device";
        uuid[15] = u8::try_from(device.ordinal).unwrap_or(u8::MAX);
        Ok(uuid)
    }

    pub(crate) fn device_bus_id(&self, ordinal: i32) -> Outcome<String> {
        let device = self.device(ordinal)?;
        Ok(format!("0000:{:02x}:00.0", device.ordinal + 1))
    }

    pub(crate) fn device_by_bus_id(&self, bus_id: &str) -> Outcome<i32> {
        let found = (0..).zip(&self.devices).find(|(ordinal, _)| {
            self.device_bus_id(*ordinal)
                .is_ok_and(|known| known.eq_ignore_ascii_case(bus_id) || known[5..].eq_ignore_ascii_case(bus_id))
        });
        found.map(|(ordinal, _)| ordinal).ok_or(Code::INVALID_DEVICE)
    }

    /// Free and total bytes of a device.
    pub(crate) fn memory_info(&self, device: usize) -> (u64, u64) {
        let unused_in_pools: u64 = self
            .pools
            .iter()
            .filter(|(_, pool)| pool.device == device)
            .map(|(_, pool)| pool.reserved - pool.used)
            .sum();
        let total = self.settings.memory_bytes;
        (total.saturating_sub(self.memory.used[device] + unused_in_pools), total)
    }
}
