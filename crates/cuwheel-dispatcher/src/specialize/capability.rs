//! Compute capabilities of devices, asked once.

use std::sync::OnceLock;

use cuwheel_device_array::{Device, DriverError};

/// The compute capability of a device, 90 for 9.0.
#[inline]
pub fn capability(device: Device) -> Result<u32, DriverError> {
    static KNOWN: OnceLock<Box<[OnceLock<u32>]>> = OnceLock::new();
    let place = KNOWN.get().and_then(|known| known.get(device.ordinal() as usize));
    if let Some(number) = place.and_then(OnceLock::get) {
        return Ok(*number);
    }
    let count = Device::count()?;
    let known = KNOWN.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
    let (major, minor) = device.compute_capability()?;
    let number = u32::try_from(major * 10 + minor).unwrap_or(0);
    Ok(*known.get(device.ordinal() as usize).map_or(&number, |place| place.get_or_init(|| number)))
}
