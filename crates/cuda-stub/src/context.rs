//! Contexts, primary and other, and the stack of them that each thread has.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Clock;
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::handle::NumberMap;

/// One context. A primary context keeps its handle when it is released and made anew, as a driver does, but not its id.
pub(crate) struct Context {
    pub(crate) device: usize,
    pub(crate) is_primary: bool,
    /// A primary context that nobody retains is not active.
    pub(crate) active: bool,
    pub(crate) id: u64,
    pub(crate) flags: u32,
    /// The error that every call gives since a sticky one.
    pub(crate) dead: Option<Code>,
    /// The default streams, made when they are first used: that of the context and those of threads.
    pub(crate) legacy: Option<u64>,
    pub(crate) per_thread: NumberMap<u64>,
    /// What was on streams that are destroyed.
    pub(crate) orphaned: Clock,
    pub(crate) limits: BTreeMap<u32, u64>,
    pub(crate) cache_config: u32,
    /// Contexts whose memory this one may reach.
    pub(crate) peers: BTreeSet<u64>,
}

impl Context {
    pub(crate) fn primary(device: usize) -> Self {
        Self {
            device,
            is_primary: true,
            active: false,
            id: 0,
            flags: 0,
            dead: None,
            legacy: None,
            per_thread: NumberMap::default(),
            orphaned: Clock::default(),
            limits: BTreeMap::new(),
            cache_config: 0,
            peers: BTreeSet::new(),
        }
    }
}

/// `CUlimit` and what it is at first.
const LIMITS: &[(u32, u64)] =
    &[(0, 1024), (1, 1 << 20), (2, 8 << 20), (3, 2), (4, 2048), (5, 64), (6, 0), (7, 0), (8, 0)];

impl Driver {
    /// The context on top of the thread's stack, whatever its state.
    pub(crate) fn current_or_none(&self) -> Option<u64> {
        self.threads.get(&self.calling.thread)?.stack.last().copied()
    }

    /// The current context, ready for use.
    pub(crate) fn current(&self) -> Outcome<u64> {
        let context = self.current_or_none().ok_or(Code::INVALID_CONTEXT)?;
        self.usable(context)?;
        Ok(context)
    }

    fn usable(&self, context: u64) -> Outcome<&Context> {
        match self.contexts.get(context) {
            Some(known) if known.active => known.dead.map_or(Ok(known), Err),
            _ => Err(Code::CONTEXT_IS_DESTROYED),
        }
    }

    pub(crate) fn current_device(&self) -> Outcome<usize> {
        let context = self.current()?;
        self.context_device(context)
    }

    pub(crate) fn context_device(&self, context: u64) -> Outcome<usize> {
        self.contexts.get(context).map(|context| context.device).ok_or(Code::INVALID_CONTEXT)
    }

    /// The context `handle`, or for 0 the current one.
    pub(crate) fn context_or_current(&self, handle: u64) -> Outcome<u64> {
        if handle == 0 {
            return self.current();
        }
        self.usable(handle).map_err(|code| if self.contexts.was(handle) { code } else { Code::INVALID_CONTEXT })?;
        Ok(handle)
    }

    /// `cuDevicePrimaryCtxRetain`.
    pub(crate) fn retain_primary(&mut self, ordinal: i32) -> Outcome<u64> {
        let id = self.next_id();
        let device = self.device_mut(ordinal)?;
        device.retained += 1;
        let handle = device.primary;
        let context = self.contexts.get_mut(handle).ok_or(Code::INVALID_CONTEXT)?;
        if !context.active {
            (context.active, context.id) = (true, id);
        }
        Ok(handle)
    }

    /// `cuDevicePrimaryCtxRelease`. The last release destroys what the context holds.
    pub(crate) fn release_primary(&mut self, ordinal: i32) -> Outcome {
        let device = self.device_mut(ordinal)?;
        let primary = device.primary;
        if device.retained == 0 {
            self.violation("the primary context is released more often than it was retained");
            return Err(Code::INVALID_CONTEXT);
        }
        device.retained -= 1;
        if device.retained == 0 {
            self.empty_context(primary);
        }
        Ok(())
    }

    /// `cuDevicePrimaryCtxReset`: what the context holds is gone, its handle and who retains it stay.
    pub(crate) fn reset_primary(&mut self, ordinal: i32) -> Outcome {
        let device = self.device(ordinal)?;
        let (primary, retained) = (device.primary, device.retained);
        self.empty_context(primary);
        let id = self.next_id();
        if retained > 0
            && let Some(context) = self.contexts.get_mut(primary)
        {
            (context.active, context.id) = (true, id);
        }
        Ok(())
    }

    /// `cuDevicePrimaryCtxGetState`: flags, and whether it is active.
    pub(crate) fn primary_state(&self, ordinal: i32) -> Outcome<(u32, bool)> {
        let primary = self.device(ordinal)?.primary;
        self.contexts.get(primary).map(|context| (context.flags, context.active)).ok_or(Code::INVALID_CONTEXT)
    }

    pub(crate) fn set_primary_flags(&mut self, ordinal: i32, flags: u32) -> Outcome {
        let primary = self.device(ordinal)?.primary;
        self.contexts.get_mut(primary).ok_or(Code::INVALID_CONTEXT)?.flags = flags;
        Ok(())
    }

    /// `cuCtxCreate`: a context that is no primary one, made current.
    pub(crate) fn create_context(&mut self, flags: u32, ordinal: i32) -> Outcome<u64> {
        let device = self.device(ordinal)?.ordinal;
        let id = self.next_id();
        let context = Context { is_primary: false, active: true, id, flags, ..Context::primary(device) };
        let handle = self.contexts.insert(context);
        self.thread().stack.push(handle);
        Ok(handle)
    }

    /// `cuCtxDestroy`.
    pub(crate) fn destroy_context(&mut self, handle: u64) -> Outcome {
        match self.contexts.get(handle) {
            Some(context) if !context.is_primary => {}
            None if self.contexts.was(handle) => {
                self.violation(format_args!("the context {handle:#x} was destroyed before"));
                return Err(Code::CONTEXT_IS_DESTROYED);
            }
            _ => return Err(Code::INVALID_CONTEXT),
        }
        self.empty_context(handle);
        self.contexts.remove(handle);
        if self.current_or_none() == Some(handle) {
            self.thread().stack.pop();
        }
        Ok(())
    }

    /// Destroys what lives in a context and makes it inactive.
    fn empty_context(&mut self, handle: u64) {
        let by = self.place_text();
        let addresses: Vec<u64> = self
            .memory
            .iter()
            .filter(|allocation| allocation.owner.context == handle)
            .map(|allocation| allocation.address)
            .collect();
        for address in addresses {
            self.forget_allocation(address, &by);
        }
        self.streams.take(|stream| stream.context == handle);
        self.events.take(|event| event.context == handle);
        self.images.unload_context(handle);
        let captures: Vec<u64> =
            self.captures.iter().filter(|(_, capture)| capture.context == handle).map(|(id, _)| *id).collect();
        for capture in captures {
            self.captures.remove(&capture);
        }
        if let Some(context) = self.contexts.get_mut(handle) {
            let is_primary = context.is_primary;
            *context = Context { is_primary, flags: context.flags, ..Context::primary(context.device) };
        }
    }

    /// `cuCtxPushCurrent`.
    pub(crate) fn push_context(&mut self, handle: u64) -> Outcome {
        if self.contexts.get(handle).is_none() {
            return self.unknown_context(handle);
        }
        self.thread().stack.push(handle);
        Ok(())
    }

    fn unknown_context(&mut self, handle: u64) -> Outcome {
        if self.contexts.was(handle) {
            self.violation(format_args!("the context {handle:#x} was destroyed before"));
            return Err(Code::CONTEXT_IS_DESTROYED);
        }
        Err(Code::INVALID_CONTEXT)
    }

    /// `cuCtxPopCurrent`.
    pub(crate) fn pop_context(&mut self) -> Outcome<u64> {
        self.thread().stack.pop().ok_or(Code::INVALID_CONTEXT)
    }

    /// `cuCtxSetCurrent`: replaces the top of the stack; 0 pops it.
    pub(crate) fn set_current(&mut self, handle: u64) -> Outcome {
        if handle == 0 {
            self.thread().stack.pop();
            return Ok(());
        }
        if self.contexts.get(handle).is_none() {
            return self.unknown_context(handle);
        }
        let stack = &mut self.thread().stack;
        stack.pop();
        stack.push(handle);
        Ok(())
    }

    /// `cuCtxSynchronize`: afterwards the host knows all work of the context to be over.
    pub(crate) fn synchronise_context(&mut self, context: u64) -> Outcome {
        let capturing = self.streams.iter().any(|(_, stream)| stream.context == context && stream.capture.is_some());
        if capturing {
            self.invalidate_captures(|capture| capture.context == context);
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.host_learns_context(context);
        Ok(())
    }

    pub(crate) fn host_learns_context(&mut self, context: u64) {
        let mut over = self.contexts.get(context).map(|context| context.orphaned.clone()).unwrap_or_default();
        for (_, stream) in self.streams.iter().filter(|(_, stream)| stream.context == context) {
            over.join(&stream.clock);
        }
        self.host_learns(&over);
    }

    pub(crate) fn context_limit(&self, limit: u32) -> Outcome<u64> {
        let first = LIMITS.iter().find(|(number, _)| *number == limit).ok_or(Code::INVALID_VALUE)?.1;
        let context = self.usable(self.current()?)?;
        Ok(context.limits.get(&limit).copied().unwrap_or(first))
    }

    pub(crate) fn set_context_limit(&mut self, limit: u32, value: u64) -> Outcome {
        self.context_limit(limit)?;
        let context = self.current()?;
        let context = self.contexts.get_mut(context).ok_or(Code::INVALID_CONTEXT)?;
        context.limits.insert(limit, value);
        Ok(())
    }

    /// `cuCtxEnablePeerAccess`.
    pub(crate) fn enable_peer(&mut self, peer: u64) -> Outcome {
        let current = self.current()?;
        self.usable(peer).map_err(|_| Code::INVALID_CONTEXT)?;
        let context = self.contexts.get_mut(current).ok_or(Code::INVALID_CONTEXT)?;
        if context.peers.insert(peer) { Ok(()) } else { Err(Code::PEER_ACCESS_ALREADY_ENABLED) }
    }

    /// `cuCtxDisablePeerAccess`.
    pub(crate) fn disable_peer(&mut self, peer: u64) -> Outcome {
        let current = self.current()?;
        let context = self.contexts.get_mut(current).ok_or(Code::INVALID_CONTEXT)?;
        if context.peers.remove(&peer) { Ok(()) } else { Err(Code::PEER_ACCESS_NOT_ENABLED) }
    }
}
