//! Memory of all kinds: who can reach it, who owns it, and what the driver knows of an address.

mod allocation;
mod attributes;
pub(crate) mod deferred;
mod held;
pub(crate) mod pending;

pub use allocation::{Allocation, AllocationError, unaffected_by_captures};
pub use attributes::{PointerAttributes, pointer_attributes};
pub use deferred::{keep as defer_error, take_deferred_error};
pub use held::hold_until;

/// Who can reach memory, and how it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory of a device, which the host cannot read or write.
    Device,
    /// Host memory that does not move, so that devices can copy from and to it while the host does something else.
    Pinned,
    /// Pinned memory that kernels are meant to read and write directly.
    Mapped,
    /// Memory that moves between host and devices when it is touched.
    Managed,
    /// Ordinary host memory.
    Host,
}

impl MemoryKind {
    /// The name in messages: `device`, `pinned`, `mapped`, `managed` or `host`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Pinned => "pinned",
            Self::Mapped => "mapped",
            Self::Managed => "managed",
            Self::Host => "host",
        }
    }

    /// Whether the host can read and write it at the address that devices use.
    #[inline]
    pub const fn is_host_visible(self) -> bool {
        !matches!(self, Self::Device)
    }

    /// Whether kernels can read and write it.
    #[inline]
    pub const fn is_device_visible(self) -> bool {
        !matches!(self, Self::Host)
    }
}

impl std::fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
