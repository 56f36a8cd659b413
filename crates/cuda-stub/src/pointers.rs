//! What the driver says of an address.

use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::memory::{Allocation, MemoryKind};

/// The value of a `CUpointer_attribute`, in the width that the attribute has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// `int`, `unsigned` and enums.
    Int(u32),
    /// `bool`, one byte.
    Bool(bool),
    /// Pointers, handles and sizes.
    Wide(u64),
    /// `CUDA_POINTER_ATTRIBUTE_P2P_TOKENS`.
    Tokens(u64, u32),
}

/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
/// `CU_DEVICE_INVALID`.
const INVALID_DEVICE: u32 = (-2_i32).cast_unsigned();

impl Allocation {
    /// An attribute of an address in this allocation. One line for each, in the order of `cuda.h`.
    #[expect(clippy::match_same_arms, reason = "attributes that have the same value here are not the same")]
    fn attribute(&self, attribute: u32, address: u64) -> Outcome<Value> {
        let host = matches!(self.kind, MemoryKind::Pinned | MemoryKind::Registered);
        Ok(match attribute {
            1 => Value::Wide(self.owner.context),
            2 => Value::Int(if host { HOST } else { DEVICE }),
            3 => Value::Wide(address),
            4 if self.kind == MemoryKind::Device => return Err(Code::INVALID_VALUE),
            4 => Value::Wide(address),
            5 => Value::Tokens(0, 0),
            6 => Value::Bool(self.synchronises),
            7 => Value::Wide(self.id),
            8 => Value::Bool(self.kind == MemoryKind::Managed),
            9 => Value::Int(u32::try_from(self.owner.device).unwrap_or(INVALID_DEVICE)),
            10 => Value::Bool(false),
            11 => Value::Wide(self.address),
            12 => Value::Wide(self.size),
            13 => Value::Bool(true),
            14 => Value::Int(0),
            15 => Value::Bool(self.kind == MemoryKind::Device),
            16 => Value::Int(3),
            17 => Value::Wide(self.owner.pool.unwrap_or(0)),
            18 => Value::Wide(self.size),
            19 => Value::Wide(self.address),
            20 => Value::Wide(self.id),
            21 => Value::Bool(false),
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}

impl Driver {
    /// `cuPointerGetAttribute`.
    pub(crate) fn pointer_attribute(&self, attribute: u32, address: u64) -> Outcome<Value> {
        let allocation = self.memory.get(address).ok_or(Code::INVALID_VALUE)?;
        allocation.attribute(attribute, address)
    }

    /// One attribute as `cuPointerGetAttributes` gives it: what is not known is zero, or the invalid device.
    pub(crate) fn pointer_attribute_or_nothing(&self, attribute: u32, address: u64) -> Outcome<Value> {
        if let Some(allocation) = self.memory.get(address) {
            return match allocation.attribute(attribute, address) {
                Err(_) if attribute == 4 => Ok(Value::Wide(0)),
                known => known,
            };
        }
        Ok(match attribute {
            2 | 14 | 16 => Value::Int(0),
            9 => Value::Int(INVALID_DEVICE),
            6 | 8 | 10 | 13 | 15 | 21 => Value::Bool(false),
            5 => Value::Tokens(0, 0),
            1 | 3 | 4 | 7 | 11 | 12 | 17..=20 => Value::Wide(0),
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// `cuMemHostGetDevicePointer`: the same address, for memory that a device can reach.
    pub(crate) fn device_pointer(&self, address: u64) -> Outcome<u64> {
        match self.memory.get(address) {
            Some(known) if matches!(known.kind, MemoryKind::Pinned | MemoryKind::Registered) => Ok(address),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuMemGetAddressRange`: start and size.
    pub(crate) fn address_range(&self, address: u64) -> Outcome<(u64, u64)> {
        self.memory.get(address).map(|known| (known.address, known.size)).ok_or(Code::NOT_FOUND)
    }
}
