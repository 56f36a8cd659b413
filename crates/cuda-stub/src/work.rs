//! Work on streams. It is done at once, in the order of the calls; whether a device would have been free to do it in another
//! order is what the clocks are for.

use std::sync::Arc;

use crate::access::{Mode, Place, stream_name};
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::journal::Copied;
use crate::launch::Launch;
use crate::mapping;
use crate::memory::Found;
use crate::region::Region;

/// What one side of a copy has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// Memory that the driver knows of.
    Device,
    /// Memory that the host can touch.
    Host,
    Either,
}

/// Rows that are copied to as many rows of the same width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) destination: Region,
    pub(crate) destination_side: Side,
    pub(crate) source: Region,
    pub(crate) source_side: Side,
}

/// A function of the host with its argument, of either of the two kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostCall {
    /// `CUhostFn`.
    Function { function: unsafe extern "C" fn(usize), argument: usize },
    /// `CUstreamCallback`, which gets the stream and its state too.
    Callback { function: unsafe extern "C" fn(u64, u32, usize), stream: u64, argument: usize },
}

/// One piece of work.
#[derive(Clone)]
pub(crate) enum Work {
    Copy(Vec<Copy>),
    Fill {
        region: Region,
        pattern: [u8; 4],
        pattern_length: usize,
    },
    Launch(Arc<Launch>),
    /// Memory comes into being, from `address` on.
    Allocate(u64),
    Free(u64),
    Record(u64),
    HostCall(HostCall),
    /// Only its place on the stream matters.
    Mark,
}

impl Driver {
    /// Puts work on a stream: does it, or adds it to the graph that the stream is captured into.
    pub(crate) fn submit(&mut self, stream: u64, work: Work) -> Outcome {
        let known = self.stream(stream)?;
        if let Some(capture) = known.capture {
            return self.capture_work(capture, stream, work);
        }
        let (context, legacy) = (known.context, known.role == crate::stream::Role::Legacy);
        if legacy {
            self.refuse_implicit_capture(context)?;
        }
        self.perform(stream, work)
    }

    /// Does work whose turn on a stream has come.
    pub(crate) fn perform(&mut self, stream: u64, work: Work) -> Outcome {
        let place = self.begin_work(stream)?;
        let done = match work {
            Work::Copy(copies) => copies.iter().try_for_each(|copy| self.copy(stream, copy, &place)),
            Work::Fill { region, pattern, pattern_length } => {
                self.fill(stream, region, &pattern[..pattern_length], &place)
            }
            Work::Launch(launch) => {
                self.launch_at(stream, &launch, &place);
                Ok(())
            }
            Work::Allocate(address) => {
                self.touch_whole(stream, address, &place);
                Ok(())
            }
            Work::Free(address) => {
                self.free_at(stream, address, &place);
                Ok(())
            }
            Work::Record(event) => {
                let clock = self.stream(stream)?.clock.clone();
                self.mark_event(event, clock)
            }
            Work::HostCall(call) => {
                self.host_calls.push(call);
                Ok(())
            }
            Work::Mark => Ok(()),
        };
        self.end_work(stream);
        done
    }

    fn copy(&mut self, stream: u64, copy: &Copy, place: &Place) -> Outcome {
        if copy.destination.is_empty() || copy.source.is_empty() {
            return Ok(());
        }
        let source = self.resolve(stream, copy.source, copy.source_side, Mode::Read, place)?;
        let destination = self.resolve(stream, copy.destination, copy.destination_side, Mode::Write, place)?;
        self.journal.copied(Copied {
            function: place.function,
            destination: copy.destination.start,
            source: Some(copy.source.start),
            size_bytes: copy.source.width * copy.source.height,
            stream: place.stream,
        });
        for row in 0..copy.source.height {
            let to = destination.wrapping_add(crate::index(row * copy.destination.pitch));
            let from = source.wrapping_add(crate::index(row * copy.source.pitch));
            // SAFETY: `resolve` found each region inside one live allocation, or outside all that the driver knows; of the
            // latter the caller of the C function says that it is host memory of that extent.
            unsafe { mapping::copy(to, from, copy.source.width) };
        }
        Ok(())
    }

    fn fill(&mut self, stream: u64, region: Region, pattern: &[u8], place: &Place) -> Outcome {
        if region.is_empty() {
            return Ok(());
        }
        let destination = self.resolve(stream, region, Side::Device, Mode::Write, place)?;
        self.journal.copied(Copied {
            function: place.function,
            destination: region.start,
            source: None,
            size_bytes: region.width * region.height,
            stream: place.stream,
        });
        for row in 0..region.height {
            let to = destination.wrapping_add(crate::index(row * region.pitch));
            // SAFETY: `resolve` found the region inside one live allocation (a fill is only of memory that is known).
            unsafe { mapping::fill(to, pattern, region.width) };
        }
        Ok(())
    }

    /// Where the bytes of a region are in this process, after the checks of bounds and of order.
    fn resolve(&mut self, stream: u64, region: Region, side: Side, mode: Mode, place: &Place) -> Outcome<*mut u8> {
        let fault = match self.memory.find(region.start) {
            Found::Live(allocation) if side == Side::Host && allocation.kind == crate::memory::MemoryKind::Device => {
                format!("{:#x} is given as host memory but is device memory from {}", region.start, allocation.origin)
            }
            Found::Live(allocation) if region.end() > allocation.end() => format!(
                "{} bytes at {:#x} pass the end of {} bytes from {}, by {}",
                region.span(),
                region.start,
                allocation.size,
                allocation.origin,
                region.end() - allocation.end()
            ),
            Found::Live(allocation) => {
                let pointer = allocation.pointer(region.start);
                self.check_order(stream, region, mode, place);
                return Ok(pointer);
            }
            Found::Stale(text) => format!("{:#x} is not live: {text}", region.start),
            Found::Unknown if side == Side::Device || region.start == 0 => return Err(Code::INVALID_VALUE),
            Found::Unknown => return Ok(std::ptr::with_exposed_provenance_mut(crate::index(region.start))),
        };
        self.violation(fault);
        Err(Code::INVALID_VALUE)
    }

    /// Enters an access into the history of its allocation, and reports what it may race with.
    pub(crate) fn check_order(&mut self, stream: u64, region: Region, mode: Mode, place: &Place) {
        let action = if mode == Mode::Write { "writes" } else { "reads" };
        self.check_order_of(action, stream, region, mode, place);
    }

    fn check_order_of(&mut self, action: &str, stream: u64, region: Region, mode: Mode, place: &Place) {
        let Some(known) = self.streams.get(stream) else { return };
        let Some(allocation) = self.memory.get_mut(region.start) else { return };
        let conflict = allocation.history.enter(region, mode, place.clone(), &known.clock, &self.host);
        let Some(earlier) = conflict else { return };
        let text = format!(
            "{action} {:#x} on stream {} with nothing that orders it after {}, which touched it (memory from {})",
            region.start,
            stream_name(place.stream),
            earlier.text(),
            allocation.origin
        );
        self.violation(text);
    }

    /// The whole of an allocation is written: it came into being, or ends.
    pub(crate) fn touch_whole(&mut self, stream: u64, address: u64, place: &Place) {
        if let Some(allocation) = self.memory.get(address) {
            let region = Region::run(allocation.address, allocation.size);
            self.check_order_of("ends", stream, region, Mode::Write, place);
        }
    }
}
