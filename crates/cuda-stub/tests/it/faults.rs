//! Faults on demand, and the settings.

use crate::support::{Program, cu};

#[test]
fn the_nth_call_fails_once_or_from_then_on() {
    let program = Program::start();
    program.stub.configure("fail=cuMemAlloc:2:OUT_OF_MEMORY;fail=cuStreamCreate:1+:CUDA_ERROR_NOT_PERMITTED").unwrap();
    let mut address = [0_u64; 3];
    let codes = address.each_mut().map(|place| cu!(program, cuMemAlloc_v2(place => *mut u64, 8 => usize)));
    assert_eq!(codes, [0, 2, 0]);
    let mut stream = 0_u64;
    for _ in 0..2 {
        assert_eq!(cu!(program, cuStreamCreate(&raw mut stream => *mut u64, 0 => u32)), 800);
    }
    assert_eq!(program.stub.report()["calls"]["cuMemAlloc"], 3);
    for address in [address[0], address[2]] {
        assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    }
}

#[test]
fn after_a_sticky_error_the_context_is_dead_until_it_is_reset() {
    let program = Program::start();
    program.stub.configure("sticky=cuMemcpyHtoD:1:ILLEGAL_ADDRESS").unwrap();
    let address = program.allocate(8);
    assert_eq!(program.upload(address, &[1]), 700);
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 700);
    assert_eq!(cu!(program, cuCtxSynchronize()), 700);
    let mut current = 0_u64;
    assert_eq!(cu!(program, cuCtxGetCurrent(&raw mut current => *mut u64)), 0);
    assert_eq!(cu!(program, cuDevicePrimaryCtxReset_v2(0 => i32)), 0);
    assert_eq!(program.alive("allocations"), 0);
    assert_eq!(cu!(program, cuCtxSynchronize()), 0);
}

#[test]
fn memory_runs_out_and_comes_back() {
    let program = Program::start();
    program.stub.configure("memory=1000").unwrap();
    let address = program.allocate(600);
    let mut more = 0_u64;
    assert_eq!(cu!(program, cuMemAlloc_v2(&raw mut more => *mut u64, 500 => usize)), 2);
    let (mut free, mut total) = (0_usize, 0_usize);
    assert_eq!(cu!(program, cuMemGetInfo_v2(&raw mut free => *mut usize, &raw mut total => *mut usize)), 0);
    assert_eq!((free, total), (400, 1000));
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(program.allocate(500) => u64)), 0);
}

#[test]
fn a_missing_function_is_not_found() {
    let program = Program::start();
    program.stub.configure("missing=cuMemAllocAsync").unwrap();
    let mut address = 0_u64;
    assert_eq!(cu!(program, cuMemAllocAsync(&raw mut address => *mut u64, 8 => usize, 0 => u64)), 500);
    let status = |symbol: &std::ffi::CStr, version: i32| {
        let (mut function, mut status) = (0_usize, 9_u32);
        let code = cu!(program, cuGetProcAddress_v2(
            symbol.as_ptr() => *const std::ffi::c_char, &raw mut function => *mut usize, version => i32, 0 => u64,
            &raw mut status => *mut u32
        ));
        (code, status, function != 0)
    };
    assert_eq!(status(c"cuMemAllocAsync", 12_000), (0, 1, false));
    assert_eq!(status(c"cuMemFreeAsync", 12_000), (0, 0, true));
    assert_eq!(status(c"cuMemFreeAsync", 11_010), (0, 2, false));
    program.stub.configure("driver=12020").unwrap();
    assert_eq!(status(c"cuCtxSynchronize", 13_000), (0, 0, true));
    assert_eq!(status(c"cuStreamGetDevice", 13_000), (0, 2, false));
}
