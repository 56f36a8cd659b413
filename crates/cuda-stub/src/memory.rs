//! Memory that the driver knows of: where it lies, who owns it, and what touched it last.
//!
//! Device memory lies at addresses that are reserved and that nobody can read; its bytes are elsewhere. Memory that hosts may
//! touch lies at its own address. Addresses are given out in ascending order with gaps between them, and come back only when
//! the space is used up, so that a stale address is recognised.

use std::collections::{BTreeMap, VecDeque};

use crate::access::History;
use crate::mapping::{Mapping, PAGE_BYTES};

/// Addresses of each device, and of each kind of host memory.
const ARENA_BYTES: u64 = 1 << 40;
/// What a driver aligns device memory to.
const ALIGNMENT_BYTES: u64 = 512;
/// What memory reads as that nobody wrote, as far as this much of it.
const POISON: u8 = 0xCD;
const POISONED_BYTES: u64 = 1 << 16;
/// Frees that are remembered by name.
const MOST_FREED: usize = 1 << 16;

/// What kind of memory an allocation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryKind {
    Device,
    Pinned,
    Registered,
    Managed,
    /// A variable of a module.
    Variable,
}

impl MemoryKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::Managed => "managed",
            Self::Variable => "variable",
        }
    }
}

/// Who an allocation belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) device: usize,
    pub(crate) context: u64,
    /// For memory that is allocated in the order of a stream.
    pub(crate) pool: Option<u64>,
    pub(crate) stream: Option<u64>,
    /// Flags as they were given; what they mean depends on the kind.
    pub(crate) flags: u32,
}

/// A live allocation.
pub(crate) struct Allocation {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: MemoryKind,
    pub(crate) owner: Owner,
    /// Never used twice, unlike an address.
    pub(crate) id: u64,
    /// The function that made it, and the count of the call.
    pub(crate) origin: String,
    pub(crate) history: History,
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub(crate) synchronises: bool,
    shadow: Option<Mapping>,
}

impl Allocation {
    /// Where the bytes from `address` on are in this process.
    pub(crate) fn pointer(&self, address: u64) -> *mut u8 {
        match &self.shadow {
            Some(shadow) => shadow.pointer(address - self.address),
            None => std::ptr::with_exposed_provenance_mut(crate::index(address)),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// What is known of an address.
pub(crate) enum Found<'a> {
    Live(&'a Allocation),
    /// Was freed, or lies between allocations; the text says which.
    Stale(String),
    /// Not the driver's: ordinary host memory as far as it can tell.
    Unknown,
}

struct Arena {
    space: Mapping,
    cursor: u64,
    /// Whether the host reads it at its own address.
    visible: bool,
    unit: u64,
}

struct Freed {
    size: u64,
    text: String,
}

/// All memory of the driver.
pub(crate) struct Memory {
    arenas: Vec<Arena>,
    live: BTreeMap<u64, Allocation>,
    freed: BTreeMap<u64, Freed>,
    freed_order: VecDeque<u64>,
    next_id: u64,
    /// Bytes in use on each device.
    pub(crate) used: Vec<u64>,
}

/// The addresses of an arena: fewer where the process may not have so many, as under valgrind.
fn reserve() -> Option<Mapping> {
    (0..=8).find_map(|shift| Mapping::reserve(ARENA_BYTES >> shift))
}

impl Memory {
    /// Spaces for `devices` devices, for pinned and for managed memory. None when the process may not reserve so much.
    pub(crate) fn new(devices: usize) -> Option<Self> {
        let mut arenas = Vec::new();
        for index in 0..devices + 2 {
            let visible = index >= devices;
            let unit = if visible { PAGE_BYTES } else { ALIGNMENT_BYTES };
            arenas.push(Arena { space: reserve()?, cursor: 0, visible, unit });
        }
        let (live, freed, freed_order) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Some(Self { arenas, live, freed, freed_order, next_id: 1, used: vec![0; devices] })
    }

    /// New memory of `size` bytes, which is not zero. None when memory or addresses are short.
    pub(crate) fn allocate(&mut self, kind: MemoryKind, size: u64, owner: Owner, origin: String) -> Option<u64> {
        let devices = self.used.len();
        let arena = match kind {
            MemoryKind::Device | MemoryKind::Variable => owner.device,
            MemoryKind::Pinned | MemoryKind::Registered => devices,
            MemoryKind::Managed => devices + 1,
        };
        let address = self.find_space(arena, size)?;
        let arena = &mut self.arenas[arena];
        let shadow = if arena.visible {
            let offset = address - arena.space.start();
            if !arena.space.open(offset, size.next_multiple_of(arena.unit)) {
                return None;
            }
            arena.space.poison(offset, size.min(POISONED_BYTES), POISON);
            None
        } else {
            let mut shadow = Mapping::anonymous(size.max(1))?;
            if kind != MemoryKind::Variable {
                shadow.poison(0, size.min(POISONED_BYTES), POISON);
            }
            Some(shadow)
        };
        self.insert(address, kind, size, owner, origin, shadow);
        Some(address)
    }

    /// Takes ordinary memory of the host into the books.
    pub(crate) fn register(&mut self, address: u64, size: u64, owner: Owner, origin: String) {
        self.insert(address, MemoryKind::Registered, size, owner, origin, None);
    }

    fn insert(
        &mut self,
        address: u64,
        kind: MemoryKind,
        size: u64,
        owner: Owner,
        origin: String,
        shadow: Option<Mapping>,
    ) {
        let id = self.next_id;
        self.next_id += 1;
        if kind == MemoryKind::Device {
            self.used[owner.device] += size;
        }
        self.freed.remove(&address);
        let history = History::default();
        let allocation = Allocation { address, size, kind, owner, id, origin, history, synchronises: false, shadow };
        self.live.insert(address, allocation);
    }

    /// Addresses that no live allocation uses, with a gap behind them.
    fn find_space(&mut self, arena: usize, size: u64) -> Option<u64> {
        let arena = &mut self.arenas[arena];
        let (base, limit) = (arena.space.start(), arena.space.length());
        let needed = size.checked_next_multiple_of(arena.unit)?.checked_add(arena.unit)?;
        let mut wrapped = false;
        loop {
            if needed > limit - arena.cursor.min(limit) {
                if wrapped {
                    return None;
                }
                (arena.cursor, wrapped) = (0, true);
            }
            let start = base + arena.cursor;
            let blocking =
                self.live.range(..start.saturating_add(needed)).next_back().filter(|(_, live)| live.end() > start);
            let Some((_, blocking)) = blocking else {
                arena.cursor += needed;
                return Some(start);
            };
            arena.cursor = (blocking.end() - base).next_multiple_of(arena.unit) + arena.unit;
        }
    }

    /// Ends an allocation by its first address. What was there is gone; host-visible pages become unreadable.
    pub(crate) fn free(&mut self, address: u64, by: &str) -> Option<Allocation> {
        let allocation = self.live.remove(&address)?;
        if allocation.kind == MemoryKind::Device {
            self.used[allocation.owner.device] -= allocation.size;
        }
        if matches!(allocation.kind, MemoryKind::Pinned | MemoryKind::Managed) {
            let arena = self.arena_of(address)?;
            let arena = &mut self.arenas[arena];
            arena.space.close(address - arena.space.start(), allocation.size.next_multiple_of(arena.unit));
        }
        if allocation.kind != MemoryKind::Registered {
            let text = format!(
                "{} bytes of {} memory from {}, freed by {by}",
                allocation.size,
                allocation.kind.name(),
                allocation.origin
            );
            self.freed.insert(address, Freed { size: allocation.size, text });
            self.freed_order.push_back(address);
            if self.freed_order.len() > MOST_FREED
                && let Some(oldest) = self.freed_order.pop_front()
            {
                self.freed.remove(&oldest);
            }
        }
        Some(allocation)
    }

    pub(crate) fn find(&self, address: u64) -> Found<'_> {
        if let Some((_, allocation)) = self.live.range(..=address).next_back()
            && (address < allocation.end() || address == allocation.address)
        {
            return Found::Live(allocation);
        }
        if self.arena_of(address).is_none() {
            return Found::Unknown;
        }
        if let Some((start, freed)) = self.freed.range(..=address).next_back()
            && address < start + freed.size.max(1)
        {
            return Found::Stale(freed.text.clone());
        }
        match self.live.range(..=address).next_back() {
            Some((_, before)) if self.arena_of(before.address) == self.arena_of(address) => Found::Stale(format!(
                "{} bytes past the end of the nearest allocation before it ({} bytes from {})",
                address - before.end(),
                before.size,
                before.origin
            )),
            _ => Found::Stale("no live allocation".to_owned()),
        }
    }

    pub(crate) fn get(&self, address: u64) -> Option<&Allocation> {
        match self.find(address) {
            Found::Live(allocation) => Some(allocation),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (_, allocation) = self.live.range_mut(..=address).next_back()?;
        (address < allocation.end() || address == allocation.address).then_some(allocation)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Allocation> {
        self.live.values()
    }

    fn arena_of(&self, address: u64) -> Option<usize> {
        self.arenas.iter().position(|arena| address.wrapping_sub(arena.space.start()) < arena.space.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { device: 0, context: 1, pool: None, stream: None, flags: 0 };

    fn allocate(memory: &mut Memory, kind: MemoryKind, size: u64) -> u64 {
        memory.allocate(kind, size, OWNER, "a test".to_owned()).unwrap()
    }

    #[test]
    fn a_stale_address_is_told_from_one_past_the_end() {
        let mut memory = Memory::new(1).unwrap();
        let first = allocate(&mut memory, MemoryKind::Device, 100);
        let second = allocate(&mut memory, MemoryKind::Device, 100);
        assert!(memory.free(first, "cuMemFree").is_some());
        assert!(memory.free(first, "cuMemFree").is_none());
        let stale = |memory: &Memory, address| match memory.find(address) {
            Found::Stale(text) => text,
            _ => panic!("not stale"),
        };
        assert_eq!(stale(&memory, first + 99), "100 bytes of device memory from a test, freed by cuMemFree");
        assert_eq!(
            stale(&memory, second + 100),
            "0 bytes past the end of the nearest allocation before it (100 bytes from a test)"
        );
        assert!(matches!(memory.find(0x1000), Found::Unknown));
        assert_eq!(memory.used, [100]);
    }

    #[test]
    fn addresses_come_back_only_when_the_space_is_used_up() {
        let mut memory = Memory::new(1).unwrap();
        let half = ARENA_BYTES / 2 - ALIGNMENT_BYTES;
        let kept = allocate(&mut memory, MemoryKind::Device, 8);
        let first = allocate(&mut memory, MemoryKind::Device, half);
        memory.free(first, "a test");
        let second = allocate(&mut memory, MemoryKind::Device, half - 2 * ALIGNMENT_BYTES);
        assert!(second > first);
        memory.free(second, "a test");
        let third = allocate(&mut memory, MemoryKind::Device, half);
        assert_eq!(third, kept + 2 * ALIGNMENT_BYTES);
    }

    #[test]
    fn host_memory_is_at_its_own_address() {
        let mut memory = Memory::new(0).unwrap();
        let address = allocate(&mut memory, MemoryKind::Pinned, 5000);
        let pointer = memory.get(address).unwrap().pointer(address + 4999);
        assert_eq!(pointer.addr() as u64, address + 4999);
        // SAFETY: the allocation is live and 5000 bytes long.
        assert_eq!(unsafe { pointer.read() }, POISON);
    }
}
