//! The number that stands for a type.

use thiserror::Error;

/// A number that stands for a type: equal types have equal codes, and a code is never given to another type.
///
/// It fits into 31 bits and a sign. Larger numbers are refused rather than cut, since a cut one stands for another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeCode(i32);

/// A number is too large for a type code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("type code {number} does not fit in 31 bits; there can be no more types than that in one process")]
pub struct TypeCodeError {
    /// The number given.
    pub number: i64,
}

impl TypeCode {
    /// The number itself.
    pub fn number(self) -> i32 {
        self.0
    }
}

impl From<i32> for TypeCode {
    fn from(number: i32) -> Self {
        Self(number)
    }
}

impl TryFrom<i64> for TypeCode {
    type Error = TypeCodeError;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        i32::try_from(number).map(Self).map_err(|_| TypeCodeError { number })
    }
}
