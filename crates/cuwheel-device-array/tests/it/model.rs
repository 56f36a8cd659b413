//! The slow way to say where elements lie: one by one.

use cuwheel_device_array::{DType, Dims, Index, Layout, Order, Strides};
use proptest::prelude::*;

/// The indices of all elements of an array of this shape, in the order of C.
pub(crate) fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut indices = vec![vec![]];
    for &size in shape {
        let extended =
            |index: &Vec<i64>| (0..size).map(|last| [index.as_slice(), &[last]].concat()).collect::<Vec<_>>();
        indices = indices.iter().flat_map(extended).collect();
    }
    indices
}

/// Where the element at `index` begins, in bits from the first element.
pub(crate) fn position(layout: &Layout, dtype: DType, index: &[i64]) -> i64 {
    let (strides, unit): (&Dims, _) = match layout.strides() {
        Strides::Elements(strides) => (strides, i64::try_from(dtype.bits()).unwrap()),
        Strides::Bytes(strides) => (strides, 8),
    };
    index.iter().zip(strides).map(|(position, stride)| position * stride * unit).sum()
}

/// Where all elements begin, in the order of C, in bits from the first element.
pub(crate) fn positions(layout: &Layout, dtype: DType) -> Vec<i64> {
    indices(layout.shape()).iter().map(|index| position(layout, dtype, index)).collect()
}

/// Part of an index expression that fits any dimension of up to five elements, and some that do not.
pub(crate) fn slice() -> impl Strategy<Value = Index> {
    let bound = || proptest::option::of(-7_i64..8);
    (bound(), bound(), proptest::option::of(prop_oneof![-3_i64..0, 1_i64..4]))
        .prop_map(|(start, stop, step)| Index::Slice { start, stop, step })
}

/// Layouts as users make them: slices of a contiguous array, its dimensions in some order.
pub(crate) fn layouts(dtype: DType) -> impl Strategy<Value = Layout> {
    let dimension = (prop_oneof![1 => Just(0_i64), 2 => Just(1), 6 => 2_i64..6], proptest::option::of(slice()));
    (proptest::collection::vec(dimension, 0..5), any::<bool>(), any::<prop::sample::Index>()).prop_map(
        move |(dimensions, is_reversed, rotation)| {
            let (shape, slices): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
            let whole = Index::Slice { start: None, stop: None, step: None };
            let slices: Vec<_> = slices.into_iter().map(|slice| slice.unwrap_or(whole)).collect();
            let layout = Layout::contiguous(&shape, Order::C).unwrap().index(&slices, dtype).unwrap().0;
            let mut axes: Vec<_> = (0_i64..).take(shape.len()).collect();
            if !axes.is_empty() {
                axes.rotate_left(rotation.index(shape.len()));
            }
            if is_reversed {
                axes.reverse();
            }
            layout.transpose(Some(&axes)).unwrap()
        },
    )
}
