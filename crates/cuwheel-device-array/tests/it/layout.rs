//! Shapes and strides: what is contiguous, what is covered, and what cannot be.

use cuwheel_device_array::{DType, Layout, LayoutError, Order};
use expect_test::expect;

use crate::refusals;

#[test]
fn contiguous_layouts_are_contiguous_in_their_order() {
    for shape in [&[][..], &[0], &[1], &[7], &[2, 3], &[2, 0, 3], &[1, 5, 1], &[2, 3, 4, 5, 6, 7]] {
        let c = Layout::contiguous(shape, Order::C).unwrap();
        let f = Layout::contiguous(shape, Order::F).unwrap();
        assert!(c.is_c_contiguous() && f.is_f_contiguous(), "{shape:?}");
        let both = shape.iter().filter(|&&size| size != 1).count() <= 1 || shape.contains(&0);
        assert_eq!((c.is_f_contiguous(), f.is_c_contiguous()), (both, both), "{shape:?}");
        assert_eq!(c.size(), usize::try_from(shape.iter().product::<i64>()).unwrap());
    }
}

#[test]
fn contiguity_ignores_dimensions_of_one_element_and_holds_without_elements() {
    for (shape, strides, c, f) in [
        (&[3, 1, 4][..], &[4, 999, 1][..], true, false),
        (&[1], &[-7], true, true),
        (&[1, 1], &[i64::MAX, i64::MIN], true, true),
        (&[0, 3], &[17, -5], true, true),
        (&[1 << 40, 1 << 40, 0], &[1, 1, 1], true, true),
        (&[2, 2], &[2, -1], false, false),
        (&[2, 2], &[0, 1], false, false),
        (&[2, 2], &[1, 2], false, true),
    ] {
        let layout = Layout::from_elements(shape, strides).unwrap();
        assert_eq!((layout.is_c_contiguous(), layout.is_f_contiguous()), (c, f), "{shape:?} {strides:?}");
    }
}

#[test]
fn strides_are_kept_in_elements_wherever_that_is_possible() {
    let of = |shape: &[i64], strides: &[i64]| Layout::from_bytes(shape, strides, DType::Float64).unwrap();
    assert_eq!(of(&[2, 3], &[24, -8]).strides_elements(), Some(&[3, -1][..]));
    let odd = of(&[2, 3], &[20, 8]);
    assert_eq!(odd.strides_elements(), None);
    assert_eq!(odd.strides_bytes(DType::Float64).unwrap().as_slice(), [20, 8]);
    assert!(!odd.is_c_contiguous());
    // Nobody takes the step of 20 bytes.
    assert_eq!(of(&[1, 3], &[20, 8]).strides_elements(), Some(&[1, 1][..]));
    assert!(of(&[0, 3], &[20, 7]).is_c_contiguous());
}

#[test]
fn strides_that_nobody_takes_do_not_overflow() {
    let layout = Layout::from_elements(&[1, 3], &[i64::MAX, 1]).unwrap();
    assert_eq!(layout.strides_bytes(DType::Int32).unwrap().as_slice(), [4, 4]);
}

#[test]
fn extents_are_those_of_the_bytes_that_elements_lie_in() {
    for (shape, strides, dtype, expected) in [
        (&[3, 4][..], &[-4, 1][..], DType::Float64, -64..32),
        (&[], &[], DType::Int16, 0..2),
        (&[0, 4], &[4, 1], DType::Int16, 0..0),
        (&[5], &[0], DType::Int16, 0..2),
        (&[5], &[1], DType::Float4E2M1Fn, 0..3),
        (&[4], &[-1], DType::Float6E2M3Fn, -3..1),
    ] {
        let layout = Layout::from_elements(shape, strides).unwrap();
        assert_eq!(layout.extents_bytes(dtype), Ok(expected), "{shape:?} {strides:?} {dtype}");
    }
    let odd = Layout::from_bytes(&[2, 3], &[-20, 8], DType::Float64).unwrap();
    assert_eq!(odd.extents_bytes(DType::Float64), Ok(-20..24));
}

#[test]
fn what_is_no_layout_is_refused_with_a_reason() {
    refusals(
        &expect![[r#"
            Value: the size of dimension 1 is -1; sizes must not be negative
            Value: the size of dimension 1 is -1; sizes must not be negative
            Value: 1 strides were given for 2 dimensions; give one for each
            Value: the array would be too large to be addressed; use smaller sizes or strides
            Value: an array of 65 dimensions is not supported; it can have up to 64
            Buffer: elements of type float4_e2m1fn share bytes, so that the step from one to the next is no number of bytes; view the array as uint8 first
        "#]],
        [
            Layout::contiguous(&[2, -1], Order::C).unwrap_err().into(),
            Layout::from_elements(&[0, -1], &[1, 1]).unwrap_err().into(),
            Layout::from_elements(&[2, 2], &[1]).unwrap_err().into(),
            Layout::contiguous(&[1 << 62, 4, 0], Order::C).unwrap_err().into(),
            Layout::contiguous(&[1; 65], Order::C).unwrap_err().into(),
            Layout::from_bytes(&[2], &[1], DType::Float4E2M1Fn).unwrap_err().into(),
        ],
    );
    for (shape, strides) in [
        (&[1 << 32, 1 << 32][..], &[0, 0][..]),
        (&[3, 3], &[i64::MAX / 3, i64::MAX / 3]),
        (&[2, 2], &[i64::MIN, -1]),
        (&[1 << 62, 2, 2], &[1, 1, 1]),
    ] {
        assert_eq!(Layout::from_elements(shape, strides), Err(LayoutError::TooLarge), "{shape:?} {strides:?}");
    }
    let layout = Layout::from_elements(&[2], &[i64::MAX / 2]).unwrap();
    assert_eq!(layout.extents_bytes(DType::Float64), Err(LayoutError::TooLarge));
    assert_eq!(layout.strides_bytes(DType::Float64), Err(LayoutError::TooLarge));
}
