//! Devices by their number.

/// A device, by the number that the driver gives it in this process, starting at zero.
///
/// A value of this type does not promise that there is such a device; what needs the device says so when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    ordinal: u32,
}

impl Device {
    /// The device with this number.
    #[inline]
    pub const fn new(ordinal: u32) -> Self {
        Self { ordinal }
    }

    /// The number of the device.
    #[inline]
    pub const fn ordinal(self) -> u32 {
        self.ordinal
    }
}
