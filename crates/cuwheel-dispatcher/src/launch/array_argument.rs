//! An array into its parameter, and why it does not fit there.
//!
//! Not for numbers: how those are read depends on who gives them.

use std::hint::cold_path;

use cuwheel_device_array::{ArrayView, Classified, DType, Described, Device, ErrorKind, MemoryKind};
use thiserror::Error;

use super::{Arguments, Parameter, ParameterType};

/// Why a value is none for a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// An array where a number belongs.
    #[error("an array is no number, and the parameter is {dtype}")]
    NoNumber {
        /// The type of the number.
        dtype: DType,
    },
    /// An array where bytes belong that are no address.
    #[error(
        "an array is passed by its address, which takes 8 bytes, and the parameter takes {size_bytes}; give the kernel a \
         signature if the parameter is a structure"
    )]
    NoAddress {
        /// The bytes of the parameter.
        size_bytes: usize,
    },
    /// Elements of another type.
    #[error("the array has elements of type {given}, and the parameter is {kind}")]
    Elements {
        /// The type of the array's elements.
        given: DType,
        /// The parameter.
        kind: ParameterType,
    },
    /// Another type or another number of dimensions than the view has.
    #[error("a {ndim}-dimensional array of {given} was given, and the parameter is {kind}")]
    View {
        /// The dimensions of the array.
        ndim: usize,
        /// The type of its elements.
        given: DType,
        /// The parameter.
        kind: ParameterType,
    },
    /// An array that must not be written to.
    #[error(
        "the array is read-only, and the kernel may write to it; if it does not, say so in the signature: \"{constant}\""
    )]
    ReadOnly {
        /// The parameter as one that is only read.
        constant: ParameterType,
    },
    /// An array whose strides cannot be counted in elements.
    #[error("the strides of the array are no multiples of its elements; copy it first")]
    Strides,
    /// A number of another type, or one where an array belongs.
    #[error("a number of type {given} was given, and the parameter is {kind}")]
    Number {
        /// The type of the number.
        given: DType,
        /// The parameter.
        kind: ParameterType,
    },
}

impl Classified for ArgumentError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::ReadOnly { .. } | Self::Strides => ErrorKind::Value,
            _ => ErrorKind::Type,
        }
    }
}

/// What a launch looks at of an array: of one that is there, or of one that its producer describes.
pub trait ArrayArgument {
    /// The address of the first element.
    fn pointer(&self) -> u64;
    /// The type of the elements.
    fn dtype(&self) -> DType;
    /// The number of elements along each dimension.
    fn shape(&self) -> &[i64];
    /// The strides in elements, if they are whole numbers.
    fn strides_elements(&self) -> Option<&[i64]>;
    /// Whether the elements must not be written.
    fn is_read_only(&self) -> bool;
    /// The kind of the memory.
    fn kind(&self) -> MemoryKind;
    /// The device that the memory is on or belongs to.
    fn device(&self) -> Device;
}

macro_rules! array_argument {
    ($array:ty, $shape:expr, $strides:expr) => {
        impl ArrayArgument for $array {
            #[inline]
            fn pointer(&self) -> u64 {
                <$array>::pointer(self)
            }

            #[inline]
            fn dtype(&self) -> DType {
                <$array>::dtype(self)
            }

            #[inline]
            fn shape(&self) -> &[i64] {
                $shape(self)
            }

            #[inline]
            fn strides_elements(&self) -> Option<&[i64]> {
                $strides(self)
            }

            #[inline]
            fn is_read_only(&self) -> bool {
                <$array>::is_read_only(self)
            }

            #[inline]
            fn kind(&self) -> MemoryKind {
                <$array>::kind(self)
            }

            #[inline]
            fn device(&self) -> Device {
                <$array>::device(self)
            }
        }
    };
}

array_argument!(ArrayView, ArrayView::shape, ArrayView::strides_elements);
array_argument!(Described<'_>, |array: &Self| array.elements().shape(), |array: &Self| Some(
    array.elements().strides()
));

impl Arguments {
    /// Sets `parameter`, which must be one of the signature's, to an array: its address, and for a view its shape and
    /// strides.
    ///
    /// # Errors
    /// If the parameter is for something else, or the kernel may write to it and the array is read-only.
    ///
    /// # Panics
    /// If the parameter lies outside.
    #[inline]
    pub fn set_array(&mut self, parameter: &Parameter, array: &impl ArrayArgument) -> Result<(), ArgumentError> {
        if let ParameterType::Pointer { dtype, is_const } = parameter.kind
            && dtype.is_none_or(|dtype| dtype == array.dtype())
            && (is_const || !array.is_read_only())
        {
            self.set_at(parameter.offset_bytes, &array.pointer().to_ne_bytes());
            return Ok(());
        }
        cold_path();
        self.set_other(parameter, array)
    }

    /// Anything but a pointer to elements that fit. Apart, so that these take no time for it.
    #[inline(never)]
    fn set_other(&mut self, parameter: &Parameter, array: &impl ArrayArgument) -> Result<(), ArgumentError> {
        let (fits, is_const) = match parameter.kind {
            ParameterType::View { dtype, ndim, is_const } => {
                (dtype == array.dtype() && ndim == array.shape().len(), is_const)
            }
            ParameterType::Unknown { size_bytes } => (size_bytes == size_of::<u64>(), false),
            ParameterType::Pointer { .. } | ParameterType::Scalar(_) => (false, false),
        };
        if !fits || array.is_read_only() && !is_const {
            return Err(refusal(parameter.kind, array));
        }
        self.set_at(parameter.offset_bytes, &array.pointer().to_ne_bytes());
        if let ParameterType::View { .. } = parameter.kind {
            self.set_layout(parameter, array)?;
        }
        Ok(())
    }

    /// Shape and strides behind the pointer, as the structure of the C++ header has them.
    fn set_layout(&mut self, parameter: &Parameter, array: &impl ArrayArgument) -> Result<(), ArgumentError> {
        let strides = array.strides_elements().ok_or(ArgumentError::Strides)?;
        let mut offset = parameter.offset_bytes + size_of::<u64>();
        for number in array.shape().iter().chain(strides) {
            self.set_at(offset, &number.to_ne_bytes());
            offset += size_of::<i64>();
        }
        Ok(())
    }
}

#[cold]
fn refusal(kind: ParameterType, array: &impl ArrayArgument) -> ArgumentError {
    let (given, ndim) = (array.dtype(), array.shape().len());
    match kind {
        ParameterType::Scalar(dtype) => ArgumentError::NoNumber { dtype },
        ParameterType::Unknown { size_bytes } if size_bytes != size_of::<u64>() => {
            ArgumentError::NoAddress { size_bytes }
        }
        ParameterType::Pointer { dtype: Some(dtype), .. } if dtype != given => ArgumentError::Elements { given, kind },
        ParameterType::View { dtype, ndim: expected, .. } if dtype != given || ndim != expected => {
            ArgumentError::View { ndim, given, kind }
        }
        _ => ArgumentError::ReadOnly { constant: with_const(kind) },
    }
}

/// The type of a parameter that is only read.
fn with_const(kind: ParameterType) -> ParameterType {
    match kind {
        ParameterType::Pointer { dtype, .. } => ParameterType::Pointer { dtype, is_const: true },
        ParameterType::View { dtype, ndim, .. } => ParameterType::View { dtype, ndim, is_const: true },
        _ => ParameterType::Pointer { dtype: None, is_const: true },
    }
}
