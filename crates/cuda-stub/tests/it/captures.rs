//! Captures, what spoils them, and graphs.

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
