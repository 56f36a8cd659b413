//! The pieces that a strided copy consists of. Arithmetic only.

use smallvec::SmallVec;

use super::Place;

/// The largest pitch that the driver takes for a copy of two dimensions, in bytes: every device's maximum.
const MAXIMUM_PITCH: i64 = 0x7fff_ffff;

/// A dimension that both sides of a copy have, with strides in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dimension {
    pub(super) size: i64,
    pub(super) destination: i64,
    pub(super) source: i64,
}

impl Dimension {
    /// Whether `inner`, which lies inside of this, could be one dimension together with it.
    fn continues(&self, inner: &Self) -> bool {
        let joins = |outer: i64, stride: i64| stride.checked_mul(inner.size) == Some(outer);
        joins(self.destination, inner.destination) && joins(self.source, inner.source)
    }

    /// Whether rows of `width` bytes lie along this dimension so that one copy of two dimensions takes all of them.
    fn holds_rows(&self, width: i64) -> bool {
        let rows = width..=MAXIMUM_PITCH;
        rows.contains(&self.destination) && rows.contains(&self.source)
    }
}

pub(super) type Dimensions = SmallVec<[Dimension; 5]>;

/// A copy, as blocks of adjacent bytes that repeat along dimensions, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocks {
    /// The address of the first block at the destination.
    pub(super) destination: u64,
    /// The address of the first block at the source.
    pub(super) source: u64,
    /// The bytes of a block.
    pub(super) width: i64,
    /// Where the blocks are.
    pub(super) dimensions: Dimensions,
}

/// The side of a copy whose memory decides on the order in which elements are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    Destination,
    Source,
}

impl Blocks {
    /// Two places of the same shape and with elements of `item` bytes, in the order in which they lie in the memory of
    /// the side that leads. `None` when there is no element.
    pub(super) fn new(destination: &Place<'_>, source: &Place<'_>, item: i64, lead: Lead) -> Option<Self> {
        let sizes = destination.shape.iter().copied();
        if sizes.clone().any(|size| size == 0) {
            return None;
        }
        let strides = destination.strides.iter().zip(source.strides);
        let dimensions = sizes
            .zip(strides)
            .filter(|(size, _)| *size != 1)
            .map(|(size, (&destination, &source))| Dimension { size, destination, source })
            .collect();
        let mut blocks = Self { destination: destination.address, source: source.address, width: item, dimensions };
        blocks.sort(lead);
        blocks.join();
        Some(blocks)
    }

    /// Takes the elements in the order of the addresses of the side that leads.
    fn sort(&mut self, lead: Lead) {
        let stride = |dimension: &Dimension| match lead {
            Lead::Destination => dimension.destination,
            Lead::Source => dimension.source,
        };
        for dimension in &mut self.dimensions {
            if stride(dimension) < 0 {
                // To the last element, and from there forwards. Both are elements, so nothing wraps around.
                let reach = |stride: i64| stride.wrapping_mul(dimension.size - 1);
                self.destination = self.destination.wrapping_add_signed(reach(dimension.destination));
                self.source = self.source.wrapping_add_signed(reach(dimension.source));
                dimension.destination = dimension.destination.wrapping_neg();
                dimension.source = dimension.source.wrapping_neg();
            }
        }
        self.dimensions.sort_by_key(|dimension| std::cmp::Reverse(stride(dimension)));
    }

    /// Makes one dimension of those that follow each other without a gap, and takes into the blocks what is adjacent.
    fn join(&mut self) {
        let mut joined = Dimensions::new();
        for dimension in self.dimensions.drain(..) {
            match joined.last_mut() {
                Some(outer) if outer.continues(&dimension) => {
                    *outer = Dimension { size: outer.size * dimension.size, ..dimension };
                }
                _ => joined.push(dimension),
            }
        }
        if let Some(inner) = joined.last()
            && (inner.destination, inner.source) == (self.width, self.width)
        {
            self.width *= inner.size;
            joined.pop();
        }
        self.dimensions = joined;
    }

    /// Takes the dimension out along which most blocks can be copied at once as the rows of a copy of two dimensions.
    pub(super) fn take_rows(&mut self) -> Option<Dimension> {
        let width = self.width;
        let (position, _) = self
            .dimensions
            .iter()
            .enumerate()
            .filter(|(_, dimension)| dimension.holds_rows(width))
            .max_by_key(|(_, dimension)| dimension.size)?;
        Some(self.dimensions.remove(position))
    }

    /// Only one of the blocks that are the same on both sides.
    pub(super) fn without_repetition(mut self) -> Self {
        self.dimensions.retain(|dimension| (dimension.destination, dimension.source) != (0, 0));
        self
    }

    /// The number of copies that this takes when rows are copied at once.
    pub(super) fn copies(&self) -> i64 {
        let mut blocks = self.clone();
        blocks.take_rows();
        blocks.dimensions.iter().fold(1, |copies, dimension| copies.saturating_mul(dimension.size))
    }

    /// Calls `action` with the addresses, first at the destination and then at the source, of every block.
    pub(super) fn try_for_each<E>(&self, mut action: impl FnMut(u64, u64) -> Result<(), E>) -> Result<(), E> {
        visit(&self.dimensions, self.destination, self.source, &mut action)
    }
}

fn visit<E>(
    dimensions: &[Dimension],
    destination: u64,
    source: u64,
    action: &mut impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<(), E> {
    let Some((outer, inner)) = dimensions.split_first() else { return action(destination, source) };
    let (mut destination, mut source) = (destination, source);
    for _ in 0..outer.size {
        visit(inner, destination, source, action)?;
        // Past the last block this may leave the memory, but then the addresses are not used.
        destination = destination.wrapping_add_signed(outer.destination);
        source = source.wrapping_add_signed(outer.source);
    }
    Ok(())
}
