//! Captures of streams into graphs, and the calls that spoil one.
//!
//! A graph is run in the order in which it was captured, on the stream that it is launched on. Memory that a graph allocates
//! has its address from the capture on and lives as long as the graph.

use std::collections::{BTreeMap, BTreeSet};

use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::handle::{Kind, fresh};
use crate::stream::Role;
use crate::work::Work;

/// `CUstreamCaptureMode`.
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

/// `CUstreamCaptureStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

/// Work that waits in a graph.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) handle: u64,
    pub(crate) function: &'static str,
    pub(crate) work: Work,
    /// Indices of the nodes that come before.
    pub(crate) after: Vec<usize>,
}

/// A capture that is under way.
pub(crate) struct Capture {
    pub(crate) id: u64,
    pub(crate) context: u64,
    origin: u64,
    mode: u32,
    thread: u64,
    pub(crate) graph: u64,
    invalidated: bool,
    /// For each stream that takes part, the nodes that its next work comes after.
    frontier: BTreeMap<u64, Vec<usize>>,
    /// Handles of the nodes that the last question named; they have to stay where they are until the next.
    pub(crate) shown: Vec<u64>,
}

/// What was captured.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    /// Memory that the graph allocates.
    pub(crate) addresses: BTreeSet<u64>,
    /// User objects that the graph holds, one entry for each reference.
    pub(crate) user_objects: Vec<u64>,
    /// Whether the capture that made it has ended.
    pub(crate) finished: bool,
}

impl Driver {
    /// `cuStreamBeginCapture`.
    pub(crate) fn begin_capture(&mut self, raw: u64, mode: u32) -> Outcome {
        if mode > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        let stream = self.stream_handle(raw)?;
        let known = self.stream(stream)?;
        if known.role == Role::Legacy {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if known.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let context = known.context;
        let (id, graph, thread) = (self.next_id(), self.graphs.insert(Graph::default()), self.calling.thread);
        let frontier = BTreeMap::from([(stream, Vec::new())]);
        let (invalidated, shown) = (false, Vec::new());
        let capture = Capture { id, context, origin: stream, mode, thread, graph, invalidated, frontier, shown };
        self.captures.insert(id, capture);
        self.stream_mut(stream)?.capture = Some(id);
        Ok(())
    }

    /// `cuStreamEndCapture`: the graph.
    pub(crate) fn end_capture(&mut self, raw: u64) -> Outcome<u64> {
        let stream = self.stream_handle(raw)?;
        let id = self.stream(stream)?.capture.ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captures.get(&id).ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream {
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != RELAXED && capture.thread != self.calling.thread {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        let capture = self.take_capture(id).ok_or(Code::ILLEGAL_STATE)?;
        let joined: BTreeSet<usize> = self.ancestors(capture.graph, &capture.frontier[&stream]);
        let unjoined = capture.frontier.values().flatten().any(|node| !joined.contains(node));
        let failure = match (capture.invalidated, unjoined) {
            (true, _) => Some(Code::STREAM_CAPTURE_INVALIDATED),
            (false, true) => Some(Code::STREAM_CAPTURE_UNJOINED),
            (false, false) => None,
        };
        if let Some(code) = failure {
            self.destroy_graph(capture.graph)?;
            return Err(code);
        }
        let graph = self.graphs.get_mut(capture.graph).ok_or(Code::INVALID_VALUE)?;
        graph.finished = true;
        Ok(capture.graph)
    }

    fn take_capture(&mut self, id: u64) -> Option<Capture> {
        for stream in self.streams.values_mut().filter(|stream| stream.capture == Some(id)) {
            stream.capture = None;
        }
        self.captures.remove(&id)
    }

    /// Nodes of a graph that come before some of `nodes`, themselves included.
    fn ancestors(&self, graph: u64, nodes: &[usize]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = nodes.to_vec();
        while let Some(node) = open.pop() {
            if found.insert(node)
                && let Some(known) = self.graphs.get(graph).and_then(|graph| graph.nodes.get(node))
            {
                open.extend(&known.after);
            }
        }
        found
    }

    /// The state of a stream's capture, and its id.
    pub(crate) fn capture_status(&mut self, raw: u64) -> Outcome<(Status, u64)> {
        let stream = self.stream_handle(raw)?;
        let known = self.stream(stream)?;
        let (context, role) = (known.context, known.role);
        match known.capture.and_then(|id| self.captures.get(&id)) {
            Some(capture) if capture.invalidated => Ok((Status::Invalidated, capture.id)),
            Some(capture) => Ok((Status::Active, capture.id)),
            // The question alone spoils nothing.
            None if role == Role::Legacy && !self.blocking_captures(context).is_empty() => {
                Err(Code::STREAM_CAPTURE_IMPLICIT)
            }
            None => Ok((Status::None, 0)),
        }
    }

    /// The graph that a stream is captured into, and the handles of the nodes that its next work comes after.
    pub(crate) fn capture_dependencies(&mut self, id: u64, raw: u64) -> Outcome<(u64, &[u64])> {
        let stream = self.stream_handle(raw)?;
        let capture = self.captures.get_mut(&id).ok_or(Code::INVALID_VALUE)?;
        let graph = self.graphs.get(capture.graph).ok_or(Code::INVALID_VALUE)?;
        let frontier = capture.frontier.get(&stream).map(Vec::as_slice).unwrap_or_default();
        capture.shown = frontier.iter().map(|node| graph.nodes[*node].handle).collect();
        Ok((capture.graph, &capture.shown))
    }

    /// Adds work to the graph of a stream's capture.
    pub(crate) fn capture_work(&mut self, id: u64, stream: u64, work: Work) -> Outcome {
        let function = self.calling.function;
        let capture = self.captures.get_mut(&id).ok_or(Code::INVALID_VALUE)?;
        if capture.invalidated {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let graph = self.graphs.get_mut(capture.graph).ok_or(Code::INVALID_VALUE)?;
        if let Work::Free(address) = work
            && !graph.addresses.contains(&address)
        {
            capture.invalidated = true;
            return Err(Code::INVALID_VALUE);
        }
        let frontier = capture.frontier.entry(stream).or_default();
        let after = std::mem::replace(frontier, vec![graph.nodes.len()]);
        graph.nodes.push(Node { handle: fresh(Kind::GraphNode), function, work, after });
        Ok(())
    }

    pub(crate) fn own_by_capture(&mut self, id: u64, address: u64) {
        if let Some(graph) = self.captures.get(&id).and_then(|capture| self.graphs.get_mut(capture.graph)) {
            graph.addresses.insert(address);
        }
    }

    pub(crate) fn is_of_graph(&self, address: u64) -> bool {
        self.graphs.iter().chain(self.graph_execs.iter()).any(|(_, graph)| graph.addresses.contains(&address))
    }

    /// The nodes that an event recorded now on a captured stream stands for.
    pub(crate) fn capture_frontier(&self, id: u64, stream: u64) -> Outcome<Vec<usize>> {
        let capture = self.captures.get(&id).ok_or(Code::INVALID_VALUE)?;
        if capture.invalidated {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        Ok(capture.frontier.get(&stream).cloned().unwrap_or_default())
    }

    /// A stream waits for an event of a capture, and so takes part in it.
    pub(crate) fn join_capture(&mut self, stream: u64, id: u64, nodes: &[usize]) -> Outcome {
        let known = self.stream(stream)?;
        let (own, role) = (known.capture, known.role);
        if !self.captures.contains_key(&id) {
            return Err(Code::CAPTURED_EVENT);
        }
        if role == Role::Legacy {
            self.invalidate_captures(|capture| capture.id == id);
            return Err(Code::STREAM_CAPTURE_IMPLICIT);
        }
        if let Some(other) = own.filter(|other| *other != id) {
            self.invalidate_captures(|capture| capture.id == id || capture.id == other);
            return Err(Code::STREAM_CAPTURE_MERGE);
        }
        let capture = self.captures.get_mut(&id).ok_or(Code::CAPTURED_EVENT)?;
        let frontier = capture.frontier.entry(stream).or_default();
        frontier.extend(nodes);
        frontier.sort_unstable();
        frontier.dedup();
        self.stream_mut(stream)?.capture = Some(id);
        Ok(())
    }

    pub(crate) fn invalidate_captures(&mut self, spoilt: impl Fn(&Capture) -> bool) {
        self.captures.values_mut().filter(|capture| spoilt(capture)).for_each(|capture| capture.invalidated = true);
    }

    /// A call that may not be made while this thread's captures, or those of any thread in global mode, are under way.
    pub(crate) fn refuse_during_capture(&mut self) -> Outcome {
        if self.captures.is_empty() {
            return Ok(());
        }
        let (thread, thread_mode) = (self.calling.thread, self.thread().capture_mode);
        let spoils = move |capture: &Capture| {
            let own = capture.thread == thread;
            match thread_mode {
                RELAXED => false,
                THREAD_LOCAL => own && capture.mode != RELAXED,
                _ => own && capture.mode != RELAXED || capture.mode == 0,
            }
        };
        if !self.captures.values().any(&spoils) {
            return Ok(());
        }
        self.invalidate_captures(spoils);
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Work on the legacy stream would have to be ordered after blocking streams that are captured.
    pub(crate) fn refuse_implicit_capture(&mut self, context: u64) -> Outcome {
        let captures = self.blocking_captures(context);
        if captures.is_empty() {
            return Ok(());
        }
        self.invalidate_captures(|capture| captures.contains(&capture.id));
        Err(Code::STREAM_CAPTURE_IMPLICIT)
    }

    fn blocking_captures(&self, context: u64) -> BTreeSet<u64> {
        if self.captures.is_empty() {
            return BTreeSet::new();
        }
        let blocking = self.streams.iter().filter(|(_, stream)| stream.context == context && stream.is_blocking());
        blocking.filter_map(|(_, stream)| stream.capture).collect()
    }

    /// A stream that is captured was destroyed.
    pub(crate) fn end_capture_of_destroyed(&mut self, id: u64, stream: u64) {
        if self.captures.get(&id).is_some_and(|capture| capture.origin == stream) {
            if let Some(graph) = self.take_capture(id).and_then(|capture| self.graphs.remove(capture.graph)) {
                self.release_holdings(&graph);
            }
        } else {
            self.invalidate_captures(|capture| capture.id == id);
        }
    }

    /// `cuGraphInstantiate`.
    pub(crate) fn instantiate(&mut self, graph: u64) -> Outcome<u64> {
        let graph = self.graphs.get(graph).filter(|graph| graph.finished).ok_or(Code::INVALID_VALUE)?.clone();
        for object in &graph.user_objects {
            self.retain_user_object(*object, 1)?;
        }
        Ok(self.graph_execs.insert(graph))
    }

    /// `cuGraphLaunch`: the nodes' work, in the order of their capture.
    pub(crate) fn launch_graph(&mut self, exec: u64, raw: u64) -> Outcome {
        let stream = self.stream_handle(raw)?;
        let nodes = self.graph_execs.get(exec).ok_or(Code::INVALID_VALUE)?.nodes.clone();
        for node in nodes {
            self.calling.function = node.function;
            self.submit(stream, node.work)?;
        }
        Ok(())
    }

    /// `cuGraphDestroy`.
    pub(crate) fn destroy_graph(&mut self, graph: u64) -> Outcome {
        let graph = self.graphs.remove(graph).ok_or(Code::INVALID_VALUE)?;
        self.release_holdings(&graph);
        Ok(())
    }

    /// `cuGraphExecDestroy`.
    pub(crate) fn destroy_graph_exec(&mut self, exec: u64) -> Outcome {
        let exec = self.graph_execs.remove(exec).ok_or(Code::INVALID_VALUE)?;
        self.release_holdings(&exec);
        Ok(())
    }

    /// What a graph held, which is already out of the books.
    fn release_holdings(&mut self, graph: &Graph) {
        let by = self.place_text();
        for address in &graph.addresses {
            if !self.is_of_graph(*address) {
                self.forget_allocation(*address, &by);
            }
        }
        for object in &graph.user_objects {
            // One that was released too often is gone, which was said then.
            let _ = self.release_user_object(*object, 1);
        }
    }
}
