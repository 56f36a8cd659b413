//! Modules, libraries and launches.

use std::ffi::{CStr, c_void};

use serde_json::json;

use crate::support::{Program, cu};

const PTX: &CStr = c".version 8.0
.target sm_80
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .align 8 .b8 view[24]) { ret; }
.visible .entry nothing() { ret; }
.global .align 4 .u32 counter;
";

fn load(program: &Program) -> u64 {
    let mut module = 0_u64;
    assert_eq!(cu!(program, cuModuleLoadData(&raw mut module => *mut u64, PTX.as_ptr() => *const _)), 0);
    module
}

fn function(program: &Program, module: u64, name: &CStr) -> Result<u64, u32> {
    let mut function = 0_u64;
    match cu!(program, cuModuleGetFunction(&raw mut function => *mut u64, module => u64, name.as_ptr() => *const _)) {
        0 => Ok(function),
        code => Err(code),
    }
}

fn launch(program: &Program, function: u64, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, stream: u64) -> u32 {
    cu!(program, cuLaunchKernel(
        function => u64, grid[0] => u32, grid[1] => u32, grid[2] => u32, block[0] => u32, block[1] => u32,
        block[2] => u32, shared_bytes => u32, stream => u64, std::ptr::null() => *const c_void,
        std::ptr::null() => *const c_void
    ))
}

/// Launches `scale` with these values.
fn scale(program: &Program, function: u64, data: u64, view: [u64; 3], stream: u64) -> u32 {
    let factor = 1.5_f32;
    let values: [*const c_void; 3] = [(&raw const data).cast(), (&raw const factor).cast(), (&raw const view).cast()];
    cu!(program, cuLaunchKernel(
        function => u64, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32, 0 => u32, stream => u64,
        values.as_ptr() => *const *const c_void, std::ptr::null() => *const c_void
    ))
}

#[test]
fn a_launch_is_recorded_with_its_parameters() {
    let program = Program::start();
    let module = load(&program);
    let kernel = function(&program, module, c"scale").unwrap();
    assert_eq!(function(&program, module, c"other"), Err(500));
    assert_eq!(scale(&program, kernel, 7, [1, 2, 3], 0), 0);

    let block = [&7_u64.to_le_bytes()[..], &[0, 0, 0xc0, 0x3f, 0, 0, 0, 0], &[0; 24]].concat();
    let size = block.len();
    let extra: [*const c_void; 5] = [
        std::ptr::without_provenance(1),
        block.as_ptr().cast(),
        std::ptr::without_provenance(2),
        (&raw const size).cast(),
        std::ptr::null(),
    ];
    let attributes: [u32; 36] = std::array::from_fn(|word| match word {
        0 => 4,
        2 => 2,
        3 | 4 | 18 => 1,
        _ => 0,
    });
    let attribute_address = attributes.as_ptr().addr() as u64;
    let words = [4 | 1 << 32, 1 | 64 << 32, 1 | 1 << 32, 256, 2_u64, attribute_address, 2];
    assert_eq!(
        cu!(program, cuLaunchKernelEx(
            words.as_ptr() => *const u64, kernel => u64, std::ptr::null() => *const c_void,
            extra.as_ptr() => *const *const c_void
        )),
        0
    );
    let launches = program.stub.report()["launches"].clone();
    let view = ["0100000000000000", "0200000000000000", "0300000000000000"].concat();
    for (launch, parts) in launches.as_array().unwrap().iter().zip([
        json!([[1, 1, 1], [32, 1, 1], [1, 1, 1], 0, 0, ["0700000000000000", "0000c03f", view], []]),
        json!([[4, 1, 1], [64, 1, 1], [2, 1, 1], 256, 2, ["0700000000000000", "0000c03f", "00".repeat(24)], [1]]),
    ]) {
        let names = ["grid", "block", "cluster", "shared_bytes", "stream", "parameters", "attributes"];
        assert_eq!(json!(names.map(|name| &launch[name])), parts);
        assert_eq!((&launch["function"], &launch["context"]), (&json!("scale"), &json!(program.context)));
    }
    assert_eq!(cu!(program, cuModuleUnload(module => u64)), 0);
    assert_eq!(launch(&program, kernel, [1; 3], [1; 3], 0, 0), 400);
}

#[test]
fn a_configuration_beyond_the_limits_is_refused() {
    let program = Program::start();
    let module = load(&program);
    let kernel = function(&program, module, c"nothing").unwrap();
    for (grid, block, shared_bytes, code) in [
        ([1, 1, 1], [1024, 1, 1], 0, 0),
        ([0, 1, 1], [1, 1, 1], 0, 1),
        ([1, 65536, 1], [1, 1, 1], 0, 1),
        ([1, 1, 1], [1, 1, 65], 0, 1),
        ([1, 1, 1], [1024, 2, 1], 0, 1),
        ([1, 1, 1], [1, 1, 1], 49_153, 1),
    ] {
        assert_eq!(launch(&program, kernel, grid, block, shared_bytes, 0), code, "{grid:?} {block:?} {shared_bytes}");
    }
    assert_eq!(cu!(program, cuFuncSetAttribute(kernel => u64, 8 => u32, 232_449 => i32)), 1);
    assert_eq!(cu!(program, cuFuncSetAttribute(kernel => u64, 8 => u32, 232_448 => i32)), 0);
    assert_eq!(launch(&program, kernel, [1; 3], [1; 3], 232_448, 0), 0);
    let cooperative = |grid: u32| {
        cu!(program, cuLaunchCooperativeKernel(
            kernel => u64, grid => u32, 1 => u32, 1 => u32, 1024 => u32, 1 => u32, 1 => u32, 0 => u32, 0 => u64,
            std::ptr::null() => *const c_void
        ))
    };
    assert_eq!([cooperative(264), cooperative(265)], [0, 720]);
    assert_eq!(scale(&program, function(&program, module, c"scale").unwrap(), 0, [0; 3], 0xbad), 400);
    assert_eq!(cu!(program, cuModuleUnload(module => u64)), 0);
}

#[test]
fn parameters_that_point_to_what_is_gone_or_not_ready_are_found() {
    let program = Program::start();
    let module = load(&program);
    let kernel = function(&program, module, c"scale").unwrap();
    let (first, second) = (program.stream(1), program.stream(1));
    let address = program.allocate_async(8, first);
    assert_eq!(scale(&program, kernel, address, [0; 3], second), 0);
    assert_eq!(cu!(program, cuStreamSynchronize(first => u64)), 0);
    assert_eq!(cu!(program, cuStreamSynchronize(second => u64)), 0);
    assert_eq!(scale(&program, kernel, address, [0; 3], second), 0);
    assert_eq!(cu!(program, cuMemFreeAsync(address => u64, first => u64)), 0);
    assert_eq!(scale(&program, kernel, 0, [8, address + 4, 0], first), 0);
    let mut there = 0_u64;
    let mut context = 0_u64;
    assert_eq!(cu!(program, cuCtxCreate_v2(&raw mut context => *mut u64, 0 => u32, 1 => i32)), 0);
    assert_eq!(cu!(program, cuMemAlloc_v2(&raw mut there => *mut u64, 8 => usize)), 0);
    assert_eq!(cu!(program, cuCtxPopCurrent_v2(std::ptr::null_mut() => *mut u64)), 0);
    assert_eq!(scale(&program, kernel, there, [0; 3], first), 0);
    assert_eq!(cu!(program, cuCtxEnablePeerAccess(context => u64, 0 => u32)), 0);
    assert_eq!(scale(&program, kernel, there, [0; 3], first), 0);
    expect_test::expect![[r##"
        [
            "cuLaunchKernel (call n): reads # on stream # with nothing that orders it after cuMemAllocAsync (call n, stream #), which touched it (memory from cuMemAllocAsync (call n))",
            "cuMemFreeAsync (call n): ends # on stream # with nothing that orders it after cuLaunchKernel (call n, stream #), which touched it (memory from cuMemAllocAsync (call n))",
            "cuLaunchKernel (call n): parameter 2 of scale, at byte 8, is #, which is not live: 8 bytes of device memory from cuMemAllocAsync (call n), freed by cuMemFreeAsync (call n, stream #)",
            "cuLaunchKernel (call n): parameter 0 of scale is memory of device 1 (from cuMemAlloc (call n)), which device 0 has no access to",
        ]
    "##]]
    .assert_debug_eq(&program.violations());
    assert_eq!(cu!(program, cuCtxDestroy_v2(context => u64)), 0);
    for stream in [first, second] {
        assert_eq!(cu!(program, cuStreamDestroy_v2(stream => u64)), 0);
    }
    assert_eq!(cu!(program, cuModuleUnload(module => u64)), 0);
}

#[test]
fn a_library_is_used_in_any_context() {
    let program = Program::start();
    let (mut library, mut kernel, mut handle) = (0_u64, 0_u64, 0_u64);
    let none = std::ptr::null::<c_void>();
    assert_eq!(
        cu!(program, cuLibraryLoadData(
            &raw mut library => *mut u64, PTX.as_ptr() => *const _, none => *const _, none => *const _, 0 => u32,
            none => *const _, none => *const _, 0 => u32
        )),
        0
    );
    let name = c"nothing".as_ptr();
    assert_eq!(cu!(program, cuLibraryGetKernel(&raw mut kernel => *mut u64, library => u64, name => *const _)), 0);
    assert_eq!(cu!(program, cuKernelGetFunction(&raw mut handle => *mut u64, kernel => u64)), 0);
    assert_ne!(handle, kernel);
    for either in [kernel, handle] {
        assert_eq!(launch(&program, either, [1; 3], [1; 3], 0, 0), 0);
    }
    let (mut address, mut size) = (0_u64, 0_usize);
    assert_eq!(
        cu!(program, cuLibraryGetGlobal(
            &raw mut address => *mut u64, &raw mut size => *mut usize, library => u64, c"counter".as_ptr() => *const _
        )),
        0
    );
    assert_eq!((size, program.upload(address, &[1, 2, 3, 4]), program.upload(address, &[0; 5])), (4, 0, 1));
    assert_eq!(cu!(program, cuMemFree_v2(address => u64)), 1);
    assert_eq!(cu!(program, cuLibraryUnload(library => u64)), 0);
    assert_eq!(launch(&program, kernel, [1; 3], [1; 3], 0, 0), 400);
    assert_eq!(program.violations().len(), 3);
}

#[test]
fn a_wrong_image_is_refused_and_the_log_says_why() {
    let program = Program::start();
    let images: [(&[u8], u32, &str); 3] = [
        (b"hello\0", 200, "the image is neither a cubin nor a fat binary nor PTX"),
        (b".version 8.0\n.target sm_100\n\0", 209, "the PTX is for sm_100 or newer, and the device is sm_90"),
        (b".version 99.0\n.target sm_80\n\0", 222, "PTX 99.0 is newer than the driver, version 13010"),
    ];
    for (image, code, reason) in images {
        let mut log = [1_u8; 80];
        let (keys, mut values) = ([5_u32, 6], [log.as_mut_ptr().addr(), 80]);
        let mut module = 0_u64;
        let answer = cu!(program, cuModuleLoadDataEx(
            &raw mut module => *mut u64, image.as_ptr() => *const u8, 2 => u32, keys.as_ptr() => *const u32,
            values.as_mut_ptr() => *mut usize
        ));
        assert_eq!((answer, values[1]), (code, reason.len()));
        assert_eq!(&log[..=values[1]], [reason.as_bytes(), &[0]].concat());
    }
}
