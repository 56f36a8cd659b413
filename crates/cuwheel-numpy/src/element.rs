//! What a NumPy data type says about one item.

use std::ffi::c_char;

use crate::sys;

/// Number, size and layout of a data type, without its Python object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element(pub(crate) sys::Element);

impl Element {
    /// The number of the type, as `numpy.dtype.num`. Numbers from 256 on belong to types that others registered.
    #[must_use]
    pub fn type_number(self) -> i32 {
        self.0.type_number
    }

    /// The kind of type, as `numpy.dtype.kind`: `f` for a floating-point number, `V` for a structure, and so on.
    #[must_use]
    pub fn kind(self) -> char {
        char::from(self.0.kind.cast_unsigned())
    }

    /// The byte order: `=` native, `<` little endian, `>` big endian, `|` not applicable.
    ///
    /// The fields of a structure have byte orders of their own; its own is `|`.
    #[must_use]
    pub fn byte_order(self) -> char {
        char::from(self.0.byte_order.cast_unsigned())
    }

    /// Whether this machine's byte order is used, or none applies.
    #[must_use]
    pub fn is_native_byte_order(self) -> bool {
        is_native(self.0.byte_order)
    }

    /// The size of an item in bytes.
    #[must_use]
    pub fn itemsize(self) -> isize {
        self.0.itemsize
    }

    /// The alignment of an item in bytes.
    #[must_use]
    pub fn alignment(self) -> isize {
        self.0.alignment
    }
}

/// Whether a byte order is this machine's, or none.
pub(crate) fn is_native(byte_order: c_char) -> bool {
    let swapped = if cfg!(target_endian = "little") { b'>' } else { b'<' };
    byte_order.cast_unsigned() != swapped
}

/// The unit of dates and durations: a multiple of a named unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatetimeUnit(pub(crate) sys::Datetime);

impl DatetimeUnit {
    /// The number of the named unit, `NPY_DATETIMEUNIT` in NumPy's headers.
    #[must_use]
    pub fn number(self) -> i32 {
        self.0.unit
    }

    /// How many of the named unit make one.
    #[must_use]
    pub fn count(self) -> i32 {
        self.0.count
    }

    /// The name of the unit as in `numpy.datetime_data`, or `None` if this version of NumPy added one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        // The number 3 stood for business days in old versions.
        let name = match self.0.unit {
            0 => "Y",
            1 => "M",
            2 => "W",
            4 => "D",
            5 => "h",
            6 => "m",
            7 => "s",
            8 => "ms",
            9 => "us",
            10 => "ns",
            11 => "ps",
            12 => "fs",
            13 => "as",
            14 => "generic",
            _ => return None,
        };
        Some(name)
    }
}
