//! Views: where their elements lie is compared with where NumPy's rules put them, element by element.

use cuwheel_device_array::{Classified, DType, ErrorKind, Index, Layout, LayoutError, Order, ReshapeError};
use expect_test::expect;
use proptest::prelude::*;

use crate::model::{indices, layouts, position, positions, slice};
use crate::refusals;

const WHOLE: Index = Index::Slice { start: None, stop: None, step: None };

fn part(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>, step: impl Into<Option<i64>>) -> Index {
    Index::Slice { start: start.into(), stop: stop.into(), step: step.into() }
}

/// The positions that a slice takes of a dimension, found by walking. Source: the Python reference on slicings.
fn walk(start: Option<i64>, stop: Option<i64>, step: Option<i64>, size: i64) -> Vec<i64> {
    let step = step.unwrap_or(1);
    let forwards = step > 0;
    let (first, end) = if forwards { (0, size) } else { (size - 1, -1) };
    let bound = |given: Option<i64>, default: i64| match given {
        None => default,
        Some(position) if position < 0 && position + size < 0 => i64::from(forwards) - 1,
        Some(position) if position < 0 => position + size,
        Some(position) if position >= size => {
            if forwards {
                size
            } else {
                size - 1
            }
        }
        Some(position) => position,
    };
    let (start, stop) = (bound(start, first), bound(stop, end));
    std::iter::successors(Some(start), |position| Some(position + step))
        .take_while(|&position| if forwards { position < stop } else { position > stop })
        .collect()
}

/// An index expression for a layout, and the indices of the elements that it takes, one dimension after the other.
fn taken(parts: &[Index], shape: &[i64]) -> Vec<Vec<i64>> {
    let used = parts.iter().filter(|part| !matches!(part, Index::NewAxis | Index::Ellipsis)).count();
    let mut sizes = shape.iter();
    let mut choices: Vec<Vec<i64>> = vec![];
    let fill = |choices: &mut Vec<Vec<i64>>, sizes: &mut std::slice::Iter<'_, i64>| {
        choices.extend(sizes.by_ref().take(shape.len() - used).map(|&size| (0..size).collect()));
    };
    for part in parts {
        match *part {
            Index::NewAxis => {}
            Index::Ellipsis => fill(&mut choices, &mut sizes),
            Index::Integer(index) => {
                let size = sizes.next().unwrap();
                choices.push(vec![if index < 0 { index + size } else { index }]);
            }
            Index::Slice { start, stop, step } => choices.push(walk(start, stop, step, *sizes.next().unwrap())),
        }
    }
    choices.extend(sizes.map(|&size| (0..size).collect()));
    let mut taken = vec![vec![]];
    for choice in choices {
        taken = taken
            .iter()
            .flat_map(|index: &Vec<i64>| choice.iter().map(|&last| [index.as_slice(), &[last]].concat()))
            .collect();
    }
    taken
}

fn expressions() -> impl Strategy<Value = Vec<Index>> {
    let part = prop_oneof![(-5_i64..5).prop_map(Index::Integer), slice(), Just(Index::NewAxis), Just(Index::Ellipsis)];
    proptest::collection::vec(part, 0..5)
}

proptest! {
    #[test]
    fn an_index_takes_the_elements_that_walking_finds(layout in layouts(DType::Int16), parts in expressions()) {
        match layout.index(&parts, DType::Int16) {
            Ok((view, offset)) => {
                let expected: Vec<_> =
                    taken(&parts, layout.shape()).iter().map(|index| position(&layout, DType::Int16, index)).collect();
                let found = positions(&view, DType::Int16);
                prop_assert_eq!(found.into_iter().map(|bits| bits + offset * 8).collect::<Vec<_>>(), expected);
            }
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Index),
        }
    }

    #[test]
    fn a_reshaped_array_has_the_same_elements_or_no_strides_have_the_shape(
        layout in layouts(DType::Int8),
        shape in proptest::collection::vec(prop_oneof![Just(1_i64), -1_i64..7], 0..5),
    ) {
        let resolved = match layout.resolve_shape(&shape) {
            Ok(resolved) => resolved,
            Err(error) => {
                prop_assert_eq!(layout.reshape(&shape), Err(error));
                return Ok(());
            }
        };
        let expected = positions(&layout, DType::Int8);
        match layout.reshape(&shape) {
            Ok(view) => {
                prop_assert_eq!(view.shape(), resolved.as_slice());
                prop_assert_eq!(positions(&view, DType::Int8), expected);
            }
            Err(error) => {
                let needs_copy = matches!(error, ReshapeError::NeedsCopy { .. });
                prop_assert!(needs_copy);
                // Were there strides, the first steps along each dimension would tell them.
                let indices = indices(&resolved);
                let at = |wanted: &[i64]| expected[indices.iter().position(|index| index == wanted).unwrap()];
                let stride = |axis: usize| {
                    let mut index = vec![0; resolved.len()];
                    index[axis] = (resolved[axis] > 1).into();
                    at(&index) / 8
                };
                let strides: Vec<_> = (0..resolved.len()).map(stride).collect();
                let candidate = Layout::from_elements(&resolved, &strides).unwrap();
                prop_assert_ne!(positions(&candidate, DType::Int8), expected);
            }
        }
    }

    #[test]
    fn every_shape_of_a_contiguous_array_needs_no_copy(
        shape in proptest::collection::vec(0_i64..5, 0..5),
        rotation in any::<prop::sample::Index>(),
    ) {
        let layout = Layout::contiguous(&shape, Order::C).unwrap();
        let mut other = shape.clone();
        if !other.is_empty() {
            other.rotate_left(rotation.index(shape.len()));
        }
        prop_assert_eq!(layout.reshape(&other), Ok(Layout::contiguous(&other, Order::C).unwrap()));
        prop_assert_eq!(layout.ravel().unwrap().size(), layout.size());
    }

    #[test]
    fn transposing_permutes_the_index(layout in layouts(DType::Int32), rotation in any::<prop::sample::Index>()) {
        let mut axes: Vec<_> = (0..layout.ndim()).collect();
        if !axes.is_empty() {
            axes.rotate_left(rotation.index(layout.ndim()));
        }
        let negative: Vec<_> =
            axes.iter().map(|&axis| i64::try_from(axis).unwrap() - i64::try_from(axes.len()).unwrap()).collect();
        let view = layout.transpose(Some(&negative)).unwrap();
        for index in indices(view.shape()) {
            let mut original = vec![0; index.len()];
            axes.iter().zip(&index).for_each(|(&axis, &position)| original[axis] = position);
            prop_assert_eq!(position(&view, DType::Int32, &index), position(&layout, DType::Int32, &original));
        }
        let reversed = layout.transpose(None).unwrap();
        prop_assert_eq!(reversed.transpose(None).unwrap(), layout);
    }

    #[test]
    fn squeezing_drops_nothing_but_ones(layout in layouts(DType::Int32)) {
        let view = layout.squeeze(None).unwrap();
        prop_assert!(!view.shape().contains(&1));
        prop_assert_eq!(positions(&view, DType::Int32), positions(&layout, DType::Int32));
    }

    #[test]
    fn broadcasting_repeats_elements(layout in layouts(DType::Int32), front in 0_i64..3, repeat in 0_i64..4) {
        let repeated = layout.shape().iter().map(|&size| if size == 1 { repeat } else { size });
        let shape: Vec<_> = std::iter::once(front).chain(repeated).collect();
        let view = layout.broadcast_to(&shape).unwrap();
        for index in indices(&shape) {
            let original: Vec<_> =
                index[1..].iter().zip(layout.shape()).map(|(&at, &size)| if size == 1 { 0 } else { at }).collect();
            prop_assert_eq!(position(&view, DType::Int32, &index), position(&layout, DType::Int32, &original));
        }
    }

    #[test]
    fn a_view_as_another_type_covers_the_same_bytes(
        layout in layouts(DType::Int32),
        from in prop::sample::select(&DType::ALL),
        to in prop::sample::select(&DType::ALL),
    ) {
        let bytes = |layout: &Layout, dtype: DType| -> Vec<i64> {
            let bits = i64::try_from(dtype.bits()).unwrap();
            positions(layout, dtype).into_iter().flat_map(|start| start..start + bits).collect()
        };
        match layout.view(from, to) {
            Ok(view) => prop_assert_eq!(bytes(&view, to), bytes(&layout, from)),
            Err(error) => prop_assert!(from.bits() != to.bits() && error.kind() != ErrorKind::Axis, "{}", error),
        }
    }
}

/// Shapes and strides in bytes, as NumPy 2.4 gives them for the same request.
#[test]
fn views_have_the_strides_that_numpy_gives() {
    let float32 = DType::Float32;
    let of = |shape: &[i64]| Layout::contiguous(shape, Order::C).unwrap();
    let indexed = |shape: &[i64], parts: &[Index]| of(shape).index(parts, float32).unwrap().0;
    let d = of(&[4, 6]);
    for (layout, dtype, shape, strides) in [
        (indexed(&[4, 5], &[part(1, 2, 3)]), float32, &[1, 5][..], &[60, 4][..]),
        (indexed(&[4, 5], &[Index::NewAxis, Index::Ellipsis, Index::Integer(0)]), float32, &[1, 4], &[0, 20]),
        (indexed(&[4, 5], &[part(3, 1, -1)]), float32, &[2, 5], &[-20, 4]),
        (indexed(&[6], &[part(None, None, 2)]).reshape(&[1, 3, 1]).unwrap(), float32, &[1, 3, 1], &[24, 8, 8]),
        (
            indexed(&[2, 3, 4], &[WHOLE, WHOLE, part(None, None, 2)]).reshape(&[6, 1, 2]).unwrap(),
            float32,
            &[6, 1, 2],
            &[16, 16, 8],
        ),
        (of(&[6]).reshape(&[-2, 3]).unwrap(), float32, &[2, 3], &[12, 4]),
        (d.view(float32, DType::Float64).unwrap(), DType::Float64, &[4, 3], &[24, 8]),
        (
            indexed(&[4, 5], &[WHOLE, part(0, 4, None)]).view(float32, DType::Float64).unwrap(),
            DType::Float64,
            &[4, 2],
            &[20, 8],
        ),
        (d.view(float32, DType::Int16).unwrap(), DType::Int16, &[4, 12], &[24, 2]),
        (
            indexed(&[4, 6], &[WHOLE, part(None, 1, 2)]).view(float32, DType::Int16).unwrap(),
            DType::Int16,
            &[4, 2],
            &[24, 2],
        ),
        (d.view(float32, DType::opaque(12).unwrap()).unwrap(), DType::opaque(12).unwrap(), &[4, 2], &[24, 12]),
        (of(&[2, 3, 1]).broadcast_to(&[4, 2, 3, 5]).unwrap(), float32, &[4, 2, 3, 5], &[0, 12, 4, 0]),
    ] {
        assert_eq!(layout.shape(), shape);
        assert_eq!(layout.strides_bytes(dtype).unwrap().as_slice(), strides, "{shape:?}");
    }
}

#[test]
fn a_view_whose_strides_become_whole_elements_again_has_them_in_elements() {
    let odd = Layout::from_bytes(&[4, 2], &[20, 8], DType::Float64).unwrap();
    let rows = |parts: &[Index]| odd.index(parts, DType::Float64).unwrap().0;
    assert_eq!(rows(&[part(None, None, 2)]).strides_elements(), Some(&[5, 1][..]));
    assert_eq!(rows(&[Index::Integer(1)]).strides_elements(), Some(&[1][..]));
    assert_eq!(odd.index(&[Index::Integer(1)], DType::Float64).unwrap().1, 20);
    assert!(rows(&[part(2, 2, None)]).is_c_contiguous());
    assert_eq!(odd.transpose(None).unwrap().strides_elements(), None);
    assert_eq!(odd.view(DType::Float64, DType::Float32).unwrap().strides_elements(), Some(&[5, 1][..]));
}

#[test]
fn packed_elements_are_indexed_where_bytes_begin() {
    let layout = Layout::contiguous(&[3, 4], Order::C).unwrap();
    let at = |column| layout.index(&[Index::Integer(1), part(column, None, None)], DType::Float4E2M1Fn);
    assert_eq!(at(2).unwrap().1, 3);
    assert_eq!(at(1), Err(LayoutError::InsideByte { dtype: DType::Float4E2M1Fn }));
    assert_eq!(layout.view(DType::Float4E2M1Fn, DType::UInt8).unwrap().shape(), [3, 2]);
    assert_eq!(layout.view(DType::Float6E2M3Fn, DType::UInt8).unwrap().shape(), [3, 3]);
}

#[test]
fn impossible_views_are_refused_with_a_reason() {
    let layout = Layout::contiguous(&[4, 6], Order::C).unwrap();
    let index = |parts: &[Index]| layout.index(parts, DType::Float32).unwrap_err();
    let transposed = layout.transpose(None).unwrap();
    let (float32, float64) = (DType::Float32, DType::Float64);
    let scalar = Layout::contiguous(&[], Order::C).unwrap();
    let odd = Layout::contiguous(&[4, 5], Order::C).unwrap();
    refusals(
        &expect![[r#"
            Index: index 4 is out of bounds for axis 0 with size 4; use -4 to 3
            Index: too many indices: the array has 2 dimensions, but 3 were indexed; leave some out
            Index: an index can have only one ellipsis ('...'); write out the dimensions that the others stand for
            Value: the step of a slice cannot be zero; leave it out to take every element
            Index: the index would make 65 dimensions; an array can have up to 64
            Index: index -1 is out of bounds for axis 0 with size 0; use a slice, for it has no element
            Buffer: an array cannot begin inside of a byte, which holds several elements of type float4_e2m1fn; choose a beginning that is a whole number of bytes, or view the array as uint8 first
            Value: 1 axes were given for 2 dimensions; name each once
            Value: axis -2 is given twice; name each once
            Axis: axis -9223372036854775808 is out of bounds for an array of 2 dimensions; axes are counted from 0, or back from -1
            Value: dimension 1 has 6 elements; only a dimension of one element can be squeezed out
            Value: an array of shape (4, 6) cannot be broadcast to the shape (4, 7); from the last dimension on, each size must be the same or 1
            Value: an array of shape (4, 6) cannot be broadcast to the shape (6,); from the last dimension on, each size must be the same or 1
            Value: the size of dimension 0 is -1; sizes must not be negative
            Value: an array of shape (6, 4) and these strides cannot take the shape (24,) without a copy; copy it first, or allow a copy
            Value: an array of 24 elements cannot take the shape (5, -1); the sizes must multiply to 24
            Value: an array of 24 elements cannot take the shape (7,); the sizes must multiply to 24
            Value: the shape (-1, 2, -1) leaves more than one size open; only one can be negative
            Value: an array of 65 dimensions is not supported; it can have up to 64
            Value: an array without dimensions cannot be viewed as float64 instead of float32, which has another size; reshape it first
            Value: to view float32 as float64, which has another size, the last dimension must be contiguous; copy the array first
            Value: 5 elements of type float32 in the last dimension cannot be viewed as float64; a smaller type must go into the larger one without rest, and the last dimension must be a whole number of elements
            Value: 6 elements of type float32 in the last dimension cannot be viewed as opaque[3]; a smaller type must go into the larger one without rest, and the last dimension must be a whole number of elements
        "#]],
        [
            index(&[Index::Integer(4)]).into(),
            index(&[WHOLE, WHOLE, WHOLE]).into(),
            index(&[Index::Ellipsis, Index::Ellipsis]).into(),
            index(&[part(None, None, 0)]).into(),
            index(&[Index::NewAxis; 63]).into(),
            Layout::contiguous(&[0], Order::C).unwrap().index(&[Index::Integer(-1)], float32).unwrap_err().into(),
            layout.index(&[WHOLE, Index::Integer(1)], DType::Float4E2M1Fn).unwrap_err().into(),
            layout.transpose(Some(&[0])).unwrap_err().into(),
            layout.transpose(Some(&[0, -2])).unwrap_err().into(),
            layout.transpose(Some(&[0, i64::MIN])).unwrap_err().into(),
            layout.squeeze(Some(&[1])).unwrap_err().into(),
            layout.broadcast_to(&[4, 7]).unwrap_err().into(),
            layout.broadcast_to(&[6]).unwrap_err().into(),
            layout.broadcast_to(&[-1, 4, 6]).unwrap_err().into(),
            transposed.reshape(&[24]).unwrap_err().into(),
            layout.reshape(&[5, -1]).unwrap_err().into(),
            layout.reshape(&[7]).unwrap_err().into(),
            layout.reshape(&[-1, 2, -1]).unwrap_err().into(),
            layout.reshape(&[1; 65]).unwrap_err().into(),
            scalar.view(float32, float64).unwrap_err().into(),
            transposed.view(float32, float64).unwrap_err().into(),
            odd.view(float32, float64).unwrap_err().into(),
            layout.view(float32, DType::opaque(3).unwrap()).unwrap_err().into(),
        ],
    );
}
