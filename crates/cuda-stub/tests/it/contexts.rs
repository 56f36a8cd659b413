//! Contexts, their stack, and what else belongs to a device.

use crate::support::{Program, cu};

fn current(program: &Program) -> u64 {
    let mut context = 9;
    assert_eq!(cu!(program, cuCtxGetCurrent(&raw mut context => *mut u64)), 0);
    context
}

#[test]
fn each_thread_has_its_own_stack() {
    let program = Program::start();
    assert_eq!(cu!(program, cuCtxPushCurrent_v2(program.context => u64)), 0);
    assert_eq!(program.alive("contexts_pushed"), 2);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            assert_eq!(current(&program), 0);
            assert_eq!(cu!(program, cuCtxSynchronize()), 201);
            assert_eq!(cu!(program, cuCtxPopCurrent_v2(std::ptr::null_mut() => *mut u64)), 201);
            assert_eq!(cu!(program, cuCtxPushCurrent_v2(program.context => u64)), 0);
        });
        thread.join().unwrap();
    });
    let mut popped = 0;
    assert_eq!(cu!(program, cuCtxPopCurrent_v2(&raw mut popped => *mut u64)), 0);
    assert_eq!((popped, current(&program)), (program.context, program.context));
    assert_eq!(cu!(program, cuCtxSetCurrent(0 => u64)), 0);
    assert_eq!((program.alive("contexts_pushed"), current(&program)), (0, 0));
    assert_eq!(cu!(program, cuCtxSetCurrent(program.context => u64)), 0);
}

#[test]
fn a_primary_context_that_is_made_anew_keeps_its_handle_and_not_its_id() {
    let program = Program::start();
    let id = || {
        let mut id = 0_u64;
        assert_eq!(cu!(program, cuCtxGetId(0 => u64, &raw mut id => *mut u64)), 0);
        id
    };
    let state = || {
        let (mut flags, mut active) = (0_u32, 0_i32);
        let (flags, place) = (&raw mut flags, &raw mut active);
        assert_eq!(cu!(program, cuDevicePrimaryCtxGetState(0 => i32, flags => *mut u32, place => *mut i32)), 0);
        active
    };
    let (first, stream) = (id(), program.stream(0));
    assert_eq!(state(), 1);
    assert_eq!(cu!(program, cuDevicePrimaryCtxRelease_v2(0 => i32)), 0);
    assert_eq!(state(), 0);
    assert_eq!(cu!(program, cuCtxSynchronize()), 709);
    assert_eq!(cu!(program, cuDevicePrimaryCtxRelease_v2(0 => i32)), 201);
    let mut again = 0_u64;
    assert_eq!(cu!(program, cuDevicePrimaryCtxRetain(&raw mut again => *mut u64, 0 => i32)), 0);
    assert_eq!(again, program.context);
    assert_ne!(id(), first);
    assert_eq!(cu!(program, cuStreamSynchronize(stream => u64)), 400, "what the context held is gone");
    assert_eq!(
        program.violations(),
        [
            "cuDevicePrimaryCtxRelease (call n): the primary context is released more often than it was retained",
            "cuStreamSynchronize (call n): the stream # was destroyed before",
        ]
    );
}

#[test]
fn devices_say_what_they_are() {
    let program = Program::start();
    let attribute = |attribute: u32, device: i32| {
        let mut value = -1;
        let code = cu!(program, cuDeviceGetAttribute(&raw mut value => *mut i32, attribute => u32, device => i32));
        if code == 0 { Ok(value) } else { Err(code) }
    };
    assert_eq!([attribute(75, 0), attribute(76, 1), attribute(10, 0)], [Ok(9), Ok(0), Ok(32)]);
    assert_eq!([attribute(75, 2), attribute(0, 0), attribute(9999, 0)], [Err(101), Err(1), Err(1)]);
    let mut name = [1_u8; 12];
    assert_eq!(cu!(program, cuDeviceGetName(name.as_mut_ptr() => *mut u8, 10 => i32, 0 => i32)), 0);
    assert_eq!(&name, b"cuda-stub\0\x01\x01");
    let mut device = 0;
    assert_eq!(
        cu!(program, cuDeviceGetByPCIBusId(&raw mut device => *mut i32, c"0000:02:00.0".as_ptr() => *const _)),
        0
    );
    assert_eq!(device, 1);
}

#[test]
fn copies_between_devices_need_their_contexts() {
    let program = Program::start();
    let here = program.allocate(4);
    let mut context = 0_u64;
    assert_eq!(cu!(program, cuDevicePrimaryCtxRetain(&raw mut context => *mut u64, 1 => i32)), 0);
    assert_eq!(cu!(program, cuCtxPushCurrent_v2(context => u64)), 0);
    let there = program.allocate(4);
    let copy = |context: u64| {
        let (from, to) = (program.context, context);
        cu!(program, cuMemcpyPeer(there => u64, to => u64, here => u64, from => u64, 4 => usize))
    };
    assert_eq!([copy(context), copy(0xbad)], [0, 201]);
    assert_eq!(cu!(program, cuMemFree_v2(there => u64)), 0);
    assert_eq!(cu!(program, cuCtxPopCurrent_v2(std::ptr::null_mut() => *mut u64)), 0);
    assert_eq!(cu!(program, cuDevicePrimaryCtxRelease_v2(1 => i32)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(here => u64)), 0);
}
