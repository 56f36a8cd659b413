//! Work that nothing orders is found, and work that something orders is not.

use crate::support::{Program, cu};

const NON_BLOCKING: u32 = 1;
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// Two streams, an event and memory that the first stream writes.
struct Scene {
    program: Program,
    first: u64,
    second: u64,
    event: u64,
    address: u64,
}

impl Scene {
    fn new(first: u32, second: u32) -> Self {
        let program = Program::start();
        let (first, second, event) = (program.stream(first), program.stream(second), program.event());
        let address = program.allocate(64);
        program.fill(address, 64, first);
        Self { program, first, second, event, address }
    }

    /// Ends the scene, and gives how many violations there were.
    fn finish(self) -> usize {
        let count = self.program.violations().len();
        assert_eq!(cu!(self.program, cuMemFree_v2(self.address => u64)), 0);
        for stream in [self.first, self.second] {
            assert_eq!(cu!(self.program, cuStreamDestroy_v2(stream => u64)), 0);
        }
        assert_eq!(cu!(self.program, cuEventDestroy_v2(self.event => u64)), 0);
        count
    }

    fn fill(&self, stream: u64) {
        self.program.fill(self.address, 64, stream);
    }

    fn record(&self, stream: u64) {
        assert_eq!(cu!(self.program, cuEventRecord(self.event => u64, stream => u64)), 0);
    }

    fn wait(&self, stream: u64) {
        assert_eq!(cu!(self.program, cuStreamWaitEvent(stream => u64, self.event => u64, 0 => u32)), 0);
    }
}

#[test]
fn two_streams_without_an_event_race_and_both_places_are_named() {
    let scene = Scene::new(NON_BLOCKING, NON_BLOCKING);
    scene.fill(scene.second);
    assert_eq!(
        scene.program.violations(),
        ["cuMemsetD8Async (call n): writes # on stream # with nothing that orders it after cuMemsetD8Async (call n, \
             stream #), which touched it (memory from cuMemAlloc (call n))"]
    );
    assert_eq!(scene.finish(), 1);
}

/// What happens between the first stream's write and the second's.
#[derive(Clone, Copy, Debug)]
enum Step {
    RecordFirst,
    RecordSecond,
    WaitFirst,
    WaitSecond,
    FillFirst,
    SynchroniseFirst,
    SynchroniseSecond,
    SynchroniseContext,
    SynchroniseEvent,
}

impl Step {
    fn take(self, scene: &Scene) {
        let Scene { program, first, second, event, .. } = scene;
        match self {
            Self::RecordFirst => scene.record(*first),
            Self::RecordSecond => scene.record(*second),
            Self::WaitFirst => scene.wait(*first),
            Self::WaitSecond => scene.wait(*second),
            Self::FillFirst => scene.fill(*first),
            Self::SynchroniseFirst => assert_eq!(cu!(program, cuStreamSynchronize(*first => u64)), 0),
            Self::SynchroniseSecond => assert_eq!(cu!(program, cuStreamSynchronize(*second => u64)), 0),
            Self::SynchroniseContext => assert_eq!(cu!(program, cuCtxSynchronize()), 0),
            Self::SynchroniseEvent => assert_eq!(cu!(program, cuEventSynchronize(*event => u64)), 0),
        }
    }
}

#[test]
fn what_orders_two_streams_prevents_the_race() {
    use Step::{
        FillFirst, RecordFirst, RecordSecond, SynchroniseContext, SynchroniseEvent, SynchroniseFirst,
        SynchroniseSecond, WaitFirst, WaitSecond,
    };
    let cases: [(&[Step], usize); 9] = [
        (&[RecordFirst, WaitSecond], 0),
        (&[RecordFirst, SynchroniseEvent], 0),
        (&[SynchroniseFirst], 0),
        (&[SynchroniseContext], 0),
        // Recorded too early, by the wrong stream, not at all; waited for by nobody; the wrong stream.
        (&[RecordFirst, FillFirst, WaitSecond], 1),
        (&[RecordSecond, WaitFirst], 1),
        (&[WaitSecond], 1),
        (&[RecordFirst], 1),
        (&[SynchroniseSecond], 1),
    ];
    for (steps, violations) in cases {
        let scene = Scene::new(NON_BLOCKING, NON_BLOCKING);
        for step in steps {
            step.take(&scene);
        }
        scene.fill(scene.second);
        assert_eq!(scene.finish(), violations, "{steps:?}");
    }
}

#[test]
fn the_legacy_stream_orders_blocking_streams_and_no_others() {
    for (flags, stream, violations) in [
        (0, LEGACY, 0),
        (NON_BLOCKING, LEGACY, 1),
        // The thread's default stream is a blocking one like the first: only the legacy stream is between them.
        (0, PER_THREAD, 1),
    ] {
        let scene = Scene::new(flags, NON_BLOCKING);
        scene.fill(stream);
        assert_eq!(scene.finish(), violations, "flags {flags}, stream {stream}");
    }
    let scene = Scene::new(0, 0);
    scene.program.fill(scene.program.allocate(8), 8, LEGACY);
    scene.fill(scene.second);
    assert_eq!(cu!(scene.program, cuCtxSynchronize()), 0);
    assert_eq!(scene.program.violations(), [""; 0]);
    let other = scene.program.stub.report()["alive"]["allocations"][1]["address"].as_u64().unwrap();
    assert_eq!(cu!(scene.program, cuMemFree_v2(other => u64)), 0);
    assert_eq!(scene.finish(), 0);
}

#[test]
fn stream_zero_is_the_threads_own_for_functions_with_that_suffix() {
    let scene = Scene::new(NON_BLOCKING, NON_BLOCKING);
    scene.record(scene.first);
    assert_eq!(cu!(scene.program, cuStreamWaitEvent_ptsz(0 => u64, scene.event => u64, 0 => u32)), 0);
    scene.fill(PER_THREAD);
    assert_eq!(scene.finish(), 0);
}

#[test]
fn memory_is_allocated_and_freed_in_the_order_of_its_stream() {
    let program = Program::start();
    let (first, second) = (program.stream(NON_BLOCKING), program.stream(NON_BLOCKING));
    let address = program.allocate_async(64, first);
    program.fill(address, 64, second);
    assert_eq!(cu!(program, cuMemFreeAsync(address => u64, first => u64)), 0);
    assert_eq!(
        program.violations(),
        [
            "cuMemsetD8Async (call n): writes # on stream # with nothing that orders it after cuMemAllocAsync (call n, \
             stream #), which touched it (memory from cuMemAllocAsync (call n))",
            "cuMemFreeAsync (call n): ends # on stream # with nothing that orders it after cuMemsetD8Async (call n, \
             stream #), which touched it (memory from cuMemAllocAsync (call n))",
        ]
    );
    let address = program.allocate_async(64, first);
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    assert_eq!(
        program.violations()[2..],
        [
            "cuMemFree (call n): # ends while cuMemAllocAsync (call n, stream #), which touched it, is not known to be over"
        ]
    );
    for stream in [first, second] {
        assert_eq!(cu!(program, cuStreamDestroy_v2(stream => u64)), 0);
    }
}

#[test]
fn a_synchronous_copy_is_not_ordered_after_a_stream_that_does_not_block() {
    let scene = Scene::new(NON_BLOCKING, NON_BLOCKING);
    assert_eq!(scene.program.download(scene.address, 1), Ok(vec![7]));
    assert_eq!(scene.finish(), 1);
    let scene = Scene::new(0, NON_BLOCKING);
    assert_eq!(scene.program.download(scene.address, 1), Ok(vec![7]));
    scene.fill(scene.second);
    assert_eq!(scene.finish(), 0, "the copy waited for the stream, and the host for the copy");
}

#[test]
fn synchronous_copies_wait_for_what_the_manual_says() {
    let program = Program::start();
    let (stream, other) = (program.stream(NON_BLOCKING), program.allocate(8));
    let mut pinned = 0_u64;
    assert_eq!(cu!(program, cuMemAllocHost_v2(&raw mut pinned => *mut u64, 8 => usize)), 0);
    let mut bytes = [0_u8; 8];
    let pageable = bytes.as_mut_ptr().addr() as u64;
    for (source, violations) in [(pinned, 0), (pageable, 1), (other, 1)] {
        let address = program.allocate(8);
        assert_eq!(cu!(program, cuMemcpy(address => u64, source => u64, 8 => usize)), 0);
        program.fill(address, 8, stream);
        assert_eq!(program.violations().len(), violations);
        assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
        program.stub.reset();
    }
    let address = program.allocate(8);
    program.fill(address, 8, stream);
    assert_eq!(cu!(program, cuMemcpyDtoHAsync_v2(pageable => u64, address => u64, 8 => usize, stream => u64)), 0);
    program.fill(address, 8, 0);
    assert_eq!(program.violations(), [""; 0], "a copy into pageable memory was done when it returned");
    assert_eq!(cu!(program, cuMemFreeHost(pinned => u64)), 0);
    for address in [address, other] {
        assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    }
    assert_eq!(cu!(program, cuStreamDestroy_v2(stream => u64)), 0);
}

#[test]
fn host_functions_are_called() {
    unsafe extern "C" fn double(number: *mut u32) {
        // SAFETY: the test gives the address of a number that outlives the call.
        unsafe { *number *= 2 };
    }
    let program = Program::start();
    let mut number = 21_u32;
    let function: unsafe extern "C" fn(*mut u32) = double;
    assert_eq!(
        cu!(program, cuLaunchHostFunc(0 => u64, function => unsafe extern "C" fn(*mut u32), &raw mut number => *mut u32)),
        0
    );
    assert_eq!(number, 42);
}

#[test]
fn time_passes_between_events() {
    let program = Program::start();
    let (start, end, untimed) = (program.event(), program.event(), {
        let mut event = 0_u64;
        assert_eq!(cu!(program, cuEventCreate(&raw mut event => *mut u64, 2 => u32)), 0);
        event
    });
    let elapsed = |start: u64, end: u64| {
        let mut time = -1.0_f32;
        let code = cu!(program, cuEventElapsedTime(&raw mut time => *mut f32, start => u64, end => u64));
        if code == 0 { Ok(time) } else { Err(code) }
    };
    assert_eq!(elapsed(start, end), Err(400), "neither was recorded");
    for event in [start, end, untimed] {
        assert_eq!(cu!(program, cuEventRecord(event => u64, 0 => u64)), 0);
    }
    assert!(elapsed(start, end).unwrap() >= 0.0);
    assert_eq!(elapsed(start, untimed), Err(400));
    for event in [start, end, untimed] {
        assert_eq!(cu!(program, cuEventDestroy_v2(event => u64)), 0);
    }
}

#[test]
fn threads_with_streams_of_their_own_do_not_disturb_each_other() {
    let program = Program::start();
    let work = |number: u8| {
        assert_eq!(cu!(program, cuCtxSetCurrent(program.context => u64)), 0);
        let stream = program.stream(NON_BLOCKING);
        for _ in 0..200 {
            let address = program.allocate_async(64, stream);
            let mut bytes = [0_u8; 64];
            let to = bytes.as_mut_ptr();
            let codes = [
                cu!(program, cuMemsetD8Async(address => u64, number => u8, 64 => usize, stream => u64)),
                cu!(program, cuMemcpyDtoHAsync_v2(to => *mut u8, address => u64, 64 => usize, stream => u64)),
                cu!(program, cuMemFreeAsync(address => u64, stream => u64)),
            ];
            assert_eq!((codes, bytes), ([0; 3], [number; 64]));
        }
        assert_eq!(cu!(program, cuStreamDestroy_v2(stream => u64)), 0);
    };
    std::thread::scope(|scope| {
        for number in 1..=4 {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
    assert_eq!(program.violations(), [""; 0]);
    assert_eq!(program.stub.report()["calls"]["cuMemsetD8Async"], 800);
    assert_eq!(program.alive("contexts_pushed"), 1, "a thread's stack goes with it");
}

#[test]
fn interleaved_columns_are_apart() {
    let scene = Scene::new(NON_BLOCKING, NON_BLOCKING);
    assert_eq!(cu!(scene.program, cuStreamSynchronize(scene.first => u64)), 0);
    for (stream, column) in [(scene.first, 0), (scene.second, 4)] {
        assert_eq!(
            cu!(scene.program, cuMemsetD2D8Async(
                scene.address + column => u64, 8 => usize, 1 => u8, 4 => usize, 8 => usize, stream => u64
            )),
            0
        );
    }
    assert_eq!(scene.finish(), 0);
}
