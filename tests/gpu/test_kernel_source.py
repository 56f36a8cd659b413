"""CUDA C++ compiled by NVRTC and run on a real device: sources, templates, dispatchers, and attributes of launches."""

import threading

import cuwheel
import numpy as np
import pytest

SOURCE = """
#include <cuwheel/array_view.cuh>

template <typename T>
__global__ void saxpy(T *y, const T *x, T a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

// One thread for each element; with C the strides are not needed.
template <typename T, int N, bool C>
__global__ void scale(cuwheel::array_view<T, N> out, T factor) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= out.size()) return;
    if constexpr (C) {
        out.data[i] *= factor;
    } else {
        long long offset = 0;
        for (int d = N - 1; d >= 0; --d) {
            offset += i % out.shape[d] * out.strides[d];
            i /= out.shape[d];
        }
        out.data[offset] *= factor;
    }
}

__constant__ int unused[4];

extern "C" __global__ void count(int *out) { atomicAdd(out, 1); }
"""
SAXPY = ("T* y", "const T* x", "T a", "int32 n")
COUNT = 100_003


@pytest.fixture(autouse=True)
def compiler(tmp_path, monkeypatch):
    """NVRTC, with an empty cache; without it there is nothing to test."""
    monkeypatch.setenv("CUWHEEL_CACHE_DIR", str(tmp_path))
    try:
        cuwheel.Module.from_source("")
    except cuwheel.CompileError as error:
        pytest.skip(str(error))


def test_a_source_is_compiled_for_the_device_and_run():
    module = cuwheel.Module.from_source(SOURCE, names=["saxpy<float>"])
    major, minor = cuwheel.Device(0).compute_capability
    assert (module.kind, module.architectures) == ("cubin", (f"sm_{major}{minor}",))
    x = np.random.default_rng(1).random(COUNT, dtype="float32")
    device_x, device_y = cuwheel.asarray(x), cuwheel.asarray(np.ones_like(x))
    module.kernel("saxpy<float>")[(COUNT + 255) // 256, 256](device_y, device_x, 2.5, COUNT)
    np.testing.assert_allclose(device_y.copy_to_host(), 1 + 2.5 * x, rtol=1e-6)
    assert module.kernel("saxpy<float>").attributes()["registers"] > 0
    # What was kept is the same, and runs.
    assert cuwheel.Module.from_source(SOURCE, names=["saxpy<float>"]) == module
    total = cuwheel.zeros(1, "int32")
    cuwheel.Module.from_source(SOURCE).kernel("count")[3, 5](total)
    assert total.copy_to_host()[0] == 15


def test_ptx_is_compiled_by_the_driver():
    module = cuwheel.Module.from_source(SOURCE, architecture="compute_80")
    total = cuwheel.zeros(1, "int32")
    try:
        module.kernel("count")[3, 5](total)
    except cuwheel.CudaError as error:
        if error.name != "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
            raise
        pytest.skip("NVRTC is newer than the driver, which does not know its PTX")
    assert total.copy_to_host()[0] == 15


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_a_dispatcher_has_an_overload_for_each_type(dtype):
    dispatcher = cuwheel.Dispatcher(SOURCE, "saxpy<T>", SAXPY)
    x = np.arange(COUNT).astype(dtype)
    device_x, device_y = cuwheel.asarray(x), cuwheel.zeros(COUNT, dtype)
    for _ in range(3):
        dispatcher[(COUNT + 255) // 256, 256](device_y, device_x, 2, COUNT)
    np.testing.assert_array_equal(device_y.copy_to_host(), x * np.array(6, dtype))
    assert len(dispatcher.overloads) == 1


def test_shape_and_order_decide(dtype="float32"):
    dispatcher = cuwheel.Dispatcher(SOURCE, "scale<T, N, C>", ("view[T, N, C] out", "T factor"))
    host = np.arange(8 * 9 * 10, dtype=dtype).reshape(8, 9, 10)
    array = cuwheel.asarray(host)
    views = [array, array[1::2, :, ::-1], array[3], array[:, 2, 1], array[3, 4, 5]]
    expected = host.copy()
    for view, part in zip(views, [np.s_[:], np.s_[1::2, :, ::-1], np.s_[3], np.s_[:, 2, 1], np.s_[3, 4, 5]], strict=True):
        dispatcher[3, 256](view, 3)
        expected[part] *= 3
    np.testing.assert_array_equal(array.copy_to_host(), expected)
    names = [kernel.name for _, kernel in dispatcher.overloads]
    assert names == ["scale<float, 3, true>", "scale<float, 3, false>", "scale<float, 2, true>", "scale<float, 1, false>", "scale<float, 0, true>"]  # fmt: skip


def test_tensors_of_torch_are_dispatched(torch):
    dispatcher = cuwheel.Dispatcher("#include <cuda_fp16.h>\n" + SOURCE, "saxpy<T>", SAXPY)
    for dtype in (torch.float32, torch.float64, torch.int64):
        x = torch.arange(COUNT, device="cuda").to(dtype)
        y = torch.ones_like(x)
        dispatcher[(COUNT + 255) // 256, 256](y, x, 2, COUNT)
        assert torch.equal(y, 1 + 2 * x)
    assert [kernel.name for _, kernel in dispatcher.overloads] == ["saxpy<float>", "saxpy<double>", "saxpy<long long>"]


def test_a_function_writes_the_source():
    def make(y, x):
        to, of = ({"int32": "int", "float32": "float"}[str(kind.dtype)] for kind in (y, x))
        return cuwheel.Module.from_source(f'extern "C" __global__ void copy({to} *y, const {of} *x) {{ *y = *x; }}')

    dispatcher = cuwheel.Dispatcher(make)
    y, x = cuwheel.zeros(1, "int32"), cuwheel.asarray(np.array([7.5], "float32"))
    dispatcher[1, 1](y, x)
    assert y.copy_to_host()[0] == 7


def test_threads_compile_once_and_all_launch():
    dispatcher = cuwheel.Dispatcher(SOURCE, "saxpy<T>", SAXPY)
    x = cuwheel.asarray(np.ones(COUNT, "float32"))
    results = [cuwheel.zeros(COUNT, "float32") for _ in range(4)]

    def work(y):
        for _ in range(50):
            dispatcher[(COUNT + 255) // 256, 256](y, x, 1.0, COUNT)

    threads = [threading.Thread(target=work, args=(result,)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        assert (result.copy_to_host() == 50).all()
    assert len(dispatcher.overloads) == 1


ATTRIBUTES = [
    {"priority": -1},
    {"programmatic_stream_serialization": True},
    {"mem_sync_domain": "remote"},
    {"mem_sync_domain_map": (0, 1)},
    {"preferred_shared_memory_carveout": 50},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_launches_with_attributes_run(attributes):
    total = cuwheel.zeros(1, "int32")
    kernel = cuwheel.Module.from_source(SOURCE).kernel("count")
    if "mem_sync_domain" in next(iter(attributes)) and cuwheel.Device(0).compute_capability < (9, 0):
        pytest.skip("the device has no domains of memory synchronisation")
    for _ in range(2):
        kernel.configure(4, 32, attributes=attributes)(total)
    assert total.copy_to_host()[0] == 256


@pytest.mark.parametrize("attributes", [{"cluster_scheduling_policy_preference": "spread"}, {"cluster_scheduling_policy_preference": "load_balancing"}])
def test_clusters_with_attributes_run(attributes):
    if cuwheel.Device(0).compute_capability < (9, 0):
        pytest.skip("the device has no clusters")
    total = cuwheel.zeros(1, "int32")
    kernel = cuwheel.Module.from_source(SOURCE).kernel("count")
    kernel.launch((total,), grid=4, block=32, cluster=2, attributes=attributes)
    assert total.copy_to_host()[0] == 128


def test_headers_of_cuda_can_be_included():
    source = """
    #include <cuda_fp16.h>
    extern "C" __global__ void halve(__half *x) { x[threadIdx.x] = x[threadIdx.x] / __half(2); }
    """
    try:
        module = cuwheel.Module.from_source(source)
    except cuwheel.CompileError as error:
        if 'could not open source file "cuda_fp16.h"' not in error.log:
            raise
        pytest.skip("the headers of the CUDA runtime are not installed")
    x = cuwheel.asarray(np.arange(32, dtype="float16"))
    module.kernel("halve", ["float16*"])[1, 32](x)
    np.testing.assert_array_equal(x.copy_to_host(), np.arange(32) / np.float16(2))
