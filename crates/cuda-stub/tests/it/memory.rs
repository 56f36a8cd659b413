//! Memory, copies and what is said of addresses.

use crate::support::{Program, cu};

#[test]
fn bytes_go_to_the_device_and_come_back() {
    let program = Program::start();
    let address = program.allocate(16);
    assert_eq!(program.upload(address, &[1, 2, 3, 4]), 0);
    assert_eq!(program.download(address + 1, 3), Ok(vec![2, 3, 4]));
    assert_eq!(program.download(address + 4, 2), Ok(vec![0xCD; 2]), "memory that nobody wrote is recognisable");
    assert_eq!(cu!(program, cuMemsetD16_v2(address + 8 => u64, 0x0102 => u16, 2 => usize)), 0);
    assert_eq!(program.download(address + 8, 4), Ok(vec![2, 1, 2, 1]));
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
    assert_eq!(program.violations(), [""; 0]);
}

#[test]
fn misuse_of_memory_is_an_error_and_a_violation() {
    let program = Program::start();
    let (first, second) = (program.allocate(100), program.allocate(100));
    assert_eq!(program.upload(first + 98, &[1, 2, 3]), 1);
    assert_eq!(cu!(program, cuMemFree_v2(first + 4 => u64)), 1);
    assert_eq!(cu!(program, cuMemFree_v2(first => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(first => u64)), 1);
    assert_eq!(program.download(first, 1), Err(1));
    assert_eq!(cu!(program, cuMemcpyHtoD_v2(second => u64, second => u64, 4 => usize)), 1);
    assert_eq!(cu!(program, cuMemFreeHost(second => u64)), 1);
    assert_eq!(cu!(program, cuMemFree_v2(0x1000 => u64)), 1);
    expect_test::expect![[r##"
        [
            "cuMemcpyHtoD (call n): 3 bytes at # pass the end of 100 bytes from cuMemAlloc (call n), by 1",
            "cuMemFree (call n): # lies 4 bytes into memory from cuMemAlloc (call n)",
            "cuMemFree (call n): # is not live: 100 bytes of device memory from cuMemAlloc (call n), freed by cuMemFree (call n)",
            "cuMemcpyDtoH (call n): # is not live: 100 bytes of device memory from cuMemAlloc (call n), freed by cuMemFree (call n)",
            "cuMemcpyHtoD (call n): # is given as host memory but is device memory from cuMemAlloc (call n)",
            "cuMemFreeHost (call n): # is not the start of pinned memory but lies in device memory from cuMemAlloc (call n)",
            "cuMemFree (call n): # was never allocated",
        ]
    "##]]
    .assert_debug_eq(&program.violations());
    assert_eq!(cu!(program, cuMemFree_v2(second => u64)), 0);
}

#[test]
fn memory_of_another_context_is_not_freed() {
    let program = Program::start();
    let address = program.allocate(8);
    let mut other = 0;
    assert_eq!(cu!(program, cuCtxCreate_v2(&raw mut other => *mut u64, 0 => u32, 1 => i32)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 1);
    assert_eq!(program.violations(), ["cuMemFree (call n): # belongs to the context # of device 0, and # is current"]);
    assert_eq!(cu!(program, cuCtxDestroy_v2(other => u64)), 0);
    assert_eq!(cu!(program, cuCtxSetCurrent(0 => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0, "but without a context it is");
    assert_eq!(cu!(program, cuCtxSetCurrent(program.context => u64)), 0);
}

#[test]
fn host_memory_is_touched_in_place_and_said_to_be_what_it_is() {
    let program = Program::start();
    let (mut pinned, mut managed, device) = (0_u64, 0_u64, program.allocate(8));
    assert_eq!(cu!(program, cuMemHostAlloc(&raw mut pinned => *mut u64, 8 => usize, 2 => u32)), 0);
    assert_eq!(cu!(program, cuMemAllocManaged(&raw mut managed => *mut u64, 8 => usize, 1 => u32)), 0);
    let mut ordinary = [9_u8; 8];
    let pageable = ordinary.as_mut_ptr().addr() as u64;

    let attributes = [2_u32, 8, 9, 11, 12];
    for (address, expected) in [
        (device + 3, [2, 0, 0, device, 8]),
        (pinned + 3, [1, 0, 0, pinned, 8]),
        (managed + 3, [2, 1, 0, managed, 8]),
        (pageable, [0, 0, u64::from(u32::MAX - 1), 0, 0]),
    ] {
        let mut values = [0_u64; 5];
        let places: Vec<*mut u64> = values.iter_mut().map(std::ptr::from_mut).collect();
        let code = cu!(program, cuPointerGetAttributes(
            5 => u32, attributes.as_ptr() => *const u32, places.as_ptr() => *const *mut u64, address => u64
        ));
        assert_eq!((code, values), (0, expected));
    }
    assert_eq!(cu!(program, cuMemHostRegister_v2(pageable => u64, 8 => usize, 0 => u32)), 0);
    assert_eq!(cu!(program, cuMemHostRegister_v2(pageable => u64, 4 => usize, 0 => u32)), 712);
    assert_eq!(cu!(program, cuMemcpy(managed => u64, pageable => u64, 8 => usize)), 0);
    let host: *const u8 = std::ptr::with_exposed_provenance(usize::try_from(managed).unwrap());
    // SAFETY: managed memory is ordinary memory here, and eight bytes of it are live.
    assert_eq!(unsafe { host.add(7).read() }, 9);
    assert_eq!(cu!(program, cuMemHostUnregister(pageable => u64)), 0);
    assert_eq!(cu!(program, cuMemFreeHost(pinned => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(managed => u64)), 0);
    assert_eq!(cu!(program, cuMemFree_v2(device => u64)), 0);
}

#[test]
fn rows_and_slices_are_copied_with_their_pitches() {
    let program = Program::start();
    let address = program.allocate(64);
    let host: Vec<u8> = (0..64).collect();
    // A box of 2 bytes, 2 rows and 2 slices from the middle of 4 × 4 × 4, to rows of 8 bytes and slices of 3 rows.
    let words: [u64; 25] = [
        1,
        1,
        1,
        0,
        1,
        host.as_ptr().addr() as u64,
        0,
        0,
        0,
        4,
        4, //
        0,
        0,
        0,
        0,
        2,
        0,
        address,
        0,
        0,
        8,
        3, //
        2,
        2,
        2,
    ];
    assert_eq!(cu!(program, cuMemsetD8_v2(address => u64, 0 => u8, 64 => usize)), 0);
    assert_eq!(cu!(program, cuMemcpy3D_v2(words.as_ptr() => *const u64)), 0);
    let mut expected = vec![0; 64];
    for (place, value) in [(0, 21), (1, 22), (8, 25), (9, 26), (24, 37), (25, 38), (32, 41), (33, 42)] {
        expected[place] = value;
    }
    assert_eq!(program.download(address, 64), Ok(expected));
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
}

#[test]
fn rows_are_copied_on_a_stream_and_do_not_leave_their_memory() {
    let program = Program::start();
    let address = program.allocate(20);
    assert_eq!(cu!(program, cuMemsetD8_v2(address => u64, 0 => u8, 20 => usize)), 0);
    let host: [u8; 6] = [1, 2, 3, 4, 5, 6];
    // Three rows of 2 bytes to rows of 8: offset, row, kind, host, device, array and pitch of either side, then the extent.
    let copy = |first: u64, width: u64| {
        let words: [u64; 16] = [0, 0, 1, host.as_ptr().addr() as u64, 0, 0, 2, first, 0, 2, 0, address, 0, 8, width, 3];
        cu!(program, cuMemcpy2DAsync_v2(words.as_ptr() => *const u64, 0 => u64))
    };
    assert_eq!([copy(2, 2), copy(3, 2), copy(0, 9)], [0, 1, 1]);
    let expected = [0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6];
    assert_eq!(program.download(address, 20), Ok(expected.to_vec()));
    assert_eq!(
        program.violations(),
        ["cuMemcpy2DAsync (call n): 18 bytes at # pass the end of 20 bytes from cuMemAlloc (call n), by 1"]
    );
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 0);
}

#[test]
fn pools_count_what_they_hold() {
    let program = Program::start();
    let stream = program.stream(1);
    let mut pool = 0_u64;
    assert_eq!(cu!(program, cuDeviceGetDefaultMemPool(&raw mut pool => *mut u64, 0 => i32)), 0);
    let attribute = |number: u32| {
        let mut value = 0_u64;
        let place = &raw mut value;
        assert_eq!(cu!(program, cuMemPoolGetAttribute(pool => u64, number => u32, place => *mut u64)), 0);
        value
    };
    let address = program.allocate_async(1000, stream);
    assert_eq!((attribute(5), attribute(7)), (1000, 1000));
    assert_eq!(cu!(program, cuMemFreeAsync(address => u64, stream => u64)), 0);
    assert_eq!((attribute(5), attribute(7), attribute(8)), (1000, 0, 1000));
    assert_eq!(cu!(program, cuStreamSynchronize(stream => u64)), 0);
    assert_eq!(attribute(5), 0);
    assert_eq!(cu!(program, cuMemFreeAsync(address => u64, stream => u64)), 1);
    assert_eq!(cu!(program, cuStreamDestroy_v2(stream => u64)), 0);
    assert_eq!(cu!(program, cuStreamDestroy_v2(stream => u64)), 400);
    assert_eq!(program.violations().len(), 2);
}
