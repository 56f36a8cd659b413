//! Memory of all kinds: allocated and freed once, whatever happens in between.

use std::sync::Arc;
use std::thread;

use cuwheel_device_array::{
    Allocation, AllocationError, Array, Classified, DType, Device, Driver, Error, ErrorKind, Event, MemoryKind, Order,
    Stream, pointer_attributes, take_deferred_error,
};
use expect_test::expect;

use crate::refusals;
use crate::stub::{FIRST, KINDS, SECOND, Session, empty};

#[test]
fn every_kind_of_memory_is_freed_when_the_last_array_that_shares_it_goes() {
    for kind in KINDS {
        let session = Session::start();
        let array = empty(&[3, 4], DType::Float32, kind, &Stream::LEGACY);
        let known = usize::from(kind != MemoryKind::Host);
        assert_eq!(session.allocations().len(), known, "{kind}");
        assert_eq!(array.pointer() % 64, 0, "{kind}");
        let view = array.transpose(None).unwrap();
        drop(array);
        assert_eq!(session.allocations().len(), known, "{kind}");
        drop(view);
        assert_eq!(session.allocations(), [], "{kind}");
    }
}

#[test]
fn the_driver_is_told_what_kind_of_memory_is_wanted() {
    let session = Session::start();
    let functions = ["cuMemAllocAsync", "cuMemHostAlloc", "cuMemHostAlloc", "cuMemAllocManaged"];
    for (kind, function) in KINDS.into_iter().zip(functions) {
        let before = session.calls(function);
        let array = empty(&[5], DType::Int8, kind, &Stream::LEGACY);
        assert_eq!(session.calls(function), before + 1, "{kind}");
        let known = pointer_attributes(array.pointer()).unwrap();
        let expected = if kind == MemoryKind::Mapped { MemoryKind::Pinned } else { kind };
        assert_eq!((known.kind, known.device), (expected, Some(FIRST)), "{kind}");
        let range = known.range.unwrap();
        assert!(range.start <= array.pointer() && array.pointer() + 5 <= range.end, "{kind}");
    }
    let ordinary = pointer_attributes(std::ptr::from_ref(&session).expose_provenance() as u64).unwrap();
    assert_eq!((ordinary.kind, ordinary.device, ordinary.range), (MemoryKind::Host, None, None));
}

#[test]
fn no_bytes_are_no_allocation() {
    let session = Session::start();
    for kind in KINDS {
        let array = empty(&[0, 3], DType::Float64, kind, &Stream::LEGACY);
        assert_eq!((array.pointer(), array.size_bytes()), (0, 0));
    }
    assert_eq!(session.calls("cuMemAllocAsync") + session.calls("cuMemFreeAsync"), 0);
}

#[test]
fn memory_is_freed_from_any_thread_and_under_any_context() {
    let session = Session::start();
    let stream = Stream::create(SECOND).unwrap();
    for kind in KINDS {
        let on_second = Arc::new(Allocation::new(kind, 64, SECOND, &stream).unwrap());
        let in_thread = Arc::clone(&on_second);
        let first_is_current = FIRST.enter().unwrap();
        drop(on_second);
        thread::spawn(move || drop(in_thread)).join().unwrap();
        drop(Allocation::new(kind, 64, SECOND, &stream).unwrap());
        drop(first_is_current);
    }
    assert_eq!(session.calls("cuMemFreeAsync"), 2);
}

#[test]
fn memory_of_a_per_thread_stream_is_freed_in_order_by_another_thread() {
    let _session = Session::start();
    let array = empty(&[100], DType::Float32, MemoryKind::Device, &Stream::PER_THREAD);
    array.fill_zeros(&Stream::PER_THREAD).unwrap();
    thread::spawn(move || drop(array)).join().unwrap();
}

#[test]
fn memory_is_freed_when_the_work_in_its_stream_is_done() {
    for kind in KINDS {
        let session = Session::start();
        let stream = Stream::create(FIRST).unwrap();
        let array = empty(&[100], DType::Float32, kind, &stream);
        let source = empty(&[100], DType::Float32, MemoryKind::Device, &stream);
        source.fill_zeros(&stream).unwrap();
        source.copy_to(&array, &stream).unwrap();
        drop((array, source));
        // Device memory goes back in the order of the stream. A copy to ordinary memory had waited before.
        assert_eq!(session.calls("cuStreamSynchronize"), u64::from(kind != MemoryKind::Device), "{kind}");
    }
}

#[test]
fn a_stream_outlives_the_memory_that_is_freed_in_its_order() {
    let session = Session::start();
    let stream = Stream::create(FIRST).unwrap();
    let array = empty(&[100], DType::Float32, MemoryKind::Device, &stream);
    drop(stream);
    assert_eq!(session.calls("cuStreamDestroy"), 0);
    drop(array);
    assert_eq!(session.calls("cuStreamDestroy"), 1);
}

#[test]
fn too_little_memory_is_an_error_that_says_how_much_there_is() {
    let session = Session::start();
    let kept = empty(&[1 << 20], DType::UInt8, MemoryKind::Device, &Stream::LEGACY);
    let allocate = |kind, device| Allocation::new(kind, 2 << 30, device, &Stream::LEGACY).unwrap_err();
    refusals(
        &expect![[r#"
            Memory: out of device memory: 2147483648 bytes were asked for on device 0, where 1072693248 of 1073741824 are free; release arrays that are no longer needed, or work on smaller pieces
            Memory: out of device memory: 2147483648 bytes were asked for on device 1, where 1073741824 of 1073741824 are free; release arrays that are no longer needed, or work on smaller pieces
            Value: there is no device 2: the driver shows 2; devices are counted from 0, and CUDA_VISIBLE_DEVICES can hide some
        "#]],
        [
            allocate(MemoryKind::Device, FIRST).into(),
            allocate(MemoryKind::Device, SECOND).into(),
            Allocation::new(MemoryKind::Device, 1, Device::new(2), &Stream::LEGACY).unwrap_err().into(),
        ],
    );
    session.stub.configure("fail=cuMemHostAlloc:1:OUT_OF_MEMORY").unwrap();
    let error = allocate(MemoryKind::Pinned, FIRST);
    assert_eq!(error.kind(), ErrorKind::Memory);
    let AllocationError::OutOfHostMemory { requested, free, total, kind } = error else { panic!("{error}") };
    assert_eq!((requested, kind), (2 << 30, MemoryKind::Pinned));
    assert!(0 < free && free <= total);
    let error = Allocation::new(MemoryKind::Host, usize::MAX / 2 - 512, FIRST, &Stream::LEGACY).unwrap_err();
    assert!(matches!(error, AllocationError::OutOfHostMemory { .. }), "{error}");
    assert_eq!(session.allocations().len(), 1);
    drop(kept);
}

#[test]
fn a_device_without_memory_pools_has_memory_all_the_same() {
    let session = Session::start();
    session.stub.configure("fail=cuMemAllocAsync:1:NOT_SUPPORTED").unwrap();
    let array = empty(&[16], DType::Float32, MemoryKind::Device, &Stream::LEGACY);
    array.fill_zeros(&Stream::LEGACY).unwrap();
    drop(array);
    assert_eq!((session.calls("cuMemAlloc"), session.calls("cuMemFree"), session.calls("cuMemFreeAsync")), (1, 1, 0));
}

#[test]
fn an_error_while_freeing_is_reported_by_the_next_call_and_only_by_it() {
    let session = Session::start();
    let arrays = [0, 1].map(|_| empty(&[16], DType::Float32, MemoryKind::Device, &Stream::LEGACY));
    let leaked = arrays.iter().map(|array| array.pointer()).collect::<Vec<_>>();
    session.stub.configure("fail=cuMemFreeAsync:1+:INVALID_VALUE").unwrap();
    drop(arrays);
    let allocate = || Allocation::new(MemoryKind::Device, 64, FIRST, &Stream::LEGACY);
    refusals(
        &expect![[r#"
        Driver: an error that could not be reported when it happened, while freeing memory: cuMemFreeAsync failed with CUDA_ERROR_INVALID_VALUE (1): invalid argument; run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the cause
    "#]],
        [allocate().unwrap_err().into()],
    );
    assert_eq!(take_deferred_error(), None);
    session.stub.reset();
    allocate().unwrap();
    release(&session, &leaked);
}

/// Frees what a test kept this crate from freeing.
fn release(session: &Session, addresses: &[u64]) {
    Stream::LEGACY.synchronize(FIRST).unwrap();
    let _context = FIRST.enter().unwrap();
    for &address in addresses {
        // SAFETY: this is the declaration in `cuda.h`, and the memory was not freed.
        let code = unsafe { session.stub.function::<unsafe extern "C" fn(u64) -> u32>(b"cuMemFree_v2\0")(address) };
        assert_eq!(code, 0);
    }
}

#[test]
fn a_driver_that_is_shutting_down_is_no_error_of_a_destructor() {
    let session = Session::start();
    for (function, error) in [
        ("cuCtxGetCurrent", "DEINITIALIZED"),
        ("cuMemFreeAsync", "CONTEXT_IS_DESTROYED"),
        ("cuStreamIsCapturing", "NOT_INITIALIZED"),
    ] {
        let array = empty(&[16], DType::Float32, MemoryKind::Device, &Stream::LEGACY);
        let address = array.pointer();
        session.stub.configure(&format!("fail={function}:1:{error}")).unwrap();
        drop(array);
        assert_eq!(take_deferred_error(), None, "{function}");
        session.stub.reset();
        release(&session, &[address]);
    }
}

#[test]
fn everything_can_be_used_by_several_threads_at_once() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Array>();
    is_shared::<Allocation>();
    is_shared::<Event>();
    is_shared::<Driver>();
    let _session = Session::start();
    thread::scope(|scope| {
        for device in [FIRST, SECOND, FIRST, SECOND] {
            scope.spawn(move || {
                for kind in KINDS.into_iter().cycle().take(40) {
                    let stream = Stream::create(device).unwrap();
                    let array = Array::empty(&[3, 5], DType::Int16, kind, device, &stream, Order::F).unwrap();
                    array.fill_bytes(&[7, 0], &stream).unwrap();
                    let copy =
                        array.transpose(None).unwrap().contiguous_copy(MemoryKind::Device, device, &stream).unwrap();
                    scope.spawn(move || drop(copy));
                }
            });
        }
    });
}

/// Runs `action` while `stream` is being captured. Returns the number of nodes of the graph, which is launched once.
pub(crate) fn while_capturing(session: &Session, stream: &Stream, action: impl FnOnce()) -> usize {
    let _context = FIRST.enter().unwrap();
    let (mut graph, mut executable, mut nodes) = (0_u64, 0_u64, 0_usize);
    let handle = stream.handle() as u64;
    // SAFETY: these are the declarations in `cuda.h`, and the pointers are to local variables.
    unsafe {
        let begin: unsafe extern "C" fn(u64, u32) -> u32 = session.stub.function(b"cuStreamBeginCapture_v2\0");
        let end: unsafe extern "C" fn(u64, *mut u64) -> u32 = session.stub.function(b"cuStreamEndCapture\0");
        let count: unsafe extern "C" fn(u64, *mut u64, *mut usize) -> u32 = session.stub.function(b"cuGraphGetNodes\0");
        let instantiate: unsafe extern "C" fn(*mut u64, u64, u64) -> u32 =
            session.stub.function(b"cuGraphInstantiateWithFlags\0");
        let launch: unsafe extern "C" fn(u64, u64) -> u32 = session.stub.function(b"cuGraphLaunch\0");
        let destroy: unsafe extern "C" fn(u64) -> u32 = session.stub.function(b"cuGraphDestroy\0");
        let destroy_executable: unsafe extern "C" fn(u64) -> u32 = session.stub.function(b"cuGraphExecDestroy\0");
        assert_eq!(begin(handle, 0), 0);
        action();
        assert_eq!(end(handle, &raw mut graph), 0);
        assert_eq!(count(graph, std::ptr::null_mut(), &raw mut nodes), 0);
        assert_eq!(instantiate(&raw mut executable, graph, 0), 0);
        assert_eq!(launch(executable, handle), 0);
        assert_eq!((destroy(graph), destroy_executable(executable)), (0, 0));
    }
    nodes
}

#[test]
fn a_capture_is_not_disturbed_by_memory_that_is_dropped_during_it() {
    for kind in KINDS {
        let session = Session::start();
        let stream = Stream::create(FIRST).unwrap();
        let (array, other) = (empty(&[9], DType::Int8, kind, &stream), empty(&[9], DType::Int8, kind, &Stream::LEGACY));
        let known = session.allocations().len();
        while_capturing(&session, &stream, || {
            drop(array);
            drop(other);
            let of_stream = Allocation::new(MemoryKind::Device, 8, FIRST, &stream);
            assert_eq!(of_stream.unwrap_err(), AllocationError::Capturing);
        });
        // What belongs to the captured stream is still there, and goes when there is an occasion.
        assert_eq!(session.allocations().len(), known / 2, "{kind}");
        stream.synchronize(FIRST).unwrap();
    }
}

#[test]
fn a_refusal_during_a_capture_says_what_to_do() {
    let session = Session::start();
    let stream = Stream::create(FIRST).unwrap();
    let array = empty(&[9], DType::Int8, MemoryKind::Device, &stream);
    let host = empty(&[9], DType::Int8, MemoryKind::Host, &stream);
    let mut errors: Vec<Error> = vec![];
    while_capturing(&session, &stream, || {
        errors.push(Allocation::new(MemoryKind::Pinned, 8, FIRST, &stream).unwrap_err().into());
        errors.push(array.copy_to(&host, &stream).unwrap_err());
    });
    refusals(
        &expect![[r#"
        Driver: memory cannot be allocated on a stream that is being captured into a graph; allocate before the capture, or on another stream
        Driver: elements cannot be copied between a device and ordinary host memory on a stream that is being captured into a graph; copy before or after the capture, or between device and pinned arrays
    "#]],
        errors,
    );
}

#[test]
fn a_lost_context_is_an_error_and_not_a_crash() {
    let session = Session::start();
    let array = empty(&[9], DType::Int8, MemoryKind::Device, &Stream::LEGACY);
    session.stub.configure("sticky=cuMemsetD8Async:1:ILLEGAL_ADDRESS").unwrap();
    refusals(
        &expect![[r#"
        Driver: cuMemsetD8Async failed with CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered; a kernel that ran earlier is the likely cause, and the device stays unusable for this process; find it with compute-sanitizer and restart
    "#]],
        [array.fill_zeros(&Stream::LEGACY).unwrap_err()],
    );
    session.stub.reset();
    take_deferred_error();
}
