//! Shapes and strides: how the elements of an array lie around the first one.
//!
//! A layout is arithmetic only; it knows neither an address nor whether memory exists. What makes a new layout of one
//! is in the files of `layout/`.

mod axes;
mod elements;
mod error;
mod index;
mod reshape;
mod view;

use std::ops::Range;

use smallvec::SmallVec;

pub use elements::Elements;
pub use error::LayoutError;
pub(crate) use error::Tuple;
pub use index::Index;
pub use reshape::ReshapeError;

use crate::{DType, DTypeError};

/// One number for each dimension; up to five need no allocation.
pub type Dims = SmallVec<[i64; INLINE_DIMENSIONS]>;

const INLINE_DIMENSIONS: usize = 5;

/// The most dimensions that a layout can have, as in NumPy.
pub const MAXIMUM_DIMENSIONS: usize = 64;

/// The order in which the elements of new memory lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The last index varies fastest, as in C.
    #[default]
    C,
    /// The first index varies fastest, as in Fortran.
    F,
}

/// How far it is from one element to the next, for each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Strides {
    /// Counted in elements, as in DLPack.
    Elements(Dims),
    /// Counted in bytes. Only where some stride is no whole number of elements.
    Bytes(Dims),
}

/// The shape of an array and the strides between its elements.
///
/// Always holds: there are as many strides as sizes, at most [`MAXIMUM_DIMENSIONS`]; no size is negative; the number
/// of elements and the distance from the first to each of them fit in an `i64`. Every constructor checks that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Dims,
    strides: Strides,
}

impl Layout {
    /// Elements one beside the other, in `order`. The sizes are numbers of elements.
    pub fn contiguous(shape: &[i64], order: Order) -> Result<Self, LayoutError> {
        check_dimensions(shape.len())?;
        let mut strides: Dims = SmallVec::from_elem(1, shape.len());
        let mut stride = 1_i64;
        let mut set = |axis: usize| -> Result<(), LayoutError> {
            strides[axis] = stride;
            // An empty dimension does not make the others smaller, and does not hide that they are too large.
            match shape[axis] {
                0 => {}
                size if size < 0 => return Err(LayoutError::NegativeSize { axis, size }),
                size => stride = stride.checked_mul(size).ok_or(LayoutError::TooLarge)?,
            }
            Ok(())
        };
        match order {
            Order::C => (0..shape.len()).rev().try_for_each(&mut set)?,
            Order::F => (0..shape.len()).try_for_each(&mut set)?,
        }
        Ok(Self { shape: SmallVec::from_slice(shape), strides: Strides::Elements(strides) })
    }

    /// Elements at strides counted in elements.
    #[inline]
    pub fn from_elements(shape: &[i64], strides: &[i64]) -> Result<Self, LayoutError> {
        Elements::new(shape, strides).map(Elements::layout)
    }

    /// Elements of type `dtype` at strides counted in bytes, as in the CUDA array interface and Python's buffers.
    ///
    /// Where only a dimension without a second element keeps the strides from being counted in elements, its stride is
    /// replaced by one that can: nobody ever takes that step, and DLPack has no other unit.
    pub fn from_bytes(shape: &[i64], strides: &[i64], dtype: DType) -> Result<Self, LayoutError> {
        if shape.len() != strides.len() {
            return Err(LayoutError::StrideCount { dimensions: shape.len(), strides: strides.len() });
        }
        let item = item_bytes(dtype)?;
        check(shape, strides)?;
        Ok(Self::from_bytes_unchecked(SmallVec::from_slice(shape), SmallVec::from_slice(strides), item))
    }

    /// As [`from_bytes`](Self::from_bytes), when sizes and strides are known to fit.
    fn from_bytes_unchecked(shape: Dims, strides: Dims, item: i64) -> Self {
        let is_empty = shape.contains(&0);
        let mut elements: Dims = SmallVec::with_capacity(strides.len());
        for (&size, &stride) in shape.iter().zip(&strides) {
            match stride % item {
                0 => elements.push(stride / item),
                _ if is_empty || size == 1 => elements.push(1),
                _ => return Self { shape, strides: Strides::Bytes(strides) },
            }
        }
        Self { shape, strides: Strides::Elements(elements) }
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements along each dimension.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The strides, in the unit that they are kept in.
    #[inline]
    pub fn strides(&self) -> &Strides {
        &self.strides
    }

    /// The strides as numbers of whatever unit they are kept in.
    #[inline]
    fn raw_strides(&self) -> &[i64] {
        let (Strides::Elements(strides) | Strides::Bytes(strides)) = &self.strides;
        strides
    }

    /// The strides in elements, if they are whole numbers; kept, not computed.
    #[inline]
    pub fn strides_elements(&self) -> Option<&[i64]> {
        match &self.strides {
            Strides::Elements(strides) => Some(strides),
            Strides::Bytes(_) => None,
        }
    }

    /// The strides in bytes between elements of type `dtype`, which must be the type that the layout was made for.
    pub fn strides_bytes(&self, dtype: DType) -> Result<Dims, LayoutError> {
        match &self.strides {
            Strides::Bytes(strides) => Ok(strides.clone()),
            Strides::Elements(strides) => {
                let item = item_bytes(dtype)?;
                let in_bytes = |(&stride, &size): (&i64, &i64)| match stride.checked_mul(item) {
                    Some(stride) => Ok(stride),
                    // A step that nobody takes can be anything.
                    None if size <= 1 || self.is_empty() => Ok(item),
                    None => Err(LayoutError::TooLarge),
                };
                strides.iter().zip(&self.shape).map(in_bytes).collect()
            }
        }
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        size(&self.shape)
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The bytes that the elements take without gaps between them.
    #[inline]
    pub fn size_bytes(&self, dtype: DType) -> Result<usize, DTypeError> {
        dtype.bytes_for(self.size())
    }

    /// Whether the elements lie one beside the other with the last index varying fastest.
    ///
    /// Dimensions of one element do not matter, and an array without elements is contiguous.
    #[inline]
    pub fn is_c_contiguous(&self) -> bool {
        self.is_dense(self.shape.iter().copied().enumerate().rev())
    }

    /// Whether the elements lie one beside the other with the first index varying fastest.
    ///
    /// Dimensions of one element do not matter, and an array without elements is contiguous.
    #[inline]
    pub fn is_f_contiguous(&self) -> bool {
        self.is_dense(self.shape.iter().copied().enumerate())
    }

    #[inline]
    fn is_dense(&self, axes: impl Iterator<Item = (usize, i64)>) -> bool {
        // Strides are kept in bytes only where one that is used is no whole number of elements: there is a gap.
        let Strides::Elements(strides) = &self.strides else { return false };
        are_dense(strides, axes)
    }

    /// The half-open range of bytes that elements of type `dtype` cover, counted from the first element.
    ///
    /// The start is negative when a stride is. Packed elements are rounded outwards to whole bytes. Without elements,
    /// nothing is covered.
    #[inline]
    pub fn extents_bytes(&self, dtype: DType) -> Result<Range<i64>, LayoutError> {
        let Some(reach) = reach(&self.shape, self.raw_strides()) else { return Ok(0..0) };
        match &self.strides {
            Strides::Elements(_) => bytes_of_elements(reach, dtype),
            Strides::Bytes(_) => {
                let bits = i64::try_from(dtype.bits()).map_err(|_| LayoutError::TooLarge)?;
                let end = reach.end.checked_mul(8).and_then(|high| high.checked_add(bits + 7));
                Ok(reach.start..end.ok_or(LayoutError::TooLarge)?.div_euclid(8))
            }
        }
    }
}

impl Layout {
    /// The bytes that an offset in the unit of the strides is.
    fn offset_bytes(&self, offset: i64, dtype: DType) -> Result<i64, LayoutError> {
        if let Strides::Bytes(_) = self.strides {
            return Ok(offset);
        }
        let bits = i64::try_from(dtype.bits()).ok().and_then(|bits| offset.checked_mul(bits));
        let bits = bits.ok_or(LayoutError::TooLarge)?;
        if bits % 8 == 0 { Ok(bits / 8) } else { Err(LayoutError::InsideByte { dtype }) }
    }

    /// This layout with other dimensions over the same elements, whose strides are in the same unit.
    fn with_dimensions(&self, shape: Dims, strides: Dims) -> Self {
        let strides = match self.strides {
            // Nothing is ever reached, so the unit does not matter, and elements are the unit for DLPack.
            Strides::Bytes(_) if shape.contains(&0) => Strides::Elements(Dims::from_elem(1, shape.len())),
            Strides::Bytes(_) => Strides::Bytes(strides),
            Strides::Elements(_) => Strides::Elements(strides),
        };
        Self { shape, strides }
    }

    /// This layout with some of its elements in other dimensions, whose strides are in the same unit. Some may be whole
    /// elements by now.
    fn with_dimensions_of(&self, shape: Dims, strides: Dims, dtype: DType) -> Result<Self, LayoutError> {
        match self.strides {
            Strides::Elements(_) => Ok(Self { shape, strides: Strides::Elements(strides) }),
            Strides::Bytes(_) => Ok(Self::from_bytes_unchecked(shape, strides, item_bytes(dtype)?)),
        }
    }
}

/// The bytes from one element to the next.
fn item_bytes(dtype: DType) -> Result<i64, LayoutError> {
    let bytes = dtype.size_bytes().ok_or(LayoutError::PackedElements { dtype })?;
    i64::try_from(bytes).map_err(|_| LayoutError::TooLarge)
}

fn check_dimensions(dimensions: usize) -> Result<(), LayoutError> {
    if dimensions > MAXIMUM_DIMENSIONS { Err(LayoutError::TooManyDimensions { dimensions }) } else { Ok(()) }
}

/// From the lowest to the highest place of an element, in the unit of the strides; `None` without elements. The numbers
/// were checked.
#[inline]
fn reach(shape: &[i64], strides: &[i64]) -> Option<Range<i64>> {
    let (mut low, mut high) = (0_i64, 0_i64);
    for (&size, &stride) in shape.iter().zip(strides) {
        if size == 0 {
            return None;
        }
        // `check` made sure that each sum fits, or that a size that follows is zero.
        let reach = stride.wrapping_mul(size - 1);
        if reach < 0 { low = low.wrapping_add(reach) } else { high = high.wrapping_add(reach) }
    }
    Some(low..high)
}

/// The bytes that elements between these places cover.
#[inline]
fn bytes_of_elements(reach: Range<i64>, dtype: DType) -> Result<Range<i64>, LayoutError> {
    let bits = i64::try_from(dtype.bits()).map_err(|_| LayoutError::TooLarge)?;
    let low = reach.start.checked_mul(bits).ok_or(LayoutError::TooLarge)?.div_euclid(8);
    let end = reach.end.checked_add(1).and_then(|count| count.checked_mul(bits)).and_then(|bits| bits.checked_add(7));
    Ok(low..end.ok_or(LayoutError::TooLarge)?.div_euclid(8))
}

/// Whether elements at these strides, counted in elements, lie one beside the other along `axes`, fastest first.
#[inline]
fn are_dense(strides: &[i64], axes: impl Iterator<Item = (usize, i64)>) -> bool {
    let mut expected = 1_i64;
    let mut dense = true;
    for (axis, size) in axes {
        if size == 0 {
            return true;
        }
        if size != 1 {
            dense &= strides[axis] == expected;
            expected = expected.wrapping_mul(size);
        }
    }
    dense
}

/// The numbers as they are kept. Few of them go through registers, which is how imports avoid a call and a copy.
#[inline(always)]
#[expect(clippy::inline_always, reason = "only where it is inlined do the numbers stay in registers")]
fn dims(numbers: &[i64]) -> Dims {
    let (buffer, length) = match *numbers {
        [] => ([0; 5], 0),
        [a] => ([a, 0, 0, 0, 0], 1),
        [a, b] => ([a, b, 0, 0, 0], 2),
        [a, b, c] => ([a, b, c, 0, 0], 3),
        [a, b, c, d] => ([a, b, c, d, 0], 4),
        _ => return SmallVec::from_slice(numbers),
    };
    SmallVec::from_buf_and_len(buffer, length)
}

/// Makes sure of what [`Layout`] promises of its numbers, and says from where to where elements are, as [`reach`] does.
#[inline]
fn check(shape: &[i64], strides: &[i64]) -> Result<Option<Range<i64>>, LayoutError> {
    check_dimensions(shape.len())?;
    // The sums of the steps forwards and of those backwards, and the number of elements.
    let (mut low, mut high, mut elements) = (0_i64, 0_i64, 1_i64);
    let (mut overflow, mut is_empty) = (false, false);
    for (axis, (&size, &stride)) in shape.iter().zip(strides).enumerate() {
        if size <= 1 {
            if size < 0 {
                return Err(LayoutError::NegativeSize { axis, size });
            }
            is_empty |= size == 0;
            continue;
        }
        let (product, product_overflow) = elements.overflowing_mul(size);
        let (reach, reach_overflow) = stride.overflowing_mul(size - 1);
        let side = if reach < 0 { &mut low } else { &mut high };
        let (sum, sum_overflow) = side.overflowing_add(reach);
        *side = sum;
        elements = product;
        overflow |= product_overflow | reach_overflow | sum_overflow;
    }
    // Without elements nothing is ever reached, so an overflow does not count.
    if is_empty {
        return Ok(None);
    }
    if overflow { Err(LayoutError::TooLarge) } else { Ok(Some(low..high)) }
}

/// The number of elements of a shape that was checked.
#[inline]
fn size(shape: &[i64]) -> usize {
    // The checks made sure that the product fits, or that one of the sizes is zero, and then it is zero.
    let size = shape.iter().fold(1_i64, |product, &size| product.wrapping_mul(size));
    usize::try_from(size).unwrap_or(0)
}
