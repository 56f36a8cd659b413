//! Streams and how they are ordered among each other and with the host.
//!
//! The legacy default stream of a context comes after what is on the context's blocking streams, and they come after it. The
//! default stream of a thread is a blocking stream. Streams that were made non-blocking take no part in this.

use crate::access::Place;
use crate::clock::{Clock, Moment};
use crate::driver::Driver;
use crate::error::{Code, Outcome};

/// `CU_STREAM_NON_BLOCKING`.
pub(crate) const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
/// From the least to the greatest priority.
pub(crate) const PRIORITIES: (i32, i32) = (0, -5);

/// What a stream is to its context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Created,
    Legacy,
    PerThread,
}

/// One stream.
pub(crate) struct Stream {
    pub(crate) context: u64,
    pub(crate) device: usize,
    pub(crate) role: Role,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    pub(crate) id: u64,
    /// The capture that the stream takes part in.
    pub(crate) capture: Option<u64>,
    /// What comes before the next work on the stream.
    pub(crate) clock: Clock,
    /// What the host knew when the clock last learnt from it.
    host_version: u64,
}

impl Stream {
    fn new(context: u64, device: usize, role: Role, flags: u32, priority: i32, id: u64) -> Self {
        let clock = Clock::default();
        Self { context, device, role, flags, priority, id, capture: None, clock, host_version: 0 }
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }

    /// The handle as programs write it: default streams by their numbers.
    pub(crate) fn shown(&self, handle: u64) -> u64 {
        match self.role {
            Role::Created => handle,
            Role::Legacy => LEGACY,
            Role::PerThread => PER_THREAD,
        }
    }
}

impl Driver {
    /// `cuStreamCreateWithPriority`.
    pub(crate) fn create_stream(&mut self, flags: u32, priority: i32) -> Outcome<u64> {
        if flags & !NON_BLOCKING != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = self.current()?;
        let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
        self.add_stream(context, Role::Created, flags, priority)
    }

    fn add_stream(&mut self, context: u64, role: Role, flags: u32, priority: i32) -> Outcome<u64> {
        let (device, id) = (self.context_device(context)?, self.next_id());
        let mut stream = Stream::new(context, device, role, flags, priority, id);
        let legacy = self.contexts.get(context).and_then(|context| self.streams.get(context.legacy?));
        if let Some(legacy) = legacy.filter(|_| stream.is_blocking()) {
            stream.clock.join(&legacy.clock);
        }
        Ok(self.streams.insert(stream))
    }

    /// The stream that a caller means by `raw`, default streams resolved.
    pub(crate) fn stream_handle(&mut self, raw: u64) -> Outcome<u64> {
        match raw {
            0 if self.calling.per_thread_default => self.per_thread_stream(),
            0 | LEGACY => {
                let context = self.current()?;
                self.legacy_stream(context)
            }
            PER_THREAD => self.per_thread_stream(),
            _ => {
                let Some(stream) = self.streams.get(raw) else {
                    let was = self.streams.was(raw);
                    return self.stale("stream", raw, was);
                };
                let dead = self.contexts.get(stream.context).and_then(|context| context.dead);
                dead.map_or(Ok(raw), Err)
            }
        }
    }

    pub(crate) fn legacy_stream(&mut self, context: u64) -> Outcome<u64> {
        if let Some(handle) = self.contexts.get(context).and_then(|known| known.legacy) {
            return Ok(handle);
        }
        let handle = self.add_stream(context, Role::Legacy, 0, 0)?;
        self.contexts.get_mut(context).ok_or(Code::INVALID_CONTEXT)?.legacy = Some(handle);
        Ok(handle)
    }

    fn per_thread_stream(&mut self) -> Outcome<u64> {
        let (context, thread) = (self.current()?, self.calling.thread);
        if let Some(handle) = self.contexts.get(context).and_then(|known| known.per_thread.get(&thread)) {
            return Ok(*handle);
        }
        let handle = self.add_stream(context, Role::PerThread, 0, 0)?;
        self.contexts.get_mut(context).ok_or(Code::INVALID_CONTEXT)?.per_thread.insert(thread, handle);
        Ok(handle)
    }

    pub(crate) fn stream(&self, handle: u64) -> Outcome<&Stream> {
        self.streams.get(handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn stream_mut(&mut self, handle: u64) -> Outcome<&mut Stream> {
        self.streams.get_mut(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// `cuStreamDestroy`. Work that is on it is still finished, so nothing becomes known to be over.
    pub(crate) fn destroy_stream(&mut self, raw: u64) -> Outcome {
        let handle = self.stream_handle(raw)?;
        let stream = self.stream(handle)?;
        if stream.role != Role::Created {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = stream.capture {
            self.end_capture_of_destroyed(capture, handle);
        }
        let stream = self.streams.remove(handle).ok_or(Code::INVALID_HANDLE)?;
        // What was on the stream still has to be waited for.
        if stream.is_blocking() {
            let legacy = self.legacy_stream(stream.context)?;
            self.stream_mut(legacy)?.clock.join(&stream.clock);
        }
        if let Some(context) = self.contexts.get_mut(stream.context) {
            context.orphaned.join(&stream.clock);
        }
        Ok(())
    }

    /// `cuStreamSynchronize` and, since all work is done at once, `cuStreamQuery`.
    pub(crate) fn synchronise_stream(&mut self, raw: u64) -> Outcome {
        let handle = self.stream_handle(raw)?;
        let stream = self.stream(handle)?;
        let (context, role) = (stream.context, stream.role);
        if let Some(capture) = stream.capture {
            self.invalidate_captures(|known| known.id == capture);
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if role == Role::Legacy {
            self.refuse_implicit_capture(context)?;
        }
        self.order_legacy(handle, role, context);
        let clock = self.stream(handle)?.clock.clone();
        self.host_learns(&clock);
        Ok(())
    }

    /// The host knows what `clock` knows to be over.
    pub(crate) fn host_learns(&mut self, clock: &Clock) {
        self.host.join(clock);
        self.host_version += 1;
        self.trim_pools();
    }

    /// Takes the next step of work on a stream, after what has to come before it.
    pub(crate) fn begin_work(&mut self, handle: u64) -> Outcome<Place> {
        let stream = self.stream(handle)?;
        let (context, role) = (stream.context, stream.role);
        self.order_legacy(handle, role, context);
        let (host_version, function, call) = (self.host_version, self.calling.function, self.calling.call);
        let stream = self.streams.get_mut(handle).ok_or(Code::INVALID_HANDLE)?;
        if stream.host_version != host_version {
            stream.clock.join(&self.host);
            stream.host_version = host_version;
        }
        let moment: Moment = stream.clock.advance(handle);
        Ok(Place { function, call, stream: stream.shown(handle), moment })
    }

    /// The legacy stream comes after all blocking streams.
    fn order_legacy(&mut self, handle: u64, role: Role, context: u64) {
        if role != Role::Legacy {
            return;
        }
        let mut before = Clock::default();
        for (other, stream) in self.streams.iter() {
            if other != handle && stream.context == context && stream.is_blocking() {
                before.join(&stream.clock);
            }
        }
        if let Some(stream) = self.streams.get_mut(handle) {
            stream.clock.join(&before);
        }
    }

    /// And they come after it.
    pub(crate) fn end_work(&mut self, handle: u64) {
        let Some(stream) = self.streams.get(handle).filter(|stream| stream.role == Role::Legacy) else { return };
        let (context, clock) = (stream.context, stream.clock.clone());
        for stream in self.streams.values_mut() {
            if stream.context == context && stream.is_blocking() && stream.role != Role::Legacy {
                stream.clock.join(&clock);
            }
        }
    }
}
