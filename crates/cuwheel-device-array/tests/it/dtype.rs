//! Element types: every spelling leads back to the type, and everything else is refused with a reason.

use std::collections::HashSet;

use cuwheel_device_array::DType;
use expect_test::expect;
use proptest::prelude::*;

use crate::refusals;

#[test]
fn every_spelling_of_a_type_leads_back_to_it() {
    let mut seen = HashSet::new();
    for dtype in DType::ALL {
        let (code, bits, lanes) = dtype.dlpack().unwrap();
        assert_eq!(DType::from_dlpack(code, bits, lanes).unwrap(), dtype);
        assert_eq!(DType::from_name(dtype.name()).unwrap(), dtype);
        assert_eq!(dtype.bits(), u64::from(bits) * u64::from(lanes), "{dtype}");
        assert_eq!(dtype.is_complex(), code == 5);
        if let Some(typestr) = dtype.typestr() {
            assert_eq!(DType::from_typestr(&typestr).unwrap(), dtype);
        }
        assert!(seen.insert(dtype), "{dtype} is there twice");
    }
    let record = DType::opaque(12).unwrap();
    assert_eq!(record.dlpack(), None);
    assert_eq!(DType::from_name(&record.to_string()).unwrap(), record);
    assert_eq!(DType::from_typestr(&record.typestr().unwrap()).unwrap(), record);
}

#[test]
fn a_type_takes_eight_bytes() {
    assert_eq!(size_of::<DType>(), 8);
}

#[test]
fn type_strings_are_those_of_numpy() {
    let of = |typestr: &str| DType::from_typestr(typestr).unwrap().to_string();
    for (typestr, expected) in [
        ("<f4", "float32"),
        ("=f8", "float64"),
        ("|f2", "float16"),
        ("|b1", "bool"),
        (">u1", "uint8"),
        ("<i8", "int64"),
        ("<c8", "complex64"),
        ("|V12", "opaque[12]"),
        (">V12", "opaque[12]"),
        ("<M8[ns]", "opaque[8]"),
        ("<m8", "opaque[8]"),
        ("<M8[25s]", "opaque[8]"),
        ("|S5", "opaque[5]"),
        ("<U3", "opaque[12]"),
    ] {
        assert_eq!(of(typestr), expected, "{typestr}");
    }
}

#[test]
fn what_is_no_type_is_refused_with_a_reason() {
    refusals(
        &expect![[r#"
            Buffer: an element type of DLPack code 5, 32 bits and 1 lanes is not supported; convert the array to a type that NumPy or ml_dtypes has before passing it on
            Buffer: an element type of DLPack code 2, 32 bits and 4 lanes is not supported; convert the array to a type that NumPy or ml_dtypes has before passing it on
            Type: there is no element type named "float33"; names are those of NumPy and ml_dtypes, such as "float32"
            Type: elements of type ">f4" are in the byte order of another machine; convert them first, for example with `a.astype(a.dtype.newbyteorder('='))`
            Type: the type string "|O8" is not supported; convert the array to a type of fixed size without objects
            Value: elements of 0 bytes are not supported; an element has between 1 and 4294967295 bytes
            Value: 2305843009213693951 elements of type complex128 are more than the address space holds; ask for a smaller array
        "#]],
        [
            DType::from_dlpack(5, 32, 1).unwrap_err().into(),
            DType::from_dlpack(2, 32, 4).unwrap_err().into(),
            DType::from_name("float33").unwrap_err().into(),
            DType::from_typestr(">f4").unwrap_err().into(),
            DType::from_typestr("|O8").unwrap_err().into(),
            DType::opaque(0).unwrap_err().into(),
            DType::Complex128.bytes_for(usize::MAX / 8).unwrap_err().into(),
        ],
    );
    for typestr in
        ["", "<", "<f", "f4", "<f16", "<c4", "<f+4", "<f4 ", "é4", "<é4", "|V99999999999999999999", "|M8[", "<t1"]
    {
        // A unit is not looked at: the size says all that is used.
        assert_eq!(DType::from_typestr(typestr).is_ok(), typestr == "|M8[", "{typestr}");
    }
    for name in ["opaque", "opaque[]", "opaque[0]", "opaque[x]", "Float32", ""] {
        assert!(DType::from_name(name).is_err(), "{name}");
    }
}

#[test]
fn packed_elements_have_no_size_of_their_own_but_a_size_together() {
    assert_eq!(DType::Float6E2M3Fn.size_bytes(), None);
    assert_eq!(DType::Float4E2M1Fn.size_bytes(), None);
    assert_eq!(DType::Float4E2M1FnX2.size_bytes(), Some(1));
    for (dtype, elements, bytes) in [
        (DType::Float6E2M3Fn, 4, 3),
        (DType::Float6E2M3Fn, 5, 4),
        (DType::Float4E2M1Fn, 3, 2),
        (DType::Float4E2M1Fn, 0, 0),
    ] {
        assert_eq!(dtype.bytes_for(elements), Ok(bytes));
    }
}

proptest! {
    #[test]
    fn no_type_string_panics(typestr in "[<>|=]?[a-zA-Z]?[0-9]{0,20}(\\[[a-z0-9]*\\])?") {
        if let Ok(dtype) = DType::from_typestr(&typestr) {
            prop_assert!(dtype.size_bytes().is_some());
        }
    }

    #[test]
    fn every_dlpack_type_is_either_known_exactly_or_refused(code: u8, bits: u8, lanes: u16) {
        if let Ok(dtype) = DType::from_dlpack(code, bits, lanes) {
            prop_assert_eq!(dtype.dlpack(), Some((code, bits, lanes)));
        }
    }
}
