//! `cuPointer*`.

use super::exports::exports;
use super::{In, Out};
use crate::error::{Code, Outcome};
use crate::pointers::Value;

/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`, the one that can be set.
const SYNC_MEMOPS: u32 = 6;

exports! {
    [4000 Normal] fn cuPointerGetAttribute(data: Out<u8>, attribute: u32, address: u64) |driver| {
        let value = driver.pointer_attribute(attribute, address)?;
        set_value(&data, value)
    }

    [7000 Normal] fn cuPointerGetAttributes(count: u32, attributes: In<u32>, data: In<*mut u8>, address: u64) |driver| {
        for index in 0..count as usize {
            // SAFETY: the caller says that `count` attributes and as many places for them are there.
            let (attribute, place) = unsafe { (attributes.item(index)?, data.item(index)?) };
            let value = driver.pointer_attribute_or_nothing(attribute, address)?;
            set_value(&Out(place), value)?;
        }
        Ok(())
    }

    [6000 Normal] fn cuPointerSetAttribute(value: In<u32>, attribute: u32, address: u64) |driver| {
        if attribute != SYNC_MEMOPS {
            return Err(Code::INVALID_VALUE);
        }
        let wanted = value.get()?;
        driver.memory.get_mut(address).ok_or(Code::INVALID_VALUE)?.synchronises = wanted != 0;
        Ok(())
    }
}

fn set_value(place: &Out<u8>, value: Value) -> Outcome {
    let mut bytes = [0; 16];
    let length = match value {
        Value::Int(value) => {
            bytes[..4].copy_from_slice(&value.to_le_bytes());
            4
        }
        Value::Bool(value) => {
            bytes[0] = u8::from(value);
            1
        }
        Value::Wide(value) => {
            bytes[..8].copy_from_slice(&value.to_le_bytes());
            8
        }
        Value::Tokens(first, second) => {
            bytes[..8].copy_from_slice(&first.to_le_bytes());
            bytes[8..12].copy_from_slice(&second.to_le_bytes());
            12
        }
    };
    // SAFETY: the caller says that a value of the attribute's size fits.
    unsafe { place.set_all(&bytes[..length]) }
}
