//! Memory that is not ordered by a stream: device, pinned, registered and managed.

use crate::access::Mode;
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::memory::{Found, MemoryKind, Owner};
use crate::region::Region;

/// `CU_MEMHOSTREGISTER_*` and `CU_MEMHOSTALLOC_*`: the sum of all.
const ALL_HOST_FLAGS: u32 = 0xf;
/// `CU_MEM_ATTACH_GLOBAL` and `CU_MEM_ATTACH_HOST`.
const MANAGED_FLAGS: [u32; 2] = [1, 2];

impl Driver {
    fn owner(&self, flags: u32) -> Outcome<Owner> {
        let context = self.current()?;
        Ok(Owner { device: self.context_device(context)?, context, pool: None, stream: None, flags })
    }

    /// `cuMemAlloc`.
    pub(crate) fn allocate(&mut self, size: u64) -> Outcome<u64> {
        let owner = self.owner(0)?;
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.have_memory(owner.device, size)?;
        let origin = self.place_text();
        self.memory.allocate(MemoryKind::Device, size, owner, origin).ok_or(Code::OUT_OF_MEMORY)
    }

    /// `cuMemAllocPitch`: address, and bytes from row to row.
    pub(crate) fn allocate_pitch(&mut self, width: u64, height: u64, element: u32) -> Outcome<(u64, u64)> {
        if ![4, 8, 16].contains(&element) {
            return Err(Code::INVALID_VALUE);
        }
        let pitch = width.checked_next_multiple_of(512).ok_or(Code::INVALID_VALUE)?;
        let size = pitch.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        Ok((self.allocate(size)?, pitch))
    }

    /// `cuMemHostAlloc`.
    pub(crate) fn allocate_host(&mut self, size: u64, flags: u32) -> Outcome<u64> {
        let owner = self.owner(flags)?;
        if size == 0 || flags & !ALL_HOST_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let origin = self.place_text();
        self.memory.allocate(MemoryKind::Pinned, size, owner, origin).ok_or(Code::OUT_OF_MEMORY)
    }

    /// `cuMemAllocManaged`.
    pub(crate) fn allocate_managed(&mut self, size: u64, flags: u32) -> Outcome<u64> {
        let owner = self.owner(flags)?;
        if size == 0 || !MANAGED_FLAGS.contains(&flags) {
            return Err(Code::INVALID_VALUE);
        }
        let origin = self.place_text();
        self.memory.allocate(MemoryKind::Managed, size, owner, origin).ok_or(Code::OUT_OF_MEMORY)
    }

    /// `cuMemHostRegister`.
    pub(crate) fn register_host(&mut self, address: u64, size: u64, flags: u32) -> Outcome {
        let owner = self.owner(flags)?;
        let end = address.checked_add(size).ok_or(Code::INVALID_VALUE)?;
        if address == 0 || size == 0 || flags & !ALL_HOST_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let overlaps = self.memory.iter().any(|known| known.address < end && address < known.end());
        if overlaps {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let origin = self.place_text();
        self.memory.register(address, size, owner, origin);
        Ok(())
    }

    /// `cuMemHostUnregister`.
    pub(crate) fn unregister_host(&mut self, address: u64) -> Outcome {
        let registered = self
            .memory
            .get(address)
            .is_some_and(|known| known.kind == MemoryKind::Registered && known.address == address);
        if !registered {
            return Err(Code::HOST_MEMORY_NOT_REGISTERED);
        }
        self.check_over(address);
        let by = self.place_text();
        self.forget_allocation(address, &by);
        Ok(())
    }

    /// `cuMemFreeHost`.
    pub(crate) fn free_host(&mut self, address: u64) -> Outcome {
        match self.memory.find(address) {
            Found::Live(known) if known.kind == MemoryKind::Pinned && known.address == address => {}
            Found::Live(known) => {
                let text = format!(
                    "{address:#x} is not the start of pinned memory but lies in {} memory from {}",
                    known.kind.name(),
                    known.origin
                );
                self.violation(text);
                return Err(Code::INVALID_VALUE);
            }
            Found::Stale(text) => {
                self.violation(format_args!("{address:#x} is not live: {text}"));
                return Err(Code::INVALID_VALUE);
            }
            Found::Unknown => return Err(Code::INVALID_VALUE),
        }
        self.synchronise_owner(address);
        let by = self.place_text();
        self.forget_allocation(address, &by);
        Ok(())
    }

    /// `cuMemFree`. It waits for the context, unless the memory came from a pool. No context has to be current, as programs
    /// that end know; another one may not be.
    pub(crate) fn free(&mut self, address: u64) -> Outcome {
        let current = self.current_or_none();
        if address == 0 {
            return Ok(());
        }
        self.freeable(address)?;
        let owner = self.memory.get(address).ok_or(Code::INVALID_VALUE)?.owner;
        if let Some(current) = current.filter(|current| *current != owner.context) {
            self.violation(format_args!(
                "{address:#x} belongs to the context {:#x} of device {}, and {current:#x} is current",
                owner.context, owner.device
            ));
            return Err(Code::INVALID_VALUE);
        }
        if owner.pool.is_some() {
            self.check_over(address);
        } else {
            self.synchronise_owner(address);
        }
        let by = self.place_text();
        self.forget_allocation(address, &by);
        Ok(())
    }

    fn synchronise_owner(&mut self, address: u64) {
        if let Some(known) = self.memory.get(address) {
            let context = known.owner.context;
            self.host_learns_context(context);
        }
    }

    /// Whether `address` is the start of live memory that `cuMemFree` or `cuMemFreeAsync` may end.
    pub(crate) fn freeable(&mut self, address: u64) -> Outcome {
        let text = match self.memory.find(address) {
            Found::Live(known) if known.address != address => {
                format!("{address:#x} lies {} bytes into memory from {}", address - known.address, known.origin)
            }
            Found::Live(known) if matches!(known.kind, MemoryKind::Device | MemoryKind::Managed) => return Ok(()),
            Found::Live(known) => format!("{address:#x} is {} memory from {}", known.kind.name(), known.origin),
            Found::Stale(text) => format!("{address:#x} is not live: {text}"),
            Found::Unknown => format!("{address:#x} was never allocated"),
        };
        self.violation(text);
        Err(Code::INVALID_VALUE)
    }

    /// A violation unless the host knows all work on the memory to be over.
    fn check_over(&mut self, address: u64) {
        let Some(known) = self.memory.get(address) else { return };
        let region = Region::run(known.address, known.size);
        let Some(earlier) = known.history.conflict(&region, Mode::Write, &self.host) else { return };
        let text = format!("{address:#x} ends while {}, which touched it, is not known to be over", earlier.text());
        self.violation(text);
    }

    /// Takes an allocation out of the books, and its bytes out of its pool.
    pub(crate) fn forget_allocation(&mut self, address: u64, by: &str) {
        let Some(gone) = self.memory.free(address, by) else { return };
        if let Some(pool) = gone.owner.pool.and_then(|pool| self.pools.get_mut(pool)) {
            pool.used -= gone.size;
        }
    }
}
