//! Events: marks on streams that other streams and the host can wait for.

use std::time::Instant;

use crate::clock::Clock;
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::work::Work;

/// `CU_EVENT_DISABLE_TIMING` and the sum of all flags.
const DISABLE_TIMING: u32 = 2;
const ALL_FLAGS: u32 = 7;

/// One event.
pub(crate) struct Event {
    pub(crate) context: u64,
    pub(crate) flags: u32,
    recorded: Option<Recorded>,
    /// The capture that the event was last recorded in, and the nodes that it stands for.
    pub(crate) captured: Option<(u64, Vec<usize>)>,
}

struct Recorded {
    clock: Clock,
    at: Instant,
}

impl Driver {
    /// `cuEventCreate`.
    pub(crate) fn create_event(&mut self, flags: u32) -> Outcome<u64> {
        if flags & !ALL_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = self.current()?;
        Ok(self.events.insert(Event { context, flags, recorded: None, captured: None }))
    }

    /// `cuEventDestroy`.
    pub(crate) fn destroy_event(&mut self, handle: u64) -> Outcome {
        self.event(handle)?;
        self.events.remove(handle);
        Ok(())
    }

    fn event(&mut self, handle: u64) -> Outcome<&mut Event> {
        if self.events.get(handle).is_none() {
            let was = self.events.was(handle);
            return self.stale("event", handle, was);
        }
        self.events.get_mut(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// `cuEventRecord`.
    pub(crate) fn record_event(&mut self, event: u64, raw_stream: u64) -> Outcome {
        let context = self.event(event)?.context;
        let stream = self.stream_handle(raw_stream)?;
        if self.stream(stream)?.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = self.stream(stream)?.capture {
            let nodes = self.capture_frontier(capture, stream)?;
            self.event(event)?.captured = Some((capture, nodes));
            return Ok(());
        }
        self.submit(stream, Work::Record(event))
    }

    /// The mark itself, when its turn on the stream has come.
    pub(crate) fn mark_event(&mut self, event: u64, clock: Clock) -> Outcome {
        let event = self.event(event)?;
        event.recorded = Some(Recorded { clock, at: Instant::now() });
        event.captured = None;
        Ok(())
    }

    /// `cuStreamWaitEvent`. An event that was never recorded holds nobody up.
    pub(crate) fn wait_event(&mut self, raw_stream: u64, event: u64) -> Outcome {
        let stream = self.stream_handle(raw_stream)?;
        let waited = self.event(event)?;
        let (captured, clock) =
            (waited.captured.clone(), waited.recorded.as_ref().map(|recorded| recorded.clock.clone()));
        if let Some((capture, nodes)) = captured {
            return self.join_capture(stream, capture, &nodes);
        }
        if let Some(clock) = clock {
            if let Some(capture) = self.stream(stream)?.capture {
                self.invalidate_captures(|known| known.id == capture);
                return Err(Code::STREAM_CAPTURE_ISOLATION);
            }
            self.begin_work(stream)?;
            self.stream_mut(stream)?.clock.join(&clock);
            self.end_work(stream);
        }
        Ok(())
    }

    /// `cuEventSynchronize` and, since all work is done at once, `cuEventQuery`.
    pub(crate) fn synchronise_event(&mut self, event: u64) -> Outcome {
        let waited = self.event(event)?;
        if let Some((capture, _)) = waited.captured {
            self.invalidate_captures(|known| known.id == capture);
            return Err(Code::CAPTURED_EVENT);
        }
        let clock = waited.recorded.as_ref().map(|recorded| recorded.clock.clone());
        if let Some(clock) = clock {
            self.host_learns(&clock);
        }
        Ok(())
    }

    /// `cuEventElapsedTime`, in milliseconds of this machine's clock.
    pub(crate) fn elapsed(&mut self, start: u64, end: u64) -> Outcome<f32> {
        let mut at = [None; 2];
        for (slot, handle) in at.iter_mut().zip([start, end]) {
            let event = self.event(handle)?;
            if event.flags & DISABLE_TIMING != 0 {
                return Err(Code::INVALID_HANDLE);
            }
            *slot = event.recorded.as_ref().map(|recorded| recorded.at);
        }
        let [Some(start), Some(end)] = at else { return Err(Code::INVALID_HANDLE) };
        let (sign, duration) = if end >= start { (1.0, end - start) } else { (-1.0, start - end) };
        Ok(sign * duration.as_secs_f32() * 1e3)
    }
}
