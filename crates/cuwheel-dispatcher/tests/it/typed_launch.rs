//! Launches whose arguments Rust knows, against the stand-in driver: what is packed, what is refused, what is ordered.

use cuda::control::Stub;
use cuwheel_device_array::{Array, ArrayView, Classified, DType, Device, MemoryKind, Order, Stream};
use cuwheel_dispatcher::launch::{Image, Kernel, Launch, LaunchConfig, LaunchError, Module, Signature};
use expect_test::{Expect, expect};

const PTX: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 n, .param .f32 factor, .param .u64 x, .param .u64 out) { ret; }
";
const FIRST: Device = Device::new(0);

fn kernel() -> Kernel {
    let signature = Signature::parse(["int64 n", "float32 factor", "const float32* x", "float32* out"]).unwrap();
    Module::new(Image::new(PTX.as_bytes()).unwrap()).kernel("scale", Some(signature))
}

fn array(dtype: DType, device: Device, stream: &Stream) -> Array {
    Array::empty(&[16], dtype, MemoryKind::Device, device, stream, Order::C).unwrap()
}

fn launched(kernel: &Kernel, x: &ArrayView, out: &ArrayView) -> Result<(), LaunchError> {
    let launch = Launch::new(kernel)?.number(16_i64)?.number(0.5_f32)?.array(x)?.array(out)?;
    // SAFETY: the arrays are alive; no kernel is run.
    unsafe { launch.submit(&LaunchConfig::linear(2, 32)?.with_shared_bytes(64)) }.map(|mark| assert!(mark.is_none()))
}

#[track_caller]
fn refused<T>(result: Result<T, LaunchError>, expected: &Expect) {
    let error = result.map(|_| ()).unwrap_err();
    expected.assert_eq(&format!("{:?}: {error}", error.kind()));
}

#[test]
fn numbers_and_arrays_are_packed_and_go_on_the_stream_of_the_arrays() {
    let (stub, _alone) = Stub::alone();
    let stream = Stream::create(FIRST).unwrap();
    let (x, out) = (array(DType::Float32, FIRST, &stream), array(DType::Float32, FIRST, &stream));
    launched(&kernel(), &x, &out).unwrap();
    let report = stub.report();
    let launch = report["launches"].as_array().unwrap().last().unwrap();
    assert_eq!(launch["grid"], serde_json::json!([2, 1, 1]), "{launch}");
    assert_eq!(launch["shared_bytes"].as_u64().or(launch["shared"].as_u64()), Some(64), "{launch}");
    assert_eq!(launch["stream"].as_u64(), Some(stream.handle() as u64), "{launch}");
}

#[test]
fn arrays_on_two_streams_are_ordered_by_events() {
    let (stub, _alone) = Stub::alone();
    let (one, other) = (Stream::create(FIRST).unwrap(), Stream::create(FIRST).unwrap());
    let (x, out) = (array(DType::Float32, FIRST, &one), array(DType::Float32, FIRST, &other));
    let kernel = kernel();
    stub.reset();
    launched(&kernel, &x, &out).unwrap();
    let calls = &stub.report()["calls"];
    assert_eq!((&calls["cuEventRecord"], &calls["cuStreamWaitEvent"]), (&2.into(), &2.into()), "{calls}");
}

#[test]
fn what_does_not_fit_the_signature_is_refused_by_name() {
    let (_stub, _alone) = Stub::alone();
    let kernel = kernel();
    let x = array(DType::Float32, FIRST, &Stream::LEGACY);
    let doubles = array(DType::Float64, FIRST, &Stream::LEGACY);
    refused(
        launched(&kernel, &doubles, &x),
        &expect![[
            r#"Type: argument 2 (x) of kernel "scale": the array has elements of type float64, and the parameter is const float32*"#
        ]],
    );
    refused(
        launched(&kernel, &x, &x.clone().read_only()),
        &expect![[
            r#"Value: argument 3 (out) of kernel "scale": the array is read-only, and the kernel may write to it; if it does not, say so in the signature: "const float32*""#
        ]],
    );
    refused(
        Launch::new(&kernel).unwrap().number(16_i32),
        &expect![[
            r#"Type: argument 0 (n) of kernel "scale": a number of type int32 was given, and the parameter is int64"#
        ]],
    );
    refused(
        Launch::new(&kernel).unwrap().array(&x),
        &expect![[r#"Type: argument 0 (n) of kernel "scale": an array is no number, and the parameter is int64"#]],
    );
    let full = Launch::new(&kernel).unwrap().number(16_i64).unwrap().number(0.5_f32).unwrap().array(&x).unwrap();
    // SAFETY: nothing is launched.
    let launched = unsafe { full.submit(&LaunchConfig::linear(1, 1).unwrap()) };
    refused(launched, &expect![[r#"Type: kernel "scale" takes 4 arguments, and 3 are given"#]]);
}
