//! Captures, what spoils them, and graphs.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Program, cu};

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

fn begin(program: &Program, stream: u64, mode: u32) {
    assert_eq!(cu!(program, cuStreamBeginCapture_v2(stream => u64, mode => u32)), 0);
}

fn end(program: &Program, stream: u64) -> Result<u64, u32> {
    let mut graph = 0_u64;
    match cu!(program, cuStreamEndCapture(stream => u64, &raw mut graph => *mut u64)) {
        0 => Ok(graph),
        code => Err(code),
    }
}

fn status(program: &Program, stream: u64) -> Result<u32, u32> {
    let mut status = 9_u32;
    match cu!(program, cuStreamIsCapturing(stream => u64, &raw mut status => *mut u32)) {
        0 => Ok(status),
        code => Err(code),
    }
}

fn destroy_streams(program: &Program, streams: &[u64]) {
    for stream in streams {
        assert_eq!(cu!(program, cuStreamDestroy_v2(*stream => u64)), 0);
    }
}

#[test]
fn captured_work_is_done_when_the_graph_is_launched() {
    let program = Program::start();
    let (stream, other, event) = (program.stream(1), program.stream(1), program.event());
    let address = program.allocate(8);
    assert_eq!(program.upload(address, &[0; 8]), 0);
    begin(&program, stream, GLOBAL);
    program.fill(address, 4, stream);
    assert_eq!(cu!(program, cuEventRecord(event => u64, stream => u64)), 0);
    assert_eq!(cu!(program, cuStreamWaitEvent(other => u64, event => u64, 0 => u32)), 0);
    assert_eq!(status(&program, other), Ok(1));
    program.fill(address + 4, 4, other);
    assert_eq!(cu!(program, cuEventQuery(event => u64)), 900, "the call itself may not be made");
    assert_eq!(end(&program, stream), Err(901));

    begin(&program, stream, RELAXED);
    program.fill(address, 4, stream);
    let graph = end(&program, stream).unwrap();
    assert_eq!(program.download(address, 1), Ok(vec![0]));
    let mut exec = 0_u64;
    assert_eq!(cu!(program, cuGraphInstantiateWithFlags(&raw mut exec => *mut u64, graph => u64, 0 => u64)), 0);
    assert_eq!(cu!(program, cuGraphDestroy(graph => u64)), 0);
    assert_eq!(cu!(program, cuGraphLaunch(exec => u64, stream => u64)), 0);
    assert_eq!(cu!(program, cuStreamSynchronize(stream => u64)), 0);
    assert_eq!(program.download(address, 5), Ok(vec![7, 7, 7, 7, 0]));
    assert_eq!(cu!(program, cuGraphExecDestroy(exec => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    assert_eq!(cu!(program, cuEventDestroy_v2(event => u64)), 0);
    destroy_streams(&program, &[stream, other]);
    assert_eq!(program.violations(), [""; 0]);
}

#[test]
fn unsafe_calls_spoil_a_capture_unless_it_is_relaxed() {
    let program = Program::start();
    let stream = program.stream(1);
    let elsewhere = |program: &Program| {
        std::thread::scope(|scope| {
            let call = || {
                assert_eq!(cu!(program, cuCtxSetCurrent(program.context => u64)), 0);
                cu!(program, cuMemFree_v2(0 => u64))
            };
            scope.spawn(call).join().unwrap()
        })
    };
    for (mode, here, there) in [(GLOBAL, 900, 900), (THREAD_LOCAL, 900, 0), (RELAXED, 0, 0)] {
        begin(&program, stream, mode);
        assert_eq!(elsewhere(&program), there, "mode {mode}");
        assert_eq!(status(&program, stream), Ok(if there == 0 { 1 } else { 2 }), "mode {mode}");
        assert_eq!(cu!(program, cuMemFree_v2(0 => u64)), here, "mode {mode}");
        let ended = end(&program, stream);
        assert_eq!(ended.err(), (here != 0).then_some(901), "mode {mode}");
        if let Ok(graph) = ended {
            assert_eq!(cu!(program, cuGraphDestroy(graph => u64)), 0);
        }
    }
    let mut mode = RELAXED;
    begin(&program, stream, GLOBAL);
    assert_eq!(cu!(program, cuThreadExchangeStreamCaptureMode(&raw mut mode => *mut u32)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(0 => u64)), 0);
    assert_eq!(cu!(program, cuThreadExchangeStreamCaptureMode(&raw mut mode => *mut u32)), 0);
    assert_eq!(mode, RELAXED);
    assert_eq!(cu!(program, cuStreamSynchronize(stream => u64)), 900);
    assert_eq!(end(&program, stream), Err(901));
    destroy_streams(&program, &[stream]);
}

#[test]
fn the_legacy_stream_is_not_captured_and_spoils_captures_of_blocking_streams() {
    let program = Program::start();
    let (blocking, free) = (program.stream(0), program.stream(1));
    assert_eq!(cu!(program, cuStreamBeginCapture_v2(0 => u64, GLOBAL => u32)), 900);
    let address = program.allocate(8);
    begin(&program, free, RELAXED);
    program.fill(address, 8, 0);
    cu!(program, cuGraphDestroy(end(&program, free).unwrap() => u64));
    begin(&program, blocking, RELAXED);
    assert_eq!(cu!(program, cuMemsetD8Async(address => u64, 1 => u8, 8 => usize, 0 => u64)), 906);
    assert_eq!(end(&program, blocking), Err(901));
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    destroy_streams(&program, &[blocking, free]);
}

#[test]
fn streams_that_joined_a_capture_have_to_be_joined_back() {
    let program = Program::start();
    let (stream, other, event) = (program.stream(1), program.stream(1), program.event());
    let address = program.allocate(8);
    for joins_back in [false, true] {
        begin(&program, stream, THREAD_LOCAL);
        assert_eq!(cu!(program, cuEventRecord(event => u64, stream => u64)), 0);
        assert_eq!(cu!(program, cuStreamWaitEvent(other => u64, event => u64, 0 => u32)), 0);
        program.fill(address, 8, other);
        if joins_back {
            assert_eq!(cu!(program, cuEventRecord(event => u64, other => u64)), 0);
            assert_eq!(cu!(program, cuStreamWaitEvent(stream => u64, event => u64, 0 => u32)), 0);
            cu!(program, cuGraphDestroy(end(&program, stream).unwrap() => u64));
        } else {
            assert_eq!(end(&program, stream), Err(904));
        }
        assert_eq!(status(&program, other), Ok(0));
    }
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    assert_eq!(cu!(program, cuEventDestroy_v2(event => u64)), 0);
    destroy_streams(&program, &[stream, other]);
}

#[test]
fn a_capture_says_which_nodes_come_before_the_next() {
    let program = Program::start();
    let (stream, address) = (program.stream(1), program.allocate(8));
    let information = || {
        let (mut status, mut id, mut graph, mut count) = (9_u32, 0_u64, 0_u64, 0_usize);
        let mut nodes: *const u64 = std::ptr::null();
        let code = cu!(program, cuStreamGetCaptureInfo_v2(
            stream => u64, &raw mut status => *mut u32, &raw mut id => *mut u64, &raw mut graph => *mut u64,
            &raw mut nodes => *mut *const u64, &raw mut count => *mut usize
        ));
        // SAFETY: the driver gave so many handles, which are good until it is asked again.
        let nodes = if count == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec() };
        ((code, status), (id, graph), nodes)
    };
    assert_eq!(information(), ((0, 0), (0, 0), vec![]));
    begin(&program, stream, RELAXED);
    let (state, first, nodes) = information();
    assert_eq!((state, nodes), ((0, 1), vec![]));
    for _ in 0..2 {
        program.fill(address, 8, stream);
    }
    let (_, again, nodes) = information();
    let graph = end(&program, stream).unwrap();
    assert_eq!((again, graph), (first, first.1));
    let (mut all, mut count) = ([0_u64; 3], 3_usize);
    let place = &raw mut count;
    assert_eq!(cu!(program, cuGraphGetNodes(graph => u64, all.as_mut_ptr() => *mut u64, place => *mut usize)), 0);
    assert_eq!((count, nodes), (2, vec![all[1]]));
    assert_eq!(cu!(program, cuGraphDestroy(graph => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    destroy_streams(&program, &[stream]);
}

#[test]
fn memory_of_a_graph_lives_as_long_as_the_graph() {
    let program = Program::start();
    let stream = program.stream(1);
    begin(&program, stream, GLOBAL);
    let address = program.allocate_async(8, stream);
    program.fill(address, 8, stream);
    assert_eq!(cu!(program, cuMemFreeAsync(address => u64, stream => u64)), 0);
    let graph = end(&program, stream).unwrap();
    let mut exec = 0_u64;
    assert_eq!(cu!(program, cuGraphInstantiateWithFlags(&raw mut exec => *mut u64, graph => u64, 0 => u64)), 0);
    for _ in 0..2 {
        assert_eq!(cu!(program, cuGraphLaunch(exec => u64, stream => u64)), 0);
    }
    assert_eq!(cu!(program, cuGraphDestroy(graph => u64)), 0);
    assert_eq!(program.alive("allocations"), 1);
    assert_eq!(cu!(program, cuGraphExecDestroy(exec => u64)), 0);
    assert_eq!(program.alive("allocations"), 0);
    destroy_streams(&program, &[stream]);
    assert_eq!(program.violations(), [""; 0]);
}

#[test]
fn a_user_object_goes_with_the_last_graph_that_holds_it() {
    unsafe extern "C" fn count(calls: *const AtomicU32) {
        // SAFETY: the test gives the address of a number that outlives the object.
        unsafe { &*calls }.fetch_add(1, Ordering::Relaxed);
    }
    let program = Program::start();
    let (stream, calls, mut object) = (program.stream(1), AtomicU32::new(0), 0_u64);
    let function: unsafe extern "C" fn(*const AtomicU32) = count;
    assert_eq!(
        cu!(program, cuUserObjectCreate(
            &raw mut object => *mut u64, &raw const calls => *const AtomicU32,
            function => unsafe extern "C" fn(*const AtomicU32), 1 => u32, 1 => u32
        )),
        0
    );
    begin(&program, stream, RELAXED);
    let graph = end(&program, stream).unwrap();
    assert_eq!(cu!(program, cuGraphRetainUserObject(graph => u64, object => u64, 1 => u32, 1 => u32)), 0);
    let mut exec = 0_u64;
    assert_eq!(cu!(program, cuGraphInstantiateWithFlags(&raw mut exec => *mut u64, graph => u64, 0 => u64)), 0);
    assert_eq!(cu!(program, cuGraphDestroy(graph => u64)), 0);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(cu!(program, cuGraphExecDestroy(exec => u64)), 0);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(cu!(program, cuUserObjectRelease(object => u64, 1 => u32)), 1);
    destroy_streams(&program, &[stream]);
}

#[test]
fn memory_from_outside_is_not_freed_in_a_capture() {
    let program = Program::start();
    let stream = program.stream(1);
    let outside = program.allocate_async(8, stream);
    begin(&program, stream, GLOBAL);
    let inside = program.allocate_async(8, stream);
    assert_eq!(cu!(program, cuMemFreeAsync(inside => u64, stream => u64)), 0);
    assert_eq!(cu!(program, cuMemFreeAsync(outside => u64, stream => u64)), 1);
    assert_eq!(end(&program, stream), Err(901));
    assert_eq!(program.alive("allocations"), 1);
    assert_eq!(cu!(program, cuMemFreeAsync(outside => u64, stream => u64)), 0);
    destroy_streams(&program, &[stream]);
}
