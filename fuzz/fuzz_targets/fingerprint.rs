//! Fingerprints: two values have the same one exactly if they are the same, and none is the beginning of another.

#![no_main]

use arbitrary::Arbitrary;
use cuwheel_dispatcher::{Fingerprint, Item, Layout};
use libfuzzer_sys::fuzz_target;

/// A value as far as its fingerprint tells.
#[derive(Debug, Clone, PartialEq, Arbitrary)]
enum Value {
    None,
    Boolean,
    Integer,
    UnsignedInteger,
    Float,
    Complex,
    Bytes,
    ByteArray,
    Tuple(Vec<Value>),
    NamedTuple(u64, Vec<Value>),
    List(Box<Value>),
    Set(Box<Value>),
    Omitted(String, Box<Value>),
    Scalar(Element),
    DataType(Element),
    Array { dimension_count: u8, memory: Memory, element: Element },
    Buffer { dimension_count: u32, memory: Memory, format: String, itemsize: isize, class: u64 },
    DeviceArray { class: u64, dimension_count: u32, order: Order, number: Number },
}

#[derive(Debug, Clone, PartialEq, Arbitrary)]
struct Memory {
    order: Order,
    is_writeable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Arbitrary)]
enum Order {
    C,
    Fortran,
    Any,
}

/// NumPy's number of a type that its number says all about.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Number(u8);

#[derive(Debug, Clone, Copy, PartialEq, Arbitrary)]
enum Element {
    Number { number: Number, is_swapped: bool },
    Date { is_duration: bool, is_swapped: bool, unit: u8, count: i32 },
    Structure { identity: u64 },
}

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(bytes: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes.int_in_range(0..=16).map(Self)
    }
}

fuzz_target!(|values: (Value, Value, bool)| {
    let (first, second, is_same) = values;
    let second = if is_same { first.clone() } else { second };
    let (first_bytes, second_bytes) = (fingerprint(&first), fingerprint(&second));
    assert_eq!(first == second, first_bytes == second_bytes, "{first:?} and {second:?}");
    if first != second {
        assert!(!first_bytes.starts_with(&second_bytes), "{second:?} begins {first:?}");
        assert!(!second_bytes.starts_with(&first_bytes), "{first:?} begins {second:?}");
    }
});

fn fingerprint(value: &Value) -> Box<[u8]> {
    let mut fingerprint = Fingerprint::new();
    write(value, &mut fingerprint);
    fingerprint.into_bytes()
}

fn write(value: &Value, fingerprint: &mut Fingerprint) {
    match value {
        Value::None => fingerprint.none(),
        Value::Boolean => fingerprint.boolean(),
        Value::Integer => fingerprint.integer(),
        Value::UnsignedInteger => fingerprint.unsigned_integer(),
        Value::Float => fingerprint.float(),
        Value::Complex => fingerprint.complex(),
        Value::Bytes => fingerprint.bytes(),
        Value::ByteArray => fingerprint.bytearray(),
        Value::Tuple(items) => {
            fingerprint.begin_tuple();
            items.iter().for_each(|item| write(item, fingerprint));
            fingerprint.end_tuple();
        }
        Value::NamedTuple(class, items) => {
            fingerprint.begin_named_tuple(*class);
            items.iter().for_each(|item| write(item, fingerprint));
            fingerprint.end_tuple();
        }
        Value::List(item) => {
            fingerprint.list();
            write(item, fingerprint);
        }
        Value::Set(item) => {
            fingerprint.set();
            write(item, fingerprint);
        }
        Value::Omitted(default, item) => {
            fingerprint.omitted(default);
            write(item, fingerprint);
        }
        Value::Scalar(element) => fingerprint.scalar(item(*element)),
        Value::DataType(element) => fingerprint.data_type(item(*element)),
        Value::Array { dimension_count, memory, element } => {
            fingerprint.array(*dimension_count, layout(memory.order), memory.is_writeable, item(*element));
        }
        Value::Buffer { dimension_count, memory, format, itemsize, class } => {
            let layout = layout(memory.order);
            fingerprint.buffer(*dimension_count, layout, memory.is_writeable, format, *itemsize, *class);
        }
        Value::DeviceArray { class, dimension_count, order, number } => {
            fingerprint.device_array(*class, *dimension_count, layout(*order), number.0);
        }
    }
}

/// As NumPy numbers them: structures are 20, dates 21 and durations 22.
fn item(element: Element) -> Item {
    match element {
        Element::Number { number, is_swapped } => Item::Number { type_number: number.0, is_swapped },
        Element::Date { is_duration, is_swapped, unit, count } => {
            Item::Date { type_number: 21 + u8::from(is_duration), is_swapped, unit, count }
        }
        Element::Structure { identity } => Item::Structure { type_number: 20, identity },
    }
}

fn layout(order: Order) -> Layout {
    match order {
        Order::C => Layout::C,
        Order::Fortran => Layout::Fortran,
        Order::Any => Layout::Any,
    }
}
