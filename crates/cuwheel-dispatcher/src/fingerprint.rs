//! Strings of bytes that are equal for values of equal type.
//!
//! Every part tells where it ends, so that two sequences of parts never make the same string. Letters are those that
//! numba-cuda uses where it tells values apart as well as this does.

use smallvec::SmallVec;

/// Strings up to this size, in bytes, need no memory of their own.
const INLINE_BYTES: usize = 32;

/// A string of bytes under construction.
///
/// Containers are written as they are read: [`begin_tuple`](Self::begin_tuple), the items,
/// [`end_tuple`](Self::end_tuple). Of lists and sets one item stands for all.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint(SmallVec<[u8; INLINE_BYTES]>);

/// What one item of an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// A type that its number says all about.
    Number {
        /// The number of the type in NumPy, below 256.
        type_number: u8,
        /// Whether the byte order is not the machine's.
        is_swapped: bool,
    },
    /// A date or a duration.
    Date {
        /// The number of the type in NumPy, below 256.
        type_number: u8,
        /// Whether the byte order is not the machine's.
        is_swapped: bool,
        /// The number of the named unit.
        unit: u8,
        /// How many of the named unit make one.
        count: i32,
    },
    /// A structure, known by a number that the caller gives to each.
    Structure {
        /// The number of the type in NumPy, below 256.
        type_number: u8,
        /// Different for different structures.
        identity: u64,
    },
}

/// The order of items in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One after another, the last index moving fastest.
    C,
    /// One after another, the first index moving fastest.
    Fortran,
    /// Any other.
    Any,
}

impl Layout {
    /// The layout of memory that is contiguous in these ways; `C` if in both.
    pub fn of(is_c_contiguous: bool, is_f_contiguous: bool) -> Self {
        match (is_c_contiguous, is_f_contiguous) {
            (true, _) => Self::C,
            (false, true) => Self::Fortran,
            (false, false) => Self::Any,
        }
    }

    fn letter(self) -> u8 {
        match self {
            Self::C => b'C',
            Self::Fortran => b'F',
            Self::Any => b'A',
        }
    }
}

impl Fingerprint {
    /// An empty string.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes.
    pub fn into_bytes(self) -> Box<[u8]> {
        self.0.into_vec().into()
    }

    /// `None`.
    pub fn none(&mut self) {
        self.0.push(b'n');
    }

    /// A truth value.
    pub fn boolean(&mut self) {
        self.0.push(b'?');
    }

    /// An integer that fits in 64 bits with a sign.
    pub fn integer(&mut self) {
        self.0.push(b'i');
    }

    /// An integer that fits in 64 bits without a sign only.
    pub fn unsigned_integer(&mut self) {
        self.0.push(b'u');
    }

    /// A floating-point number.
    pub fn float(&mut self) {
        self.0.push(b'f');
    }

    /// A complex number.
    pub fn complex(&mut self) {
        self.0.push(b'c');
    }

    /// Constant bytes.
    pub fn bytes(&mut self) {
        self.0.push(b'b');
    }

    /// Bytes that can be changed.
    pub fn bytearray(&mut self) {
        self.0.push(b'a');
    }

    /// A tuple; its items follow.
    pub fn begin_tuple(&mut self) {
        self.0.push(b'(');
    }

    /// A tuple with named items, of the class that the caller gave this number to; its items follow.
    pub fn begin_named_tuple(&mut self, class: u64) {
        self.0.push(b'N');
        self.0.extend_from_slice(&class.to_le_bytes());
        self.begin_tuple();
    }

    /// The end of a tuple.
    pub fn end_tuple(&mut self) {
        self.0.push(b')');
    }

    /// A list; one item follows.
    pub fn list(&mut self) {
        self.0.push(b'[');
    }

    /// A set; one item follows.
    pub fn set(&mut self) {
        self.0.push(b'{');
    }

    /// An argument left out, for which `default` is taken: values, unlike types, are told apart by their text. The type
    /// of the default follows.
    pub fn omitted(&mut self, default: &str) {
        self.0.push(b'!');
        self.text(default);
    }

    /// A scalar of NumPy.
    pub fn scalar(&mut self, item: Item) {
        self.0.push(b'S');
        self.item(item);
    }

    /// A data type of NumPy.
    pub fn data_type(&mut self, item: Item) {
        self.0.push(b'D');
        self.item(item);
    }

    /// An array of NumPy.
    pub fn array(&mut self, dimension_count: u8, layout: Layout, is_writeable: bool, item: Item) {
        self.0.push(b'A');
        self.memory(u32::from(dimension_count), layout, is_writeable);
        self.item(item);
    }

    /// A buffer that an object of another class exports; the caller gave the class this number. `itemsize` is in bytes.
    pub fn buffer(
        &mut self,
        dimension_count: u32,
        layout: Layout,
        is_writeable: bool,
        format: &str,
        itemsize: isize,
        class: u64,
    ) {
        self.0.push(b'B');
        self.memory(dimension_count, layout, is_writeable);
        self.text(format);
        self.0.extend_from_slice(&itemsize.to_le_bytes());
        self.0.extend_from_slice(&class.to_le_bytes());
    }

    /// A device array: writeable, and of numbers in this machine's byte order; the caller gave its class this number.
    pub fn device_array(&mut self, class: u64, dimension_count: u32, layout: Layout, type_number: u8) {
        self.0.push(b'V');
        self.0.extend_from_slice(&class.to_le_bytes());
        self.memory(dimension_count, layout, true);
        self.type_number(type_number, false);
    }

    fn memory(&mut self, dimension_count: u32, layout: Layout, is_writeable: bool) {
        self.0.extend_from_slice(&dimension_count.to_le_bytes());
        self.0.push(layout.letter());
        self.0.push(if is_writeable { b'W' } else { b'R' });
    }

    /// The number of the type comes first and says what follows, so that a swapped byte order needs a mark before it. No
    /// number in NumPy is that of the mark: theirs are below 64.
    fn item(&mut self, item: Item) {
        match item {
            Item::Number { type_number, is_swapped } => self.type_number(type_number, is_swapped),
            Item::Date { type_number, is_swapped, unit, count } => {
                self.type_number(type_number, is_swapped);
                self.0.push(unit);
                self.0.extend_from_slice(&count.to_le_bytes());
            }
            Item::Structure { type_number, identity } => {
                self.type_number(type_number, false);
                self.0.extend_from_slice(&identity.to_le_bytes());
            }
        }
    }

    fn type_number(&mut self, type_number: u8, is_swapped: bool) {
        if is_swapped {
            self.0.push(b'~');
        }
        self.0.push(type_number);
    }

    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }
}
