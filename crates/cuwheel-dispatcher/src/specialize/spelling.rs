//! Element types as C++ has them.

use cuwheel_device_array::DType;

/// The C++ names of element types: the usual ones, and others where they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Spellings {
    own: Vec<(DType, String)>,
}

impl Spellings {
    /// With names for some types that come before the usual ones.
    pub fn new(own: Vec<(DType, String)>) -> Self {
        Self { own }
    }

    /// The names that were given.
    pub fn own(&self) -> &[(DType, String)] {
        &self.own
    }

    /// The name of a type, if it has one.
    pub fn of(&self, dtype: DType) -> Option<&str> {
        let own = self.own.iter().find(|(known, _)| *known == dtype);
        own.map(|(_, name)| name.as_str()).or_else(|| usual(dtype))
    }
}

/// Names that a compiler has by itself, and those of CUDA's headers and libcu++, which a source includes.
fn usual(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "bool",
        DType::Int8 => "signed char",
        DType::Int16 => "short",
        DType::Int32 => "int",
        DType::Int64 => "long long",
        DType::UInt8 => "unsigned char",
        DType::UInt16 => "unsigned short",
        DType::UInt32 => "unsigned int",
        DType::UInt64 => "unsigned long long",
        DType::Float16 => "__half",
        DType::BFloat16 => "__nv_bfloat16",
        DType::Float32 => "float",
        DType::Float64 => "double",
        DType::Float8E4M3Fn => "__nv_fp8_e4m3",
        DType::Float8E5M2 => "__nv_fp8_e5m2",
        DType::Float8E8M0Fnu => "__nv_fp8_e8m0",
        DType::Complex64 => "cuda::std::complex<float>",
        DType::Complex128 => "cuda::std::complex<double>",
        _ => return None,
    })
}
