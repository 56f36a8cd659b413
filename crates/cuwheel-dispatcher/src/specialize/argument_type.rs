//! What counts of an argument where kernels are made for types, in a number.

use std::fmt;

use cuwheel_device_array::{ArrayView, DType};

/// How the elements of an array lie, as far as kernels are made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrayOrder {
    /// One beside the other, with the last index varying fastest.
    C,
    /// One beside the other, with the first index varying fastest; not C as well.
    F,
    /// With gaps, or in another order.
    Strided,
}

impl ArrayOrder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::C, Self::F, Self::Strided];

    /// In a type: the lowest bit is set for what is not C.
    const fn bits(self) -> u64 {
        match self {
            Self::C => 0,
            Self::F => 0b011,
            Self::Strided => 0b101,
        }
    }

    /// The name: `C`, `F` or `strided`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::F => "F",
            Self::Strided => "strided",
        }
    }
}

/// The type of an argument: of an array its element type, number of dimensions and order; or the type of a number.
///
/// From the lowest bit on: DLPack's code, bits and lanes of the element type, or the bytes of an opaque one (32 bits); the
/// number of dimensions (8); the order (4); what it is (4); whether elements are opaque (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgumentType(u64);

const NDIM_SHIFT: u32 = 32;
const ORDER_SHIFT: u32 = 40;
const KIND_SHIFT: u32 = 44;
const OPAQUE: u64 = 1 << 48;
const ARRAY: u64 = 1 << KIND_SHIFT;
const NUMBER: u64 = 2 << KIND_SHIFT;

/// Parts of a type that make a difference.
pub(super) mod part {
    use super::{ARRAY, KIND_SHIFT, NDIM_SHIFT, NUMBER, OPAQUE, ORDER_SHIFT};

    pub(in super::super) const DTYPE: u64 = 0xffff_ffff | OPAQUE | KIND;
    pub(in super::super) const NDIM: u64 = 0xff << NDIM_SHIFT | KIND;
    /// Whether it is C.
    pub(in super::super) const IS_C: u64 = 1 << ORDER_SHIFT | KIND;
    const KIND: u64 = ARRAY | NUMBER | 0xc << KIND_SHIFT;
}

impl ArgumentType {
    /// The type of an array.
    #[inline]
    pub fn array(dtype: DType, ndim: usize, order: ArrayOrder) -> Self {
        // At most 64.
        let ndim = u64::try_from(ndim).unwrap_or(u64::MAX) & 0xff;
        Self(code(dtype) | ndim << NDIM_SHIFT | order.bits() << ORDER_SHIFT | ARRAY)
    }

    /// The type of a number.
    #[inline]
    pub fn number(dtype: DType) -> Self {
        Self(code(dtype) | NUMBER)
    }

    /// The type of an array that there is.
    #[inline]
    pub fn of(array: &ArrayView) -> Self {
        let order = if array.is_c_contiguous() {
            ArrayOrder::C
        } else if array.is_f_contiguous() {
            ArrayOrder::F
        } else {
            ArrayOrder::Strided
        };
        Self::array(array.dtype(), array.ndim(), order)
    }

    /// All of it in a number.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The type of the elements, or of the number.
    pub fn dtype(self) -> DType {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        let found = if self.0 & OPAQUE != 0 {
            DType::opaque(u32::from_le_bytes([a, b, c, d]) as usize)
        } else {
            DType::from_dlpack(a, b, c.into())
        };
        found.unwrap_or_else(|_| unreachable!("a type is made of an element type that there is"))
    }

    /// The number of dimensions of an array; `None` for a number.
    pub fn ndim(self) -> Option<usize> {
        self.is_array().then_some((self.0 >> NDIM_SHIFT & 0xff) as usize)
    }

    /// The order of an array; `None` for a number.
    pub fn order(self) -> Option<ArrayOrder> {
        let order = ArrayOrder::ALL.into_iter().find(|order| order.bits() == self.0 >> ORDER_SHIFT & 0xf);
        order.filter(|_| self.is_array())
    }

    /// Whether it is that of an array.
    #[inline]
    pub fn is_array(self) -> bool {
        self.0 & ARRAY != 0
    }
}

#[inline]
fn code(dtype: DType) -> u64 {
    match dtype {
        DType::Opaque(size_bytes) => u64::from(size_bytes.get()) | OPAQUE,
        dtype => dtype
            .dlpack()
            .map_or(0, |(code, bits, lanes)| u64::from(code) | u64::from(bits) << 8 | (u64::from(lanes) & 0xff) << 16),
    }
}

impl fmt::Display for ArgumentType {
    /// `float32[2, C]` for an array with two dimensions, `int64` for a number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ndim(), self.order()) {
            (Some(ndim), Some(order)) => write!(formatter, "{}[{ndim}, {}]", self.dtype(), order.name()),
            _ => write!(formatter, "{}", self.dtype()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_tells_what_it_was_made_of_and_no_two_are_the_same() {
        let opaque = [1, 0xffff_ffff].map(|size| DType::opaque(size).unwrap());
        let mut seen = std::collections::HashSet::new();
        for dtype in DType::ALL.into_iter().chain(opaque) {
            let number = ArgumentType::number(dtype);
            assert_eq!((number.dtype(), number.ndim(), number.order()), (dtype, None, None));
            assert!(seen.insert(number.bits()));
            for order in ArrayOrder::ALL {
                for ndim in [0, 1, 64] {
                    let array = ArgumentType::array(dtype, ndim, order);
                    assert_eq!((array.dtype(), array.ndim(), array.order()), (dtype, Some(ndim), Some(order)));
                    assert!(seen.insert(array.bits()));
                }
            }
        }
        assert_eq!(ArgumentType::array(DType::Float32, 2, ArrayOrder::F).to_string(), "float32[2, F]");
    }
}
