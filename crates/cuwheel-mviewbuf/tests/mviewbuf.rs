//! Extents and pointer-backed buffers against tables of known answers and against brute force.

use cuwheel_mviewbuf::{Extents, ExtentsError, PointerBuffer, PointerBufferError};
use proptest::prelude::*;

fn extents(shape: &[isize], strides: &[isize], itemsize: isize) -> Result<(isize, isize), ExtentsError> {
    Extents::of_array(shape, strides, itemsize).map(|extents| (extents.start(), extents.end()))
}

/// Shape, strides and item size, and what is expected of them.
type Case<Expected> = (&'static [isize], &'static [isize], isize, Expected);

#[test]
fn extents_of_known_arrays() {
    let cases: &[Case<(isize, isize)>] = &[
        (&[], &[], 8, (0, 8)),
        (&[], &[], 0, (0, 0)),
        (&[4], &[8], 8, (0, 32)),
        (&[1], &[-8], 8, (0, 8)),
        (&[3, 4], &[32, 8], 8, (0, 96)),
        (&[3, 4], &[-32, 8], 8, (-64, 32)),
        (&[3, 4], &[-32, -8], 8, (-88, 8)),
        (&[3], &[0], 8, (0, 8)),
        (&[0], &[8], 8, (0, 0)),
        (&[3, 0, 2], &[-8, 4, 4], 4, (0, 0)),
        (&[5], &[16], 0, (0, 64)),
        // A dimension of negative size follows the formula of any other.
        (&[-3], &[8], 8, (0, -24)),
        (&[-3], &[-8], 8, (32, 8)),
        // An empty dimension makes overflow in another one irrelevant, in either order.
        (&[isize::MAX, 0], &[8, 8], 8, (0, 0)),
        (&[0, isize::MAX], &[8, 8], 8, (0, 0)),
        (&[isize::MAX], &[1], 1, (0, isize::MAX)),
        (&[2], &[isize::MIN], 1, (isize::MIN, 1)),
    ];
    for &(shape, strides, itemsize, expected) in cases {
        assert_eq!(extents(shape, strides, itemsize), Ok(expected), "{shape:?} {strides:?} {itemsize}");
    }
}

#[test]
fn extents_that_do_not_exist_are_errors() {
    let overflow = ExtentsError::OffsetOverflow;
    let cases: &[Case<ExtentsError>] = &[
        (&[], &[], -1, ExtentsError::NegativeItemSize { itemsize: -1 }),
        (&[1], &[], 8, ExtentsError::DimensionMismatch { shape: 1, strides: 0 }),
        (&[], &[1, 2], 8, ExtentsError::DimensionMismatch { shape: 0, strides: 2 }),
        (&[isize::MAX], &[8], 8, overflow),
        (&[isize::MIN], &[1], 8, overflow),
        (&[isize::MAX, 2], &[1, 1], 1, overflow),
        (&[isize::MAX], &[1], 2, overflow),
        (&[3], &[isize::MIN], 1, overflow),
    ];
    for &(shape, strides, itemsize, error) in cases {
        assert_eq!(extents(shape, strides, itemsize), Err(error), "{shape:?} {strides:?} {itemsize}");
    }
}

#[test]
fn extents_at_an_address_stay_inside_the_address_space() {
    let around = Extents::of_array(&[3, 4], &[-32, 8], 8).unwrap();
    assert_eq!(around.at(64), Ok(0..96));
    assert_eq!(around.at(usize::MAX - 32), Ok(usize::MAX - 96..usize::MAX));
    for address in [0, 63, usize::MAX - 31] {
        assert_eq!(around.at(address), Err(ExtentsError::AddressOverflow { address, start: -64, end: 32 }));
    }
}

#[test]
fn pointer_buffers_are_validated() {
    let outside = |address, size_bytes| PointerBufferError::OutsideAddressSpace { address, size_bytes };
    let cases: &[(usize, isize, Result<(), PointerBufferError>)] = &[
        (1, 0, Ok(())),
        (4096, isize::MAX, Ok(())),
        (usize::MAX, 0, Ok(())),
        (usize::MAX, 1, Err(outside(usize::MAX, 1))),
        (usize::MAX - 7, 8, Err(outside(usize::MAX - 7, 8))),
        (0, 0, Err(PointerBufferError::NullPointer)),
        (0, 5, Err(PointerBufferError::NullPointer)),
        (0, -1, Err(PointerBufferError::NegativeSize)),
        (4096, isize::MIN, Err(PointerBufferError::NegativeSize)),
    ];
    for &(address, size_bytes, expected) in cases {
        let buffer = PointerBuffer::new(address, size_bytes);
        assert_eq!(buffer.map(|_| ()), expected, "{address:#x} {size_bytes}");
        if let Ok(buffer) = buffer {
            assert_eq!((buffer.address().get(), buffer.size_bytes()), (address, size_bytes));
        }
    }
}

/// Every byte that an array covers, found by visiting every item.
fn brute_force(dimensions: &[(isize, isize)], itemsize: isize) -> (isize, isize) {
    let mut offsets = vec![0];
    for &(size, stride) in dimensions {
        offsets = offsets.iter().flat_map(|offset| (0..size).map(move |index| offset + index * stride)).collect();
    }
    match (offsets.iter().min(), offsets.iter().max()) {
        (Some(first), Some(last)) => (*first, last + itemsize),
        _ => (0, 0),
    }
}

proptest! {
    #[test]
    fn extents_agree_with_visiting_every_item(
        dimensions in prop::collection::vec((0isize..5, -20isize..20), 0..5),
        itemsize in 0isize..17,
    ) {
        let (shape, strides): (Vec<_>, Vec<_>) = dimensions.iter().copied().unzip();
        prop_assert_eq!(extents(&shape, &strides, itemsize), Ok(brute_force(&dimensions, itemsize)));
    }

    #[test]
    fn extents_never_wrap_around(
        dimensions in prop::collection::vec((any::<isize>(), any::<isize>()), 0..4),
        itemsize in any::<isize>(),
        address in any::<usize>(),
    ) {
        let (shape, strides): (Vec<_>, Vec<_>) = dimensions.iter().copied().unzip();
        let (mut start, mut end) = (0i128, itemsize as i128);
        for &(size, stride) in &dimensions {
            let last_item = (size as i128 - 1).saturating_mul(stride as i128);
            if stride > 0 { end = end.saturating_add(last_item) } else { start = start.saturating_add(last_item) }
        }
        if let Ok(found) = Extents::of_array(&shape, &strides, itemsize) {
            let is_empty = shape.contains(&0);
            prop_assert!(is_empty || (found.start() as i128, found.end() as i128) == (start, end));
            if let Ok(range) = found.at(address) {
                prop_assert_eq!(range.start as i128, address as i128 + found.start() as i128);
                prop_assert_eq!(range.end as i128, address as i128 + found.end() as i128);
            }
        }
    }
}
