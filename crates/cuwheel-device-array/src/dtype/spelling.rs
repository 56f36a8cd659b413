//! How element types are written: names as in NumPy and `ml_dtypes`, and the type strings of NumPy's array interface.

use super::{DType, DTypeError};

impl DType {
    /// The name in NumPy or `ml_dtypes`; `"opaque"` for elements of which only the size is known.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::BFloat16 => "bfloat16",
            Self::Float8E3M4 => "float8_e3m4",
            Self::Float8E4M3 => "float8_e4m3",
            Self::Float8E4M3B11Fnuz => "float8_e4m3b11fnuz",
            Self::Float8E4M3Fn => "float8_e4m3fn",
            Self::Float8E4M3Fnuz => "float8_e4m3fnuz",
            Self::Float8E5M2 => "float8_e5m2",
            Self::Float8E5M2Fnuz => "float8_e5m2fnuz",
            Self::Float8E8M0Fnu => "float8_e8m0fnu",
            Self::Float6E2M3Fn => "float6_e2m3fn",
            Self::Float6E3M2Fn => "float6_e3m2fn",
            Self::Float4E2M1Fn => "float4_e2m1fn",
            Self::Float4E2M1FnX2 => "float4_e2m1fn_x2",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::Opaque(_) => "opaque",
        }
    }

    /// The type with this [`name`](Self::name), or as it is displayed: `float32`, `opaque[12]`.
    pub fn from_name(name: &str) -> Result<Self, DTypeError> {
        let unknown = || DTypeError::UnknownName { name: name.to_owned() };
        if let Some(size_bytes) = name.strip_prefix("opaque[").and_then(|rest| rest.strip_suffix(']')) {
            return Self::opaque(size_bytes.parse().map_err(|_| unknown())?);
        }
        Self::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(unknown)
    }

    /// The type that a type string of NumPy's array interface describes, such as `<f4`, `|b1` or `<M8[ns]`.
    ///
    /// Datetimes, time differences, records and text are opaque bytes of their size. Source: the array interface
    /// protocol, version 3, of the NumPy reference.
    pub fn from_typestr(typestr: &str) -> Result<Self, DTypeError> {
        let unknown = || DTypeError::UnknownTypestr { typestr: typestr.to_owned() };
        let mut characters = typestr.chars();
        let order = characters.next().ok_or_else(unknown)?;
        let kind = characters.next().ok_or_else(unknown)?;
        let rest = characters.as_str();
        // A datetime has its unit behind the size.
        let digits = match kind {
            'M' | 'm' => rest.split_once('[').map_or(rest, |(digits, _)| digits),
            _ => rest,
        };
        // `parse` would take a sign.
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(unknown());
        }
        let size: usize = digits.parse().map_err(|_| unknown())?;
        let foreign = if cfg!(target_endian = "little") { '>' } else { '<' };
        let is_ordered = size > 1 && !matches!(kind, 'V' | 'S') || kind == 'U';
        match order {
            '<' | '>' | '|' | '=' if order != foreign || !is_ordered => {}
            '<' | '>' => return Err(DTypeError::ForeignByteOrder { typestr: typestr.to_owned() }),
            _ => return Err(unknown()),
        }
        match (kind, size) {
            ('b', 1) => Ok(Self::Bool),
            ('i', 1) => Ok(Self::Int8),
            ('i', 2) => Ok(Self::Int16),
            ('i', 4) => Ok(Self::Int32),
            ('i', 8) => Ok(Self::Int64),
            ('u', 1) => Ok(Self::UInt8),
            ('u', 2) => Ok(Self::UInt16),
            ('u', 4) => Ok(Self::UInt32),
            ('u', 8) => Ok(Self::UInt64),
            ('f', 2) => Ok(Self::Float16),
            ('f', 4) => Ok(Self::Float32),
            ('f', 8) => Ok(Self::Float64),
            ('c', 8) => Ok(Self::Complex64),
            ('c', 16) => Ok(Self::Complex128),
            ('V' | 'S', _) | ('M' | 'm', 8) => Self::opaque(size),
            // Text is of characters of four bytes.
            ('U', _) => Self::opaque(size.checked_mul(4).ok_or_else(unknown)?),
            _ => Err(unknown()),
        }
    }

    /// The type string for NumPy's array interface; `None` where NumPy itself has no such type.
    pub fn typestr(self) -> Option<String> {
        let kind = match self {
            Self::Bool => 'b',
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => 'i',
            Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64 => 'u',
            Self::Float16 | Self::Float32 | Self::Float64 => 'f',
            Self::Complex64 | Self::Complex128 => 'c',
            Self::Opaque(_) => 'V',
            _ => return None,
        };
        let size_bytes = self.size_bytes()?;
        let order = match (kind, size_bytes) {
            ('V', _) | (_, 1) => '|',
            _ if cfg!(target_endian = "little") => '<',
            _ => '>',
        };
        Some(format!("{order}{kind}{size_bytes}"))
    }
}
