//! Tests against the stand-in driver, one at a time: what is alive and what went wrong is asked of the whole process.

use std::sync::MutexGuard;

use cuda::control::Stub;
use cuwheel_device_array::{Array, DType, Device, MemoryKind, Order, Stream, take_deferred_error};

pub(crate) const KINDS: [MemoryKind; 5] =
    [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Mapped, MemoryKind::Managed, MemoryKind::Host];

pub(crate) const FIRST: Device = Device::new(0);
pub(crate) const SECOND: Device = Device::new(1);

/// The only test at work. At its end nothing may be left alive, and nothing may have happened in the wrong order.
pub(crate) struct Session {
    pub(crate) stub: &'static Stub,
    _alone: MutexGuard<'static, ()>,
}

impl Session {
    /// Two devices of 1 GiB each, and an empty record.
    pub(crate) fn start() -> Self {
        let (stub, alone) = Stub::alone();
        take_deferred_error();
        Self { stub, _alone: alone }
    }

    /// How often a function was called since the beginning.
    pub(crate) fn calls(&self, function: &str) -> u64 {
        self.stub.report()["calls"][function].as_u64().unwrap_or(0)
    }

    /// Size and kind of what is allocated.
    pub(crate) fn allocations(&self) -> Vec<(u64, String)> {
        let report = self.stub.report();
        let allocations = report["alive"]["allocations"].as_array().unwrap();
        let described = |allocation: &serde_json::Value| {
            (allocation["size"].as_u64().unwrap(), allocation["kind"].as_str().unwrap().to_owned())
        };
        allocations.iter().map(described).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let report = self.stub.report();
        let alive = &report["alive"];
        assert_eq!(self.allocations(), [], "memory was not freed");
        for object in ["streams", "events", "graphs", "contexts_pushed"] {
            assert_eq!(alive[object], 0, "{object} are left");
        }
        assert_eq!(report["violations"].as_array().unwrap().as_slice(), [] as [serde_json::Value; 0]);
        assert_eq!(take_deferred_error(), None);
    }
}

/// A contiguous array on the first device, in the order of `stream`.
pub(crate) fn empty(shape: &[i64], dtype: DType, kind: MemoryKind, stream: &Stream) -> Array {
    Array::empty(shape, dtype, kind, FIRST, stream, Order::C).unwrap()
}
