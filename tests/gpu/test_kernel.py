"""Kernels on a real device: written in PTX by hand, launched with arrays and numbers, and compared with NumPy."""

import ctypes
import pickle
import threading

import cuwheel
import numpy as np
import pytest

PTX = """
.version 7.8
.target sm_80
.address_size 64

.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %out; .reg .b32 %i, %block, %size, %n; .reg .f32 %a, %u, %v; .reg .b64 %x, %y, %at;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %block, %size, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %out, %i, %n;
    @%out ret;
    ld.param.u64 %y, [y];
    ld.param.u64 %x, [x];
    ld.param.f32 %a, [a];
    mul.wide.u32 %at, %i, 4;
    add.u64 %x, %x, %at;
    add.u64 %y, %y, %at;
    ld.global.f32 %u, [%x];
    ld.global.f32 %v, [%y];
    fma.rn.f32 %v, %a, %u, %v;
    st.global.f32 [%y], %v;
    ret;
}

.extern .shared .align 4 .b8 partial[];

// Adds the sum of a block's elements to total; as many bytes of shared memory as threads times 4.
.visible .entry reduce(.param .u64 total, .param .u64 x, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %i, %t, %block, %size, %n, %own, %other, %left; .reg .f32 %u, %v; .reg .b64 %x, %at, %sum;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %block, %size, %t;
    ld.param.u32 %n, [n];
    ld.param.u64 %x, [x];
    mov.f32 %u, 0f00000000;
    setp.ge.u32 %p, %i, %n;
    @%p bra stored;
    mul.wide.u32 %at, %i, 4;
    add.u64 %x, %x, %at;
    ld.global.f32 %u, [%x];
stored:
    mov.u32 %own, partial;
    shl.b32 %other, %t, 2;
    add.u32 %own, %own, %other;
    st.shared.f32 [%own], %u;
    mov.u32 %left, %size;
again:
    bar.sync 0;
    shr.u32 %left, %left, 1;
    setp.eq.u32 %p, %left, 0;
    @%p bra done;
    setp.ge.u32 %p, %t, %left;
    @%p bra again;
    shl.b32 %other, %left, 2;
    add.u32 %other, %own, %other;
    ld.shared.f32 %u, [%own];
    ld.shared.f32 %v, [%other];
    add.f32 %u, %u, %v;
    st.shared.f32 [%own], %u;
    bra again;
done:
    setp.ne.u32 %p, %t, 0;
    @%p ret;
    ld.shared.f32 %u, [%own];
    ld.param.u64 %sum, [total];
    red.global.add.f32 [%sum], %u;
    ret;
}

// One thread for each element of a matrix that is given with shape and strides.
.visible .entry add_one(.param .align 8 .b8 view[40])
{
    .reg .b32 %i, %j; .reg .f32 %u; .reg .b64 %data, %row, %column, %at;
    mov.u32 %i, %ctaid.x;
    mov.u32 %j, %tid.x;
    ld.param.u64 %data, [view];
    ld.param.u64 %row, [view+24];
    ld.param.u64 %column, [view+32];
    cvt.u64.u32 %at, %i;
    mul.lo.s64 %row, %row, %at;
    cvt.u64.u32 %at, %j;
    mad.lo.s64 %row, %column, %at, %row;
    shl.b64 %row, %row, 2;
    add.s64 %data, %data, %row;
    ld.global.f32 %u, [%data];
    add.f32 %u, %u, 0f3f800000;
    st.global.f32 [%data], %u;
    ret;
}

// Writes each number at its place.
.visible .entry numbers(
    .param .u64 out, .param .u8 a, .param .f64 b, .param .b16 c, .param .u64 d, .param .align 16 .b8 e[16])
{
    .reg .b16 %h; .reg .b32 %w; .reg .b64 %l, %out;
    ld.param.u64 %out, [out];
    ld.param.u8 %h, [a];
    st.global.u8 [%out], %h;
    ld.param.b64 %l, [b];
    st.global.b64 [%out+8], %l;
    ld.param.b16 %h, [c];
    st.global.b16 [%out+16], %h;
    ld.param.b64 %l, [d];
    st.global.b64 [%out+24], %l;
    ld.param.b64 %l, [e];
    st.global.b64 [%out+32], %l;
    ld.param.b64 %l, [e+8];
    st.global.b64 [%out+40], %l;
    ret;
}
"""
COUNT = 100_003


@pytest.fixture(scope="module")
def module():
    return cuwheel.Module.from_bytes(PTX)


@pytest.fixture
def x():
    return np.random.default_rng(1).random(COUNT, dtype="float32")


def test_the_driver_tells_kernels_and_layouts(module):
    assert module.kernels == ("add_one", "numbers", "reduce", "saxpy")
    assert module.kernel("saxpy").layout == ((0, 8), (8, 8), (16, 4), (20, 4))
    assert module.kernel("numbers").layout == ((0, 8), (8, 1), (16, 8), (24, 2), (32, 8), (48, 16))
    attributes = module.kernel("saxpy").attributes()
    assert attributes["max_threads_per_block"] == 1024
    assert attributes["registers"] > 0


@pytest.mark.parametrize("signature", [None, ("float32* y", "const float32* x", "float32 a", "uint32 n")])
def test_saxpy(module, x, signature):
    device_x, device_y = cuwheel.asarray(x), cuwheel.asarray(np.ones_like(x))
    kernel = pickle.loads(pickle.dumps(module.kernel("saxpy", signature)))
    kernel[(COUNT + 255) // 256, 256](device_y, device_x, 2.5, COUNT)
    np.testing.assert_allclose(device_y.copy_to_host(), 1 + 2.5 * x, rtol=1e-6)


def test_a_reduction_with_shared_memory(module, x):
    total = cuwheel.zeros(1, "float32")
    kernel = module.kernel("reduce", ("float32*", "const float32*", "uint32"))
    kernel[(COUNT + 511) // 512, 512, None, 4 * 512](total, cuwheel.asarray(x), COUNT)
    assert total.copy_to_host()[0] == pytest.approx(x.sum(dtype="float64"), rel=1e-4)
    # More shared memory than usual is allowed for.
    total = cuwheel.zeros(1, "float32")
    kernel[(COUNT + 511) // 512, 512, None, 100_000](total, cuwheel.asarray(x), COUNT)
    assert total.copy_to_host()[0] == pytest.approx(x.sum(dtype="float64"), rel=1e-4)


def test_a_view_with_shape_and_strides(module):
    matrix = cuwheel.zeros((8, 10), "float32")
    part = matrix[1::2, 8:2:-3]
    module.kernel("add_one", ["view[float32, 2]"])[part.shape[0], part.shape[1]](part)
    expected = np.zeros((8, 10), "float32")
    expected[1::2, 8:2:-3] = 1
    assert (matrix.copy_to_host() == expected).all()


def test_numbers_arrive_as_they_are(module):
    kinds = ("uint8*", "uint8", "float64", "float16", "int64", "complex128")
    out = cuwheel.zeros(48, "uint8")
    module.kernel("numbers", kinds)[1, 1](out, 200, 0.1, -1.5, -(2**62) - 1, 1 + 2j)
    bytes_ = out.copy_to_host()
    assert bytes_[0] == 200
    assert bytes_[8:16].view("float64") == 0.1
    assert bytes_[16:18].view("float16") == -1.5
    assert bytes_[24:32].view("int64") == -(2**62) - 1
    assert bytes_[32:].view("complex128") == 1 + 2j


def test_streams_are_ordered_by_themselves(module, x):
    first, second = cuwheel.Stream(), cuwheel.Stream()
    kernel = module.kernel("saxpy")
    device_x, device_y = cuwheel.asarray(x, stream=first), cuwheel.zeros(COUNT, "float32", stream=second)
    for stream in (None, cuwheel.Stream(), first):
        for _ in range(20):
            kernel[(COUNT + 255) // 256, 256, stream](device_y, device_x, 1.0, COUNT)
        if stream is not None:
            second.wait(stream)
    np.testing.assert_allclose(device_y.copy_to_host(), 60 * x, rtol=1e-4)


def test_memory_that_is_dropped_after_the_launch(module, x):
    kernel, named = module.kernel("saxpy"), cuwheel.Stream()
    device_y = cuwheel.zeros(COUNT, "float32")
    named.wait(device_y.stream)
    for _ in range(50):
        kernel[(COUNT + 255) // 256, 256, named](device_y, cuwheel.asarray(x), 1.0, COUNT)
    named.synchronize()
    np.testing.assert_allclose(device_y.copy_to_host(), 50 * x, rtol=1e-4)


def test_a_launch_in_a_graph(module, x):
    driver = ctypes.CDLL("libcuda.so.1")
    stream = cuwheel.Stream()
    device_x, device_y = cuwheel.asarray(x, stream=stream), cuwheel.zeros(COUNT, "float32", stream=stream)
    stream.synchronize()
    # The image is loaded during the capture.
    kernel = cuwheel.Module.from_bytes(PTX).kernel("saxpy")
    handle, graph, instance = ctypes.c_void_p(stream.handle), ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuStreamBeginCapture_v2(handle, 0) == 0
    with cuwheel.use_stream(stream):
        for _ in range(3):
            kernel[(COUNT + 255) // 256, 256](device_y, device_x, 1.0, COUNT)
    assert driver.cuStreamEndCapture(handle, ctypes.byref(graph)) == 0
    assert (device_y.copy_to_host() == 0).all()
    assert driver.cuGraphInstantiateWithFlags(ctypes.byref(instance), graph, ctypes.c_uint64(0)) == 0
    for _ in range(2):
        assert driver.cuGraphLaunch(instance, handle) == 0
    np.testing.assert_allclose(device_y.copy_to_host(), 6 * x, rtol=1e-5)
    assert driver.cuGraphExecDestroy(instance) == driver.cuGraphDestroy(graph) == 0


def test_a_launch_with_arrays_of_cupy_is_on_the_stream_that_cupy_works_on(module, x, cupy):
    kernel = module.kernel("saxpy")
    device_x, device_y = cupy.asarray(x), cupy.zeros(COUNT, "float32")
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(20):
            # Each addition is behind the launch before it, and the launch behind the addition.
            device_y += 1
            kernel[(COUNT + 255) // 256, 256](device_y, device_x, 1.0, COUNT)
    stream.synchronize()
    np.testing.assert_allclose(cupy.asnumpy(device_y), 20 + 20 * x, rtol=1e-4)


def test_a_launch_with_arrays_of_cupy_in_a_graph(module, x, cupy):
    kernel = module.kernel("saxpy")
    device_x, device_y = cupy.asarray(x), cupy.zeros(COUNT, "float32")
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        kernel[(COUNT + 255) // 256, 256](device_y, device_x, 1.0, COUNT)
        graph = stream.end_capture()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(cupy.asnumpy(device_y), 3 * x, rtol=1e-5)


def test_cooperative_launches_and_clusters(module, x):
    kernel = module.kernel("saxpy")
    device_x, device_y = cuwheel.asarray(x), cuwheel.zeros(COUNT, "float32")
    kernel.launch((device_y, device_x, 1.0, 1024), grid=4, block=256, cooperative=True)
    assert (device_y.copy_to_host()[:1024] == x[:1024]).all()
    with pytest.raises(cuwheel.CudaError, match="a cooperative grid has to fit on the device at once") as raised:
        kernel.launch((device_y, device_x, 1.0, 1024), grid=10**6, block=1024, cooperative=True)
    assert raised.value.name == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
    if cuwheel.Device(0).compute_capability >= (9, 0):
        kernel.launch((device_y, device_x, 1.0, 1024), grid=4, block=256, cluster=2)
        np.testing.assert_allclose(device_y.copy_to_host()[:1024], 2 * x[:1024], rtol=1e-6)
    # The device is as usable as before.
    kernel[4, 256](device_y, device_x, 0.0, 1024)


def test_faults_are_explained(module, x):
    with pytest.raises(cuwheel.CudaError, match=r'there is no kernel "axpy" in the PTX: .*the image has saxpy'):
        module.kernel("axpy")[1, 1]()
    newer = cuwheel.Module.from_bytes(PTX.replace("sm_80", "sm_999").replace("7.8", "99.0"))
    with pytest.raises(cuwheel.CudaError, match=r"the PTX was not loaded: .*the image has compute_999 \(PTX\)"):
        newer.kernel("saxpy")[1, 1]()
    broken = cuwheel.Module.from_bytes(PTX.replace("mad.lo.u32", "mad.low.u32"))
    with pytest.raises(cuwheel.CudaError, match=r"the PTX was not loaded: .*the driver says: .*line") as raised:
        broken.kernel("saxpy")[1, 1]()
    assert raised.value.name == "CUDA_ERROR_INVALID_PTX"
    with pytest.raises(ValueError, match="MAX_BLOCK_DIM_X"):
        module.kernel("saxpy")[1, 4096](cuwheel.asarray(x), cuwheel.asarray(x), 1.0, 1)


def test_threads_launch_the_same_kernel(module, x):
    kernel = module.kernel("saxpy")[(COUNT + 255) // 256, 256]
    device_x = cuwheel.asarray(x)
    results = [cuwheel.zeros(COUNT, "float32") for _ in range(4)]

    def work(device_y):
        for _ in range(100):
            kernel(device_y, device_x, 1.0, COUNT)

    threads = [threading.Thread(target=work, args=(result,)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_allclose(result.copy_to_host(), 100 * x, rtol=1e-4)
