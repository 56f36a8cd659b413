//! Copies and fills as programs ask for them, turned into rows.

use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::memory::{Found, MemoryKind};
use crate::region::Region;
use crate::work::{Copy, Side, Work};

/// When a copy or fill is over, as far as its caller can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timing {
    /// When the call returns. It is work of the legacy default stream, or of the thread's own.
    Synchronous,
    /// When the stream gets to it.
    On(u64),
}

/// What the caller of synchronous work waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Waits {
    /// Between devices nobody waits.
    ForNothing,
    /// From pageable memory: for what is on the stream; the bytes themselves may still be on their way from where the driver
    /// put them.
    BeforeIt,
    UntilDone,
}

/// One side of a copy of a box of bytes, in the terms of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxSide {
    pub(crate) side: Side,
    pub(crate) address: u64,
    /// Bytes, rows and slices from the address to the first byte.
    pub(crate) offset: [u64; 3],
    pub(crate) pitch: u64,
    /// Rows from one slice to the next.
    pub(crate) slice_rows: u64,
}

impl BoxSide {
    /// The region of slice `slice` of a box of `width` bytes and `height` rows.
    fn slice(&self, width: u64, height: u64, slice: u64) -> Option<Region> {
        let pitch = if self.pitch == 0 { width } else { self.pitch };
        let slice_rows = if self.slice_rows == 0 { height } else { self.slice_rows };
        if width > pitch && height > 1 {
            return None;
        }
        let slices = self.offset[2].checked_add(slice)?;
        let rows = slices.checked_mul(slice_rows)?.checked_add(self.offset[1])?;
        let start = self.address.checked_add(rows.checked_mul(pitch)?)?.checked_add(self.offset[0])?;
        Region::rows(start, width, pitch, height)
    }
}

impl Driver {
    /// A copy of a run of bytes.
    pub(crate) fn copy_run(&mut self, to: (Side, u64), from: (Side, u64), size: u64, timing: Timing) -> Outcome {
        let wraps = to.1.checked_add(size).is_none() || from.1.checked_add(size).is_none();
        if wraps {
            return Err(Code::INVALID_VALUE);
        }
        let copy = Copy {
            destination: Region::run(to.1, size),
            destination_side: to.0,
            source: Region::run(from.1, size),
            source_side: from.0,
        };
        self.copy_all(vec![copy], timing)
    }

    /// A copy of `extent`: bytes in a row, rows and slices.
    pub(crate) fn copy_box(&mut self, to: BoxSide, from: BoxSide, extent: [u64; 3], timing: Timing) -> Outcome {
        let [width, height, depth] = extent;
        let one = |slice| {
            Some(Copy {
                destination: to.slice(width, height, slice)?,
                destination_side: to.side,
                source: from.slice(width, height, slice)?,
                source_side: from.side,
            })
        };
        let copies = (0..depth).map(one).collect::<Option<Vec<_>>>().ok_or(Code::INVALID_VALUE)?;
        self.copy_all(copies, timing)
    }

    fn copy_all(&mut self, copies: Vec<Copy>, timing: Timing) -> Outcome {
        let returns_when_done = copies.iter().any(|copy| self.is_pageable(copy.destination.start));
        match timing {
            Timing::Synchronous => {
                let ends = copies.iter().map(|copy| (copy.destination.start, copy.source.start));
                let waits = ends.map(|(to, from)| self.waits(to, from)).max().unwrap_or(Waits::ForNothing);
                self.synchronously(Work::Copy(copies), waits)
            }
            Timing::On(raw) => {
                let stream = self.stream_handle(raw)?;
                let captured = self.stream(stream)?.capture.is_some();
                self.submit(stream, Work::Copy(copies))?;
                // A copy into pageable memory returns once it is done, says the manual.
                if returns_when_done && !captured {
                    let clock = self.stream(stream)?.clock.clone();
                    self.host_learns(&clock);
                }
                Ok(())
            }
        }
    }

    fn is_pageable(&self, address: u64) -> bool {
        matches!(self.memory.find(address), Found::Unknown)
    }

    fn is_device(&self, address: u64) -> bool {
        self.memory.get(address).is_some_and(|known| matches!(known.kind, MemoryKind::Device | MemoryKind::Variable))
    }

    /// What a synchronous copy waits for, as the manual's chapter on synchronisation has it.
    fn waits(&self, to: u64, from: u64) -> Waits {
        match (self.is_device(to), self.is_device(from)) {
            (true, true) => Waits::ForNothing,
            (true, false) if self.is_pageable(from) => Waits::BeforeIt,
            _ => Waits::UntilDone,
        }
    }

    /// Work on the default stream.
    fn synchronously(&mut self, work: Work, waits: Waits) -> Outcome {
        self.refuse_during_capture()?;
        let stream = self.stream_handle(0)?;
        if waits == Waits::BeforeIt {
            self.synchronise_stream(0)?;
        }
        self.submit(stream, work)?;
        if waits == Waits::UntilDone {
            let clock = self.stream(stream)?.clock.clone();
            self.host_learns(&clock);
        }
        Ok(())
    }

    /// A fill of `height` rows with `width` elements of `element` bytes each.
    pub(crate) fn fill_rows(&mut self, fill: Fill, timing: Timing) -> Outcome {
        let Fill { address, pitch, value, element, width, height } = fill;
        if !address.is_multiple_of(element) || height > 1 && !pitch.is_multiple_of(element) {
            return Err(Code::INVALID_VALUE);
        }
        let width = width.checked_mul(element).ok_or(Code::INVALID_VALUE)?;
        if height > 1 && pitch < width {
            return Err(Code::INVALID_VALUE);
        }
        let region = Region::rows(address, width, pitch, height).ok_or(Code::INVALID_VALUE)?;
        let work = Work::Fill { region, pattern: value.to_le_bytes(), pattern_length: crate::index(element) };
        match timing {
            // A fill of device memory does not hold up its caller, even without `Async` in its name.
            Timing::Synchronous if self.is_device(address) => self.synchronously(work, Waits::ForNothing),
            Timing::Synchronous => self.synchronously(work, Waits::UntilDone),
            Timing::On(raw) => {
                let stream = self.stream_handle(raw)?;
                self.submit(stream, work)
            }
        }
    }
}

/// What `cuMemsetD2D*` takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
    pub(crate) value: u32,
    /// Size of an element: 1, 2 or 4 bytes.
    pub(crate) element: u64,
    /// Elements in a row.
    pub(crate) width: u64,
    pub(crate) height: u64,
}
