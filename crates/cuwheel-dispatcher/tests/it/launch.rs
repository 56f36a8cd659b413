//! Kernels and launches against the stand-in driver: what is asked of it, what is packed, and that a hit allocates nothing.

use std::ffi::{CStr, CString, c_char, c_void};

use cuda::control::Stub;
use cuwheel_device_array::{Array, Classified, CudaError, DType, Device, Driver, MemoryKind, Order, Stream};
use cuwheel_dispatcher::launch::{
    Arguments, Code, Extent, Image, Kernel, LaunchAttributes, LaunchConfig, LoadedKernel, MixedDevices, Module,
    ParameterType, Placement, Signature, current_context,
};
use expect_test::expect;

use crate::counter;

const PTX: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry three(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
.visible .entry mixed(.param .u8 a, .param .f64 b, .param .u16 c) { ret; }
";
const FIRST: Device = Device::new(0);
const SECOND: Device = Device::new(1);

fn module() -> Module {
    Module::new(Image::new(PTX.as_bytes()).unwrap())
}

fn array(device: Device) -> Array {
    Array::empty(&[16], DType::Float32, MemoryKind::Device, device, &Stream::LEGACY, Order::C).unwrap()
}

fn config(grid: u32, block: u32) -> LaunchConfig {
    let extent = |what, size| Extent::new(what, &[size]).unwrap();
    let (grid, block) = (extent("grid", grid), extent("block", block));
    LaunchConfig { grid, block, shared_bytes: 0, cluster: None, cooperative: false, attributes: LaunchAttributes::NONE }
}

/// What a binding does for each call.
fn launch(kernel: &Kernel, arrays: &[&Array], config: &LaunchConfig) {
    let signature = kernel.signature().unwrap();
    let mut arguments = Arguments::empty();
    arguments.clear_for(signature);
    let mut placement = Placement::new(None);
    for (parameter, array) in signature.parameters().iter().zip(arrays) {
        arguments.set(parameter, &array.pointer().to_ne_bytes());
        placement.add(&***array, array.stream()).unwrap();
    }
    let device = placement.device().unwrap();
    let stream = placement.stream(device);
    placement.order_before(device, &stream).unwrap();
    // SAFETY: the arrays are alive; no kernel is run.
    unsafe { kernel.launch(&arguments, config, device, &stream) }.unwrap();
    placement.order_behind(device, &stream).unwrap();
}

#[test]
fn a_hit_allocates_nothing_and_asks_the_driver_for_nothing_else() {
    let (stub, _alone) = Stub::alone();
    let kernel = module().kernel("three", Some(Signature::parse(["float32*"; 3]).unwrap()));
    let arrays = [array(FIRST), array(FIRST), array(FIRST)];
    let arrays: [&Array; 3] = arrays.each_ref();
    let config = config(1, 32);
    launch(&kernel, &arrays, &config);
    stub.reset();
    let allocations = counter::allocations_during(|| (0..100).for_each(|_| launch(&kernel, &arrays, &config)));
    assert_eq!(allocations, 0);
    let report = stub.report();
    assert_eq!(report["calls"].as_object().unwrap().len(), 2, "{}", report["calls"]);
    assert_eq!((&report["calls"]["cuLaunchKernelEx"], &report["calls"]["cuCtxGetCurrent"]), (&100.into(), &100.into()));
}

#[test]
fn a_kernel_is_ready_where_it_was_launched_before() {
    let (stub, _alone) = Stub::alone();
    let kernel = module().kernel("three", Some(Signature::parse(["float32*"; 3]).unwrap()));
    let arrays = [array(FIRST), array(FIRST), array(FIRST)];
    let config = config(1, 32);
    assert!(kernel.ready().is_none());
    launch(&kernel, &arrays.each_ref(), &config);
    let block: Vec<u8> = arrays.iter().flat_map(|array| array.pointer().to_ne_bytes()).collect();
    stub.reset();
    let allocations = counter::allocations_during(|| {
        for _ in 0..100 {
            let ready = kernel.ready().unwrap();
            assert!((ready.device(), ready.signature().size_bytes()) == (FIRST, block.len()) && ready.fits(&config));
            // SAFETY: the arrays are alive; no kernel is run.
            unsafe { ready.launch(&block, &config, 0) }.unwrap();
        }
    });
    assert_eq!(allocations, 0);
    let report = stub.report();
    assert_eq!(report["calls"].as_object().unwrap().len(), 2, "{}", report["calls"]);
    assert_eq!((&report["calls"]["cuLaunchKernelEx"], &report["calls"]["cuCtxGetCurrent"]), (&100.into(), &100.into()));
    // Its context is not current, and the kernel not known there.
    let _second = SECOND.enter().unwrap();
    assert!(kernel.ready().is_none());
    launch(&kernel, &[&array(SECOND), &array(SECOND), &array(SECOND)], &config);
    assert_eq!(kernel.ready().map(|ready| ready.device()), Some(SECOND));
}

#[test]
fn a_configuration_fits_a_ready_kernel_if_there_is_nothing_to_be_told_of_it() {
    let (_stub, _alone) = Stub::alone();
    let kernel = module().kernel("mixed", Some(Signature::parse(["uint8", "float64", "uint16"]).unwrap()));
    let _limits = kernel.limits(FIRST).unwrap();
    let _first = FIRST.enter().unwrap();
    let ready = kernel.ready().unwrap();
    let offsets: Vec<u32> = ready.signature().parameters().iter().map(|parameter| parameter.offset_bytes).collect();
    assert_eq!((ready.signature().size_bytes(), offsets), (18, vec![0, 8, 16]));
    let plain = config(1, 32);
    assert!(ready.fits(&plain) && ready.fits(&plain.with_shared_bytes(48 * 1024)));
    for other in [
        config(1, 2048),
        plain.with_shared_bytes(48 * 1024 + 1),
        LaunchConfig { cooperative: true, ..plain },
        LaunchConfig { cluster: Some(Extent::ONE), ..plain },
    ] {
        assert!(!ready.fits(&other), "{other}");
    }
    // Structures are for who packs all kinds of parameters.
    let views = module().kernel("three", Some(Signature::parse(["view[float32, 0]"; 3]).unwrap()));
    assert!(views.limits(FIRST).is_ok() && views.ready().is_none());
}

/// More parameters than are packed in place: each thread keeps the room for them.
#[test]
fn a_hit_with_many_parameters_allocates_nothing_either() {
    let (_stub, _alone) = Stub::alone();
    let parameters: Vec<String> = (0..182).map(|index| format!(".param .u64 p{index}")).collect();
    let head = ".version 7.8\n.target sm_80\n.address_size 64\n";
    let text = format!("{head}.visible .entry many({}) {{ ret; }}\n", parameters.join(", "));
    let kernel = Module::new(Image::new(text.as_bytes()).unwrap())
        .kernel("many", Some(Signature::parse(vec!["float32*"; 182]).unwrap()));
    let array = array(FIRST);
    let (arrays, config) = (vec![&array; 182], config(1, 32));
    launch(&kernel, &arrays, &config);
    let allocations = counter::allocations_during(|| (0..10).for_each(|_| launch(&kernel, &arrays, &config)));
    assert_eq!(allocations, 0);
}

/// Loads an image as another library would, for good; returns the handle of a kernel.
fn load(name: &CStr) -> usize {
    type LoadData = unsafe extern "C" fn(
        *mut usize,
        *const c_void,
        *mut u32,
        *mut *mut c_void,
        u32,
        *mut u32,
        *mut *mut c_void,
        u32,
    ) -> u32;
    type GetKernel = unsafe extern "C" fn(*mut usize, usize, *const c_char) -> u32;
    let driver = Driver::get().unwrap();
    let symbol = |name| driver.symbol(name, "a test").unwrap().as_ptr();
    let (mut library, mut kernel) = (0, 0);
    let (image, none) = (CString::new(PTX).unwrap(), std::ptr::null_mut::<*mut c_void>());
    // SAFETY: the types are those in `cuda.h`, with handles as integers; the pointers are to local variables.
    unsafe {
        let load_data: LoadData = std::mem::transmute(symbol("cuLibraryLoadData"));
        let get_kernel: GetKernel = std::mem::transmute(symbol("cuLibraryGetKernel"));
        let code = image.as_ptr().cast();
        assert_eq!(load_data(&raw mut library, code, none.cast(), none, 0, none.cast(), none, 0), 0);
        assert_eq!(get_kernel(&raw mut kernel, library, name.as_ptr()), 0);
    }
    kernel
}

/// The context that is current.
fn current_handle() -> usize {
    type GetCurrent = unsafe extern "C" fn(*mut usize) -> u32;
    let mut context = 0;
    let symbol = Driver::get().unwrap().symbol("cuCtxGetCurrent", "a test").unwrap().as_ptr();
    // SAFETY: the type is that in `cuda.h`, with the handle as an integer; the pointer is to a local variable.
    assert_eq!(unsafe { std::mem::transmute::<*mut c_void, GetCurrent>(symbol)(&raw mut context) }, 0);
    context
}

#[test]
fn a_kernel_that_another_library_has_loaded_belongs_to_a_context() {
    let (stub, _alone) = Stub::alone();
    let (kernel, array) = (load(c"three"), array(FIRST));
    let signature = Signature::parse(["uint64"; 3]).unwrap();
    let guard = FIRST.enter().unwrap();
    let context = current_handle();
    // SAFETY: the kernel stays loaded.
    let (loaded, placed) = unsafe { LoadedKernel::find(kernel, context, "three", &signature) }.unwrap();
    assert_eq!((placed, loaded.context()), (signature.clone(), current_context().unwrap()));
    let mut arguments = Arguments::empty();
    arguments.clear_for(&signature);
    for parameter in signature.parameters() {
        arguments.set(parameter, &array.pointer().to_ne_bytes());
    }
    stub.reset();
    // SAFETY: the context is current, and the array is alive.
    unsafe { loaded.launch(&arguments, &config(2, 64), 0) }.unwrap();
    assert_eq!(stub.report()["launches"][0]["grid"], serde_json::json!([2, 1, 1]));
    // SAFETY: as above.
    let refused = unsafe { LoadedKernel::find(kernel, context, "three", &Signature::parse(["uint64"; 2]).unwrap()) };
    expect![[r#"the signature of kernel "three" has 2 parameters, and the kernel has 3 (bytes: 8, 8, 8)"#]]
        .assert_eq(&refused.unwrap_err().to_string());
    drop(guard);
    let _guard = SECOND.enter().unwrap();
    assert_ne!(loaded.context(), current_context().unwrap());
    // SAFETY: as above.
    let elsewhere = unsafe { LoadedKernel::find(kernel, context, "three", &signature) };
    assert_eq!(elsewhere.unwrap_err().cuda_error().map(|error| error.code), Some(201));
}

#[test]
fn parameters_lie_where_the_kernel_has_them() {
    let (stub, _alone) = Stub::alone();
    for signature in [None, Some(Signature::parse(["uint8", "float64", "int16"]).unwrap())] {
        let kernel = module().kernel("mixed", signature);
        let signature = kernel.signature().unwrap();
        let offsets: Vec<usize> = signature.parameters().iter().map(|parameter| parameter.offset_bytes).collect();
        assert_eq!((offsets, signature.size_bytes()), (vec![0, 8, 16], 18));
        let mut arguments = Arguments::empty();
        arguments.clear_for(signature);
        for (parameter, bytes) in signature.parameters().iter().zip([&[255_u8][..], &[1; 8], &[2; 2]]) {
            arguments.set(parameter, bytes);
        }
        // SAFETY: there are no addresses among the arguments.
        unsafe { kernel.launch(&arguments, &config(2, 3), FIRST, &Stream::LEGACY) }.unwrap();
        let report = stub.report();
        let launch = report["launches"].as_array().unwrap().last().unwrap();
        assert_eq!(launch["parameters"], serde_json::json!(["ff", "0101010101010101", "0202"]));
        assert_eq!((&launch["grid"], &launch["block"]), (&serde_json::json!([2, 1, 1]), &serde_json::json!([3, 1, 1])));
    }
}

#[test]
fn an_older_driver_needs_a_signature() {
    // The functions were looked up by another test perhaps, so that the driver says it at the call.
    let (stub, _alone) = Stub::alone();
    stub.configure("missing=cuKernelGetParamInfo").unwrap();
    let without = module().kernel("mixed", None);
    let error = without.signature().unwrap_err();
    assert_eq!(error.cuda_error().map(|error: &CudaError| error.code), Some(500));
    let with = module().kernel("mixed", Some(Signature::parse(["uint8", "float64", "int16"]).unwrap()));
    assert_eq!(with.signature().unwrap().size_bytes(), 18);
    stub.reset();
}

#[test]
fn arrays_of_two_devices_do_not_go_together() {
    let (_stub, _alone) = Stub::alone();
    let mut placement = Placement::new(None);
    let (first, second) = (array(FIRST), array(SECOND));
    placement.add(&*first, first.stream()).unwrap();
    assert_eq!(placement.add(&*second, second.stream()), Err(MixedDevices));
}

#[test]
fn a_module_is_unloaded_after_the_last_kernel() {
    let (stub, _alone) = Stub::alone();
    let module = module();
    assert_eq!(module.kernel_names().unwrap(), ["mixed", "three"]);
    let kernel = module.kernel("three", None);
    kernel.signature().unwrap();
    drop(module);
    assert_eq!(stub.report()["calls"]["cuLibraryUnload"], serde_json::Value::Null);
    drop(kernel);
    assert_eq!(stub.report()["calls"]["cuLibraryUnload"], 1);
}

#[test]
fn types_are_laid_out_as_a_compiler_does() {
    let layout = |texts: &[&str]| {
        let signature = Signature::parse(texts.iter().copied()).unwrap();
        let place = |parameter: &cuwheel_dispatcher::launch::Parameter| {
            format!("{}@{}+{}", parameter.kind, parameter.offset_bytes, parameter.kind.size_bytes())
        };
        format!(
            "{} = {}",
            signature.parameters().iter().map(place).collect::<Vec<_>>().join(", "),
            signature.size_bytes()
        )
    };
    expect!["int8@0+1, complex128@16+16, const float32*@32+8, view[int8, 3]@40+56, bool@96+1, float16@98+2 = 100"]
        .assert_eq(&layout(&["int8", "complex128 z", "const float32 *p", "view[int8,3]", "bool", "float16 h"]));
    expect![" = 0"].assert_eq(&layout(&[]));
    for kind in ["float32*", "const void*", "view[const float64, 2]", "uint16"] {
        assert_eq!(ParameterType::parse(kind).unwrap().to_string(), kind);
    }
}

#[test]
fn comments_are_no_directives() {
    let image =
        Image::new(b"// .target sm_50\n/* .version 1 */ .version 8.1\n.target sm_75, texmode_unified\n").unwrap();
    assert_eq!(image.codes(), [Code::Ptx("75".to_owned())]);
    Image::new(b"// .version 8.1\n").unwrap_err();
}
