//! The bytes that one operation touches: rows of one width at one distance. A run of bytes is a single row.

/// Rows of bytes in one address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    /// Address of the first byte.
    pub(crate) start: u64,
    /// Bytes in a row.
    pub(crate) width: u64,
    /// Bytes from the start of a row to the start of the next.
    pub(crate) pitch: u64,
    /// Number of rows.
    pub(crate) height: u64,
}

impl Region {
    pub(crate) fn run(start: u64, size_bytes: u64) -> Self {
        Self { start, width: size_bytes, pitch: size_bytes, height: u64::from(size_bytes > 0) }
    }

    /// Rows, none of which wraps round the address space.
    pub(crate) fn rows(start: u64, width: u64, pitch: u64, height: u64) -> Option<Self> {
        if width == 0 || height == 0 {
            return Some(Self::run(start, 0));
        }
        let region = Self { start, width, pitch, height };
        let span = pitch.checked_mul(height - 1)?.checked_add(width)?;
        start.checked_add(span)?;
        Some(region)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// From the first byte to the last, gaps included.
    pub(crate) fn span(&self) -> u64 {
        if self.is_empty() { 0 } else { self.pitch * (self.height - 1) + self.width }
    }

    /// One past the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.span()
    }

    /// Whether some byte is in both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if self.is_empty() || other.is_empty() || self.start >= other.end() || other.start >= self.end() {
            return false;
        }
        let (few, many) = if self.height <= other.height { (self, other) } else { (other, self) };
        (0..few.height).any(|row| many.meets_run(few.start + row * few.pitch, few.width))
    }

    /// Whether some row has a byte of the run.
    fn meets_run(&self, start: u64, length: u64) -> bool {
        if start + length <= self.start {
            return false;
        }
        if self.height == 1 || self.pitch == 0 {
            return start < self.start + self.width;
        }
        // The first row that ends after the run begins is the only one that can be the first to meet it.
        let row = (start.saturating_sub(self.start) / self.pitch).min(self.height - 1);
        (row..(row + 2).min(self.height)).any(|row| {
            let at = self.start + row * self.pitch;
            at < start + length && start < at + self.width
        })
    }

    /// Whether every byte of `other` lies in this single row.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        self.height == 1 && self.start <= other.start && other.end() <= self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_meet_exactly_where_a_byte_is_shared() {
        let columns = |first: u64, width: u64| Region::rows(1000 + first, width, 10, 5).unwrap();
        let cases = [
            (Region::run(0, 10), Region::run(10, 10), false),
            (Region::run(0, 11), Region::run(10, 10), true),
            (Region::run(5, 0), Region::run(0, 10), false),
            (columns(0, 4), columns(4, 4), false),
            (columns(0, 5), columns(4, 4), true),
            (columns(2, 4), Region::run(1006, 6), false),
            (columns(2, 4), Region::run(1006, 7), true),
            (columns(2, 4), Region::run(1046, 4), false),
            (columns(2, 4), Region::run(1045, 1), true),
        ];
        for (one, other, expected) in cases {
            assert_eq!(one.meets(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.meets(&one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_region_that_wraps_is_none() {
        assert_eq!(Region::rows(16, 8, u64::MAX / 2, 4), None);
        assert_eq!(Region::rows(u64::MAX, 8, 8, 1), None);
    }
}
