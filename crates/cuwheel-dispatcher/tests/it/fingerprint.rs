//! Fingerprints: different sequences of parts never make the same string of bytes.

use cuwheel_dispatcher::{Fingerprint, Item, Layout};
use proptest::prelude::*;

/// A value as far as its fingerprint tells.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Simple(u8),
    Tuple(Vec<Value>),
    NamedTuple(u64, Vec<Value>),
    List(Box<Value>),
    Set(Box<Value>),
    Omitted(String, Box<Value>),
    Scalar(Item),
    DataType(Item),
    Array(u8, Layout, bool, Item),
    Buffer(u32, Layout, bool, String, isize, u64),
    DeviceArray(u64, u32, Layout, u8),
}

impl Value {
    fn write(&self, fingerprint: &mut Fingerprint) {
        match self {
            Self::Simple(kind) => simple(*kind)(fingerprint),
            Self::Tuple(items) => {
                fingerprint.begin_tuple();
                Self::write_all(items, fingerprint);
                fingerprint.end_tuple();
            }
            Self::NamedTuple(class, items) => {
                fingerprint.begin_named_tuple(*class);
                Self::write_all(items, fingerprint);
                fingerprint.end_tuple();
            }
            Self::List(item) => {
                fingerprint.list();
                item.write(fingerprint);
            }
            Self::Set(item) => {
                fingerprint.set();
                item.write(fingerprint);
            }
            Self::Omitted(text, value) => {
                fingerprint.omitted(text);
                value.write(fingerprint);
            }
            Self::Scalar(item) => fingerprint.scalar(*item),
            Self::DataType(item) => fingerprint.data_type(*item),
            Self::Array(ndim, layout, writeable, item) => fingerprint.array(*ndim, *layout, *writeable, *item),
            Self::DeviceArray(class, ndim, layout, number) => {
                fingerprint.device_array(*class, *ndim, *layout, *number);
            }
            Self::Buffer(ndim, layout, writeable, format, itemsize, class) => {
                fingerprint.buffer(*ndim, *layout, *writeable, format, *itemsize, *class);
            }
        }
    }

    fn write_all(items: &[Self], fingerprint: &mut Fingerprint) {
        for item in items {
            item.write(fingerprint);
        }
    }

    fn fingerprint(&self) -> Box<[u8]> {
        let mut fingerprint = Fingerprint::new();
        self.write(&mut fingerprint);
        fingerprint.into_bytes()
    }
}

fn simple(kind: u8) -> fn(&mut Fingerprint) {
    let kinds: [fn(&mut Fingerprint); 8] = [
        Fingerprint::none,
        Fingerprint::boolean,
        Fingerprint::integer,
        Fingerprint::unsigned_integer,
        Fingerprint::float,
        Fingerprint::complex,
        Fingerprint::bytes,
        Fingerprint::bytearray,
    ];
    kinds[usize::from(kind) % kinds.len()]
}

/// As NumPy numbers them: structures are 20, dates 21 and durations 22.
fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        (0_u8..17, any::<bool>()).prop_map(|(type_number, is_swapped)| Item::Number { type_number, is_swapped }),
        (21_u8..23, any::<bool>(), 0_u8..15, any::<i32>())
            .prop_map(|(type_number, is_swapped, unit, count)| Item::Date { type_number, is_swapped, unit, count }),
        any::<u64>().prop_map(|identity| Item::Structure { type_number: 20, identity }),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::C), Just(Layout::Fortran), Just(Layout::Any)]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0_u8..8).prop_map(Value::Simple),
        item().prop_map(Value::Scalar),
        item().prop_map(Value::DataType),
        (0_u8..3, layout(), any::<bool>(), item()).prop_map(|(n, l, w, i)| Value::Array(n, l, w, i)),
        (0_u64..3, 0_u32..3, layout(), 0_u8..17).prop_map(|(c, n, l, t)| Value::DeviceArray(c, n, l, t)),
        (0_u32..3, layout(), any::<bool>(), "[a-c(]{0,3}", 0_isize..3, 0_u64..3)
            .prop_map(|(n, l, w, f, s, c)| Value::Buffer(n, l, w, f, s, c)),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Tuple),
            (0_u64..3, prop::collection::vec(inner.clone(), 0..3)).prop_map(|(c, v)| Value::NamedTuple(c, v)),
            inner.clone().prop_map(|item| Value::List(Box::new(item))),
            inner.clone().prop_map(|item| Value::Set(Box::new(item))),
            ("[a-c(]{0,3}", inner).prop_map(|(text, value)| Value::Omitted(text, Box::new(value))),
        ]
    })
}

proptest! {
    #[test]
    fn equal_exactly_when_the_values_are(first in value(), second in value()) {
        prop_assert_eq!(first == second, first.fingerprint() == second.fingerprint());
    }

    #[test]
    fn no_fingerprint_is_the_beginning_of_another(first in value(), second in value()) {
        let (first_bytes, second_bytes) = (first.fingerprint(), second.fingerprint());
        prop_assert!(first == second || !second_bytes.starts_with(&first_bytes));
    }
}

#[test]
fn letters_are_those_of_numba_cuda() {
    let of = |write: &dyn Fn(&mut Fingerprint)| {
        let mut fingerprint = Fingerprint::new();
        write(&mut fingerprint);
        fingerprint.into_bytes().into_vec()
    };
    let float64 = Item::Number { type_number: 12, is_swapped: false };
    let seconds = Item::Date { type_number: 21, is_swapped: false, unit: 7, count: 3 };
    assert_eq!(of(&|f| f.array(2, Layout::Any, false, float64)), b"A\x02\x00\x00\x00AR\x0c");
    assert_eq!(of(&|f| f.scalar(seconds)), b"S\x15\x07\x03\x00\x00\x00");
    assert_eq!(of(&|f| f.data_type(Item::Number { type_number: 5, is_swapped: true })), b"D~\x05");
    assert_eq!(Layout::of(true, true), Layout::C);
}
