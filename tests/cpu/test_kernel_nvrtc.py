"""NVRTC itself, where it is installed: it needs no GPU to compile."""

import time

import cuwheel
import kernels
import pytest

SOURCE = """
#include <cuwheel/array_view.cuh>

template <typename T>
__global__ void saxpy(T *y, const T *x, T a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

template <typename T, int N, bool C>
__global__ void fill(cuwheel::array_view<T, N> out, T value) {
    static_assert(C || N > 1, "an array with one dimension and gaps");
}

extern "C" __global__ void plain(int *x) {}
namespace deep { __global__ void mangled(int *x) {} }
"""


def test_templates_and_other_kernels_are_found_by_name(driver, real_compiler):
    names = ["saxpy<float>", "saxpy<long long>", "deep::mangled", "plain"]
    module = cuwheel.Module.from_source(SOURCE, names=names)
    assert (module.kind, module.architectures) == ("cubin", ("sm_90",))
    assert module.names["saxpy<float>"] == "_Z5saxpyIfEvPT_PKS0_S0_i"
    assert set(module.kernels) == set(module.names.values())
    x = cuwheel.zeros(4, "float32")
    kernel = module.kernel("saxpy<float>")
    assert kernel.layout == ((0, 8), (8, 8), (16, 4), (20, 4))
    kernel[1, 32](x, x, 1.0, 4)
    module.kernel("plain", ["int32* x"])[1, 1](cuwheel.zeros(1, "int32"))
    assert [launch["function"] for launch in driver.report()["launches"]] == ["_Z5saxpyIfEvPT_PKS0_S0_i", "plain"]


@pytest.mark.parametrize(("architecture", "kind", "inside"), [("sm_90a", "cubin", "sm_90"), ("compute_80", "PTX", "compute_80 (PTX)")])
def test_an_architecture_is_named_without_a_driver(real_compiler, architecture, kind, inside):
    module = cuwheel.Module.from_source(SOURCE, architecture=architecture)
    assert (module.kind, module.architectures) == (kind, (inside,))


def test_the_log_has_warnings_and_errors(real_compiler):
    module = cuwheel.Module.from_source("__global__ void k() { int unused; }", architecture="sm_90", filename="some name.cu")
    assert 'some name.cu(1): warning #177-D: variable "unused" was declared but never referenced' in module.log
    with pytest.raises(cuwheel.CompileError, match=r'some name.cu\(1\): error: identifier "y" is undefined') as raised:
        cuwheel.Module.from_source("__global__ void k() { y = 1; }", architecture="sm_90", filename="some name.cu")
    assert raised.value.name == "NVRTC_ERROR_COMPILATION"
    with pytest.raises(cuwheel.CompileError, match='identifier "none" is undefined'):
        cuwheel.Module.from_source(SOURCE, names=["none<float>"], architecture="sm_90")


def test_headers_in_memory_and_in_directories_are_found(real_compiler, tmp_path):
    (tmp_path / "there.h").write_text("#define THERE 1")
    source = '#include "memory.h"\n#include <there.h>\n#if !(MEMORY && THERE)\n#error none\n#endif'
    options = {"headers": {"memory.h": "#define MEMORY 1"}, "include_dirs": [tmp_path], "architecture": "sm_90"}
    cuwheel.Module.from_source(source, **options)
    (tmp_path / "there.h").write_text("#define THERE 0")
    with pytest.raises(cuwheel.CompileError, match="none"):
        cuwheel.Module.from_source(source, **options)
    (tmp_path / "beside.cu").write_text('#include "there.h"\n#if THERE\n#error found\n#endif')
    cuwheel.Module.from_source(tmp_path / "beside.cu", architecture="sm_90")


HEADERS = ["cuda_fp16.h", "cuda/std/complex", "cub/block/block_reduce.cuh"]


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_cuda_are_found_and_what_uses_them_is_kept(real_compiler, kernel_cache, header):
    source = f"#include <{header}>\n"
    try:
        cuwheel.Module.from_source(source, architecture="sm_90")
    except cuwheel.CompileError as error:
        if f'could not open source file "{header}"' in error.log:
            pytest.skip(f"needs the header {header}")
        raise
    assert len(list(kernel_cache.iterdir())) == 1
    start = time.perf_counter()
    cuwheel.Module.from_source(source, architecture="sm_90")
    assert time.perf_counter() - start < 1
    assert len(list(kernel_cache.iterdir())) == 1


def test_a_template_is_instantiated_for_types_ranks_and_orders(driver, real_compiler):
    saxpy = cuwheel.Dispatcher(SOURCE, "saxpy<T>", ("T* y", "const T* x", "T a", "int32 n"))
    fill = cuwheel.Dispatcher(SOURCE, "fill<T, N, C>", ("view[T, N, C] out", "T value"))
    for dtype in ("float32", "float64", "int16"):
        x = cuwheel.zeros(4, dtype)
        saxpy[1, 32](x, x, 2, 4)
        assert len(kernels.parameters(driver)[2]) == x.dtype.itemsize
    matrix = cuwheel.zeros((4, 6), "uint8")
    for array in (matrix, matrix[:, ::2], matrix[0]):
        fill[1, 32](array, 7)
        fill[1, 32](array, 7)
    names = [kernel.name for _, kernel in (*saxpy.overloads, *fill.overloads)]
    assert names == [
        "saxpy<float>", "saxpy<double>", "saxpy<short>",
        "fill<unsigned char, 2, true>", "fill<unsigned char, 2, false>", "fill<unsigned char, 1, true>",
    ]  # fmt: skip
    with pytest.raises(cuwheel.CompileError, match="an array with one dimension and gaps"):
        fill[1, 32](matrix[0, ::2], 7)
