//! Parameters as most kernels have them: few, pointers and numbers. What a launch looks at of them, side by side.

use cuwheel_device_array::DType;
use smallvec::SmallVec;

use super::{ParameterType, Signature};

/// The parameters of a kernel that has only plain ones.
#[derive(Debug, Clone)]
pub struct PlainSignature {
    size_bytes: usize,
    parameters: SmallVec<[PlainParameter; 4]>,
}

/// A parameter, and where it lies.
#[derive(Debug, Clone, Copy)]
pub struct PlainParameter {
    /// The type.
    pub kind: PlainType,
    /// The bytes before it.
    pub offset_bytes: u32,
}

/// The type of a plain parameter, as in [`ParameterType`].
#[derive(Debug, Clone, Copy)]
pub enum PlainType {
    /// A pointer to elements, of any type for `void*`.
    Pointer {
        /// The type of the elements, and how DLPack says it: code, bits and lanes.
        elements: Option<(DType, (u8, u8, u16))>,
        /// Whether the kernel only reads them.
        is_const: bool,
    },
    /// A number.
    Scalar(DType),
    /// 8 bytes of which no more is known: an array, or a number.
    Word,
    /// 4 bytes of which no more is known: a number.
    HalfWord,
}

impl PlainSignature {
    /// The most bytes that all parameters of one take.
    pub const MOST_BYTES: usize = 128;

    /// The parameters of a signature, if they are plain.
    pub(super) fn of(signature: &Signature) -> Option<Self> {
        let plain = |kind| match kind {
            ParameterType::Pointer { dtype: None, is_const } => Some(PlainType::Pointer { elements: None, is_const }),
            ParameterType::Pointer { dtype: Some(dtype), is_const } => {
                Some(PlainType::Pointer { elements: Some((dtype, dtype.dlpack()?)), is_const })
            }
            ParameterType::Scalar(dtype) => Some(PlainType::Scalar(dtype)),
            ParameterType::Unknown { size_bytes: 8 } => Some(PlainType::Word),
            ParameterType::Unknown { size_bytes: 4 } => Some(PlainType::HalfWord),
            ParameterType::View { .. } | ParameterType::Unknown { .. } => None,
        };
        let size_bytes = signature.size_bytes();
        let parameters = signature.parameters().iter().map(|parameter| {
            let offset_bytes = u32::try_from(parameter.offset_bytes).ok()?;
            Some(PlainParameter { kind: plain(parameter.kind)?, offset_bytes })
        });
        (size_bytes <= Self::MOST_BYTES)
            .then(|| parameters.collect::<Option<_>>())?
            .map(|parameters| Self { size_bytes, parameters })
    }

    /// The parameters.
    #[inline]
    pub fn parameters(&self) -> &[PlainParameter] {
        &self.parameters
    }

    /// The bytes that all parameters take, up to the end of the last: at most [`MOST_BYTES`](Self::MOST_BYTES).
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
