"""Modules, kernels and configured kernels: what they are made of, what they say of themselves, and their limits."""

import copy
import functools
import pickle
import struct
import sys
import weakref

import cuwheel
import kernels
import numpy as np
import pytest
from at_once import at_once

SAXPY = kernels.entry("saxpy", "float32*", "float32*", "float32", "uint32")
NOTHING = kernels.entry("nothing")
PTX = kernels.HEAD + SAXPY + NOTHING
SIGNATURE = ("float32* y", "const float32* x", "float32 a", "uint32 n")


def saxpy() -> cuwheel.Kernel:
    return cuwheel.Module.from_bytes(PTX).kernel("saxpy", SIGNATURE)


def cubin(architecture: int, machine: int = 190) -> bytes:
    """An ELF file without sections."""
    header = bytearray(64)
    struct.pack_into("<4sBBBBB", header, 0, b"\x7fELF", 2, 1, 1, 0x41, 8)
    struct.pack_into("<HHIQQQIHHHHHH", header, 16, 2, machine, 1, 0, 0, 0, architecture << 8, 64, 0, 0, 64, 0, 0)
    return bytes(header)


def fatbin(*entries: tuple[int, int, bytes]) -> bytes:
    """A fat binary of entries: 1 for PTX or 2 for a cubin, the architecture, and the bytes."""
    body = b""
    for kind, architecture, code in entries:
        header = bytearray(64)
        struct.pack_into("<HHIQ", header, 0, kind, 0x101, 64, len(code))
        struct.pack_into("<I", header, 28, architecture)
        body += bytes(header) + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_an_image_is_told_by_its_content(tmp_path):
    cases = [
        (PTX, "PTX", ("compute_80 (PTX)",)),
        (PTX.encode() + b"\0garbage", "PTX", ("compute_80 (PTX)",)),
        (memoryview(b"/* old */ .version 8.0 .target sm_90a, debug"), "PTX", ("compute_90a (PTX)",)),
        (cubin(90), "cubin", ("sm_90",)),
        (fatbin((2, 80, cubin(80)), (1, 90, b".version 8.0")), "fatbin", ("sm_80", "compute_90 (PTX)")),
    ]
    for image, kind, architectures in cases:
        module = cuwheel.Module.from_bytes(image)
        assert (module.kind, module.architectures) == (kind, architectures)
        path = tmp_path / "an image of some kind"
        path.write_bytes(image.encode() if isinstance(image, str) else image)
        assert cuwheel.Module.from_file(path) == cuwheel.Module.from_file(str(path)) == module


COMPILE = "compile with `nvcc -cubin`, `-fatbin` or `-ptx`"
EXTRACT = "take the device code out of it with `cuobjdump -xelf all`"
OTHERS = [
    (b"", f"nothing: there are no bytes; {COMPILE}"),
    (b"__global__ void k() {}", f"CUDA C++ source; {COMPILE}"),
    (b"hello", f"text without the directive .version; {COMPILE}"),
    (b"BC\xc0\xde....", f"LLVM bitcode; {COMPILE}"),
    (b"PK\x03\x04....", "a ZIP archive; unpack it first"),
    (b"!<arch>\n", f"an archive of objects; {EXTRACT}"),
    (cubin(90, machine=62), f"an ELF file for processors (machine 62); {EXTRACT}, or compile with `nvcc -cubin`"),
    (b"\xff\xfe\x00\x01\x02\x03\x04\x05\x06", f"data that begins with ff fe 00 01 02 03 04 05; {COMPILE}"),
    (struct.pack("<I", 0x466243B1), f"the descriptor of a fatbin that is elsewhere in memory; {COMPILE}"),
]


@pytest.mark.parametrize(("image", "looks_like"), OTHERS)
def test_what_is_no_image_is_said_to_be_what_it_looks_like(image, looks_like):
    with pytest.raises(ValueError) as raised:
        cuwheel.Module.from_bytes(image)
    assert str(raised.value) == f"this is no cubin, fatbin or PTX: it looks like {looks_like}"


def test_an_image_that_is_cut_off_is_never_shown_to_the_driver():
    whole = fatbin((2, 90, cubin(90)))
    for length in range(4, len(whole)):
        with pytest.raises(ValueError, match="the fatbin cannot be read: it ends before it should"):
            cuwheel.Module.from_bytes(whole[:length])
    with pytest.raises(ValueError, match="the cubin cannot be read"):
        cuwheel.Module.from_bytes(cubin(90)[:60])
    beyond = bytearray(cubin(90))
    struct.pack_into("<Q", beyond, 40, 1 << 40)
    struct.pack_into("<H", beyond, 60, 1)
    with pytest.raises(ValueError, match="the cubin cannot be read"):
        cuwheel.Module.from_bytes(bytes(beyond))
    with pytest.raises(ValueError, match="the fatbin cannot be read: its code for sm_90: the cubin cannot be read"):
        cuwheel.Module.from_bytes(fatbin((2, 90, bytes(beyond))))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        cuwheel.Module.from_file(tmp_path / "none")
    assert raised.value.filename == str(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        cuwheel.Module.from_file(tmp_path)
    with pytest.raises(TypeError, match="bytes-like object is required"):
        cuwheel.Module.from_bytes(8)


def test_nothing_is_loaded_before_it_is_used_and_nothing_is_left(driver):
    kernel = saxpy()
    configured = kernel[1, 32]
    assert driver.calls("cuLibraryLoadData") == 0
    assert kernel.module.kernels == ("nothing", "saxpy")
    x = cuwheel.zeros(4, "float32")
    for _ in range(3):
        configured(x, x, 1.0, 4)
    assert driver.calls("cuLibraryLoadData", "cuKernelGetFunction") == 2
    del configured, kernel
    assert driver.calls("cuLibraryUnload") == 1


def test_a_kernel_serves_every_device_with_one_image(driver):
    kernel = saxpy()
    for device in range(2):
        x = cuwheel.zeros(4, "float32", device=device)
        kernel[1, 32](x, x, 1.0, 4)
        kernel[1, 32](x, x, 1.0, 4)
    assert [launch["device"] for launch in driver.report()["launches"]] == [0, 0, 1, 1]
    assert (driver.calls("cuLibraryLoadData"), driver.calls("cuKernelGetFunction")) == (1, 2)
    # Of the thread's contexts, that of device 0 may stay: it is the one that the thread would get anyway.
    assert driver.report()["alive"]["contexts_pushed"] <= 1
    assert cuwheel.current_stream().device.id == 0


def test_threads_share_a_kernel(driver):
    kernel = saxpy()
    x = cuwheel.zeros(4, "float32")

    def work():
        for _ in range(50):
            kernel[1, 32](x, x, 1.0, 4)

    at_once(work)
    assert driver.report()["launch_count"] == 200
    assert driver.calls("cuLibraryLoadData") == 1


def test_the_shape_of_a_launch_is_what_was_asked_for(driver):
    nothing = cuwheel.Module.from_bytes(PTX).kernel("nothing")
    cases = [
        (nothing[1, 32], (1, 1, 1), (32, 1, 1), 0),
        (nothing[(2, 3), [4, 5, 6]], (2, 3, 1), (4, 5, 6), 0),
        (nothing[np.int64(7), (8,), None, 1024], (7, 1, 1), (8, 1, 1), 1024),
        (nothing.configure(2, 3, shared_bytes=64), (2, 1, 1), (3, 1, 1), 64),
    ]
    for configured, grid, block, shared_bytes in cases:
        configured()
        launch = kernels.last_launch(driver)
        assert (tuple(launch["grid"]), tuple(launch["block"]), launch["shared_bytes"]) == (grid, block, shared_bytes)
        assert (configured.grid, configured.block, configured.shared_bytes) == (grid, block, shared_bytes)
    nothing.launch((), grid=4, block=32, cluster=2, cooperative=True)
    launch = kernels.last_launch(driver)
    assert (launch["grid"], launch["cluster"], launch["cooperative"]) == ([4, 1, 1], [2, 1, 1], True)


CONFIGURATIONS = [
    (lambda k: k[0, 1], ValueError, "grid.x is 0, and nothing would run; leave the launch out"),
    (lambda k: k[1, (1, 0)], ValueError, "block.y is 0, and nothing would run; leave the launch out"),
    (lambda k: k[-1, 1], ValueError, "grid is -1; it must be from 0 to 4294967295"),
    (lambda k: k[(1, 2**32), 1], ValueError, "grid.y is 4294967296; it must be from 0 to 4294967295"),
    (lambda k: k[(1, 1, 1, 1), 1], ValueError, "grid has 4 sizes; give one to three, for x, y and z"),
    (lambda k: k[(), 1], ValueError, "grid has 0 sizes; give one to three, for x, y and z"),
    (lambda k: k["a", 1], TypeError, "grid is str, and an integer is needed"),
    (lambda k: k[1, 1.0], TypeError, "block is float, and an integer is needed"),
    (lambda k: k[1, 1, None, -4], ValueError, "shared_bytes is -4; it must be from 0 to 4294967295"),
    (lambda k: k[1], TypeError, "a launch is configured by kernel[grid, block], kernel[grid, block, stream] or kernel[grid, block, stream, shared_bytes]"),
    (lambda k: k[1, 1, "s"], TypeError, "str is no stream; pass a stream of torch, CuPy, cuda.core or numba, an object with __cuda_stream__, or an integer handle"),
    (lambda k: k.configure(1, 1, cluster=0), ValueError, "cluster.x is 0, and nothing would run; leave the launch out"),
]  # fmt: skip


@pytest.mark.parametrize(("configure", "error", "message"), CONFIGURATIONS)
def test_a_shape_that_is_none_is_refused_at_once(configure, error, message):
    with pytest.raises(error) as raised:
        configure(saxpy())
    assert str(raised.value) == message


LIMITS = [
    ({"grid": (1, 65536)}, "grid.y is 65536, and the limit MAX_GRID_DIM_Y of device 0 is 65535; let each thread do more, or use another dimension"),
    ({"block": (1, 1, 65)}, "block.z is 65, and the limit MAX_BLOCK_DIM_Z of device 0 is 64; use smaller blocks, and more of them"),
    ({"block": (64, 32)}, "the number of threads in a block (64, 32, 1) is 2048, and the limit MAX_THREADS_PER_BLOCK of device 0 is 1024; use smaller blocks, and more of them"),
    ({"shared_bytes": 232449}, "the shared memory of a block, 0 bytes of the kernel and 232449 of the launch, is 232449, and the limit MAX_SHARED_MEMORY_PER_BLOCK_OPTIN of device 0 is 232448; keep less in shared memory"),
    ({"grid": 3, "cluster": 2}, "grid.x is 3, which clusters of 2 do not divide; make it a multiple"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "message"), LIMITS)
def test_what_exceeds_a_limit_names_it(driver, shape, message):
    nothing = cuwheel.Module.from_bytes(PTX).kernel("nothing")
    with pytest.raises(ValueError) as raised:
        nothing.launch((), **{"grid": 1, "block": 1, **shape})
    assert str(raised.value) == message
    assert driver.calls("cuLaunchKernel", "cuLaunchKernelEx") == 0


def test_more_shared_memory_than_usual_is_allowed_for_by_itself(driver):
    nothing = cuwheel.Module.from_bytes(PTX).kernel("nothing")
    for size in (48 * 1024, 100_000, 90_000, 232_448):
        nothing[1, 1, None, size]()
    assert driver.calls("cuFuncSetAttribute") == 2
    assert driver.report()["launch_count"] == 4


def test_what_the_driver_refuses_is_explained(driver):
    nothing = cuwheel.Module.from_bytes(PTX).kernel("nothing")
    with pytest.raises(cuwheel.CudaError) as raised:
        nothing.launch((), grid=100_000, block=1024, cooperative=True)
    assert (raised.value.name, raised.value.code) == ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", 720)
    assert str(raised.value).startswith('kernel "nothing" was not launched with grid (100000, 1, 1), block (1024, 1, 1), cooperative: cuLaunchKernelEx failed with CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720): ')  # fmt: skip
    assert str(raised.value).endswith("a cooperative grid has to fit on the device at once: 100000 blocks were asked for, and 264 fit on device 0; let each block do more")  # fmt: skip
    with pytest.raises(cuwheel.CudaError, match=r"a cluster of 9 blocks is more than device 0 has room for"):
        nothing.launch((), grid=9, block=1, cluster=9)
    with driver.faults("fail=cuLaunchKernelEx:1:LAUNCH_OUT_OF_RESOURCES"), pytest.raises(RuntimeError) as raised:
        nothing[1, 1]()
    assert (raised.type, raised.value.code) == (cuwheel.CudaError, 701)


def test_every_error_of_the_driver_is_a_cuda_error(driver):
    with driver.faults("fail=cuStreamCreate:1:INVALID_VALUE"), pytest.raises(cuwheel.CudaError) as raised:
        cuwheel.Stream()
    error = pickle.loads(pickle.dumps(raised.value))
    assert (type(error), error.name, error.code) == (cuwheel.CudaError, "CUDA_ERROR_INVALID_VALUE", 1)
    assert issubclass(cuwheel.CudaError, RuntimeError)
    assert (cuwheel.CudaError("x").name, cuwheel.CudaError("x").code) == (None, None)
    assert cuwheel.CudaError.__module__ == "cuwheel._devicearray"


def test_code_for_another_device_is_explained(driver):
    cases = [
        (cubin(80), "the cubin was not loaded", "the image has sm_80"),
        (kernels.HEAD.replace("sm_80", "sm_100"), "the PTX was not loaded", "the image has compute_100 (PTX)"),
        (fatbin((2, 80, cubin(80)), (1, 100, PTX.encode())), "the fatbin was not loaded", "the image has sm_80, compute_100 (PTX)"),
    ]  # fmt: skip
    needs = "and device 0 needs machine code for sm_90 or an older sm_9x, or PTX for compute_90 or older; compile with -arch=sm_90"
    for image, what, inside in cases:
        with pytest.raises(cuwheel.CudaError) as raised:
            cuwheel.Module.from_bytes(image).kernel("k")[1, 1]()
        assert raised.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"
        assert str(raised.value).startswith(f"{what}: cuLibraryLoadData failed with CUDA_ERROR_NO_BINARY_FOR_GPU (209): ")
        assert f"; {inside}, {needs}" in str(raised.value)
    with pytest.raises(cuwheel.CudaError, match=r"the driver says: .*\.entry has no readable list of parameters"):
        kernels.untyped(".v")[1, 1]()


def test_a_kernel_that_is_not_there_is_missed_with_the_names_that_are(driver):
    with pytest.raises(cuwheel.CudaError) as raised:
        cuwheel.Module.from_bytes(PTX).kernel("axpy")[1, 1]()
    assert str(raised.value).startswith('there is no kernel "axpy" in the PTX: cuLibraryGetKernel failed with CUDA_ERROR_NOT_FOUND (500): ')  # fmt: skip
    assert str(raised.value).endswith('; the image has saxpy, nothing; C++ mangles names that are not extern "C"')


SIGNATURES = [
    (("float32",), ValueError, 'the signature of kernel "saxpy" has 1 parameters, and the kernel has 4 (bytes: 8, 8, 4, 4)'),
    (("float32*", "float32*", "float64", "int32"), ValueError, 'parameter 2 of kernel "saxpy" is float64 in the signature, which takes 8 bytes, and 4 in the kernel; write the type that the kernel declares'),
]  # fmt: skip


@pytest.mark.parametrize(("signature", "error", "message"), SIGNATURES)
def test_a_signature_is_compared_with_the_kernel(driver, signature, error, message):
    kernel = cuwheel.Module.from_bytes(PTX).kernel("saxpy", signature)
    for use in (kernel[1, 1], lambda: kernel.layout, kernel.attributes):
        with pytest.raises(error) as raised:
            use()
        assert str(raised.value) == message


TYPE = 'write a pointer ("float32*", "const float32*", "void*"), a number ("int32", "float64"), or an array with shape and strides ("view[float32, 2]")'  # fmt: skip
UNREADABLE = [
    (["flota32"], ValueError, f'"flota32" is no type of a parameter; {TYPE}'),
    (["float8_e5m2"], ValueError, f'"float8_e5m2" is no type of a parameter; {TYPE}'),
    (["view[float32]"], ValueError, f'"view[float32]" is no type of a parameter; {TYPE}'),
    (["view[float32, 33]"], ValueError, f'"view[float32, 33]" is no type of a parameter; {TYPE}'),
    (["const int32"], ValueError, f'"const int32" is no type of a parameter; {TYPE}'),
    (["int32 1st"], ValueError, '"int32 1st" does not end in a name; write the type, and then a name if you like: "float32* out"'),
    ("int32", TypeError, 'a signature is a tuple of texts, one for each parameter: ("const float32*", "float32*", "int32")'),
    ([1], TypeError, 'a signature is a tuple of texts, one for each parameter: ("const float32*", "float32*", "int32")'),
]  # fmt: skip


@pytest.mark.parametrize(("signature", "error", "message"), UNREADABLE)
def test_a_signature_that_cannot_be_read_is_refused(signature, error, message):
    with pytest.raises(error) as raised:
        cuwheel.Module.from_bytes(PTX).kernel("saxpy", signature)
    assert str(raised.value) == message


def test_a_signature_is_read_with_and_without_names():
    texts = [" const  float32 *x", "view[ const float32 , 2 ] v", "float4_e2m1fn*", "void*p", "int32  n", "bool"]
    kernel = cuwheel.Module.from_bytes(PTX).kernel("k", texts)
    assert kernel.signature == ("const float32* x", "view[const float32, 2] v", "float4_e2m1fn*", "void* p", "int32 n", "bool")
    assert cuwheel.Module.from_bytes(PTX).kernel("k", kernel.signature) == kernel


def test_the_layout_is_the_kernels_own(driver):
    kernel = kernels.typed("uint8", "float64", "complex128", "int8")
    assert kernel.layout == ((0, 1), (8, 8), (16, 16), (32, 1))
    assert kernels.untyped("uint8", "float64", "complex128", "int8").layout == kernel.layout
    assert saxpy().attributes()["max_threads_per_block"] == 1024
    assert set(saxpy().attributes(1)) == {
        "max_threads_per_block", "shared_bytes", "const_bytes", "local_bytes", "registers", "ptx_version", "binary_version",
    }  # fmt: skip
    with pytest.raises(ValueError, match="there is no device 7"):
        saxpy().attributes(7)


def test_modules_and_kernels_are_equal_by_what_they_are_made_of():
    module = cuwheel.Module.from_bytes(PTX)
    kernel = module.kernel("saxpy", SIGNATURE)
    same = [
        (module, cuwheel.Module.from_bytes(PTX.encode())),
        (kernel, saxpy()),
        (kernel[1, 2], saxpy().configure(1, (2, 1), shared_bytes=0)),
        (kernel[1, 2, 0], kernel[1, 2, 1]),
    ]
    for one, other in same:
        assert one == other
        assert hash(one) == hash(other)
    different = {kernel, module.kernel("saxpy"), module.kernel("nothing"), module, kernel[1, 2], kernel[2, 1], kernel[1, 2, 2]}
    assert len(different) == 7


def test_kernels_are_pickled_with_their_images(driver):
    x = cuwheel.zeros(4, "float32")
    for original in (saxpy()[4, 32], saxpy()[4, 32, 2, 64], saxpy().configure(4, 32, cluster=2, cooperative=True)):
        for twin in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
            assert twin == original
            twin(x, x, 1.0, 4)
    # Arguments of a launch on a stream that was named are kept until it is done.
    cuwheel.Stream(2).synchronize()
    module = saxpy().module
    both = pickle.loads(pickle.dumps([module.kernel("saxpy"), module.kernel("nothing")]))
    assert both[0].module is both[1].module
    stream = cuwheel.Stream()
    with pytest.raises(TypeError, match="a stream is one of this process and cannot be pickled"):
        pickle.dumps(saxpy()[1, 1, stream])


def test_everything_says_what_it_is():
    kernel = saxpy()
    assert repr(kernel.module) == f"<Module of a PTX, {len(PTX)} bytes>"
    assert repr(kernel) == "<Kernel saxpy(float32* y, const float32* x, float32 a, uint32 n)>"
    assert repr(kernel.module.kernel("nothing")) == "<Kernel nothing>"
    configured = kernel.configure(1, (2, 3), 2, 64, cluster=1)
    assert repr(configured) == "<ConfiguredKernel saxpy with grid (1, 1, 1), block (2, 3, 1), 64 bytes of shared memory, cluster (1, 1, 1), stream 0x2>"  # fmt: skip
    assert (configured.kernel, configured.stream, configured.cluster, configured.cooperative) == (kernel, 2, (1, 1, 1), False)
    assert (kernel.name, kernel.signature) == ("saxpy", SIGNATURE)


def test_a_launch_that_was_made_before_makes_no_python_objects(driver):
    x = cuwheel.zeros(4, "float32")
    configured = saxpy()[1, 32]
    kernels.check_makes_no_python_objects(configured, (x, x, 0.5, 4))


def test_a_configured_kernel_is_called_in_every_way_that_there_is(driver):
    x = cuwheel.zeros(4, "float32")
    configured = saxpy()[1, 32]
    arguments = (x, x, 0.5, 4)
    before = driver.report()["launch_count"]
    configured(*arguments)
    configured(*arguments, **{})
    configured.__call__(*arguments)
    type(configured).__call__(configured, *arguments)
    functools.partial(configured, x, x)(0.5, 4)
    assert list(map(configured, [x], [x], [0.5], [4])) == [None]
    assert driver.report()["launch_count"] == before + 6
    for call in (lambda **named: configured(*arguments, **named), lambda **named: configured.__call__(*arguments, **named)):
        with pytest.raises(TypeError, match=r"ConfiguredKernel\.__call__\(\) got an unexpected keyword argument 'n'"):
            call(n=4)
    for count in (0, 3, 5):
        with pytest.raises(TypeError, match=f"takes 4 arguments .*, and {count} (was|were) given"):
            configured(*[*arguments, 1][:count])


def test_the_class_of_configured_kernels_is_like_others():
    kernel = saxpy()
    configured = kernel[1, 32]
    kind = type(configured)
    assert (kind.__module__, kind.__qualname__) == ("cuwheel._kernel", "ConfiguredKernel")
    with pytest.raises(TypeError, match="cannot create 'cuwheel._kernel.ConfiguredKernel' instances"):
        kind()
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Derived", (kind,), {})
    with pytest.raises(AttributeError):
        configured.grid = 1
    with pytest.raises(TypeError):
        configured < kernel[1, 32]
    assert configured != kernel and configured.__eq__(kernel) is NotImplemented
    assert callable(configured) and {configured: 1}[kernel[1, 32]] == 1


def test_whether_the_gil_is_released_is_part_of_the_shape(driver):
    kernel = saxpy()
    released, held = kernel.configure(1, 32), kernel.configure(1, 32, release_gil=False)
    assert (released.release_gil, kernel[1, 32].release_gil, held.release_gil) == (True, True, False)
    assert released == kernel[1, 32] != held and len({released, kernel[1, 32], held}) == 2
    assert repr(held).endswith("block (32, 1, 1), holding the GIL>")
    assert copy.copy(held) == held and pickle.loads(pickle.dumps(held)).release_gil is False
    x = cuwheel.zeros(4, "float32")
    for configured in (released, held):
        configured(x, x, 0.5, 4)
        kernel.launch((x, x, 0.5, 4), grid=1, block=32, release_gil=configured.release_gil)
    assert [launch["holds_gil"] for launch in driver.report()["launches"]] == [False, False, True, True]
    with driver.faults("fail=cuLaunchKernelEx:1:LAUNCH_OUT_OF_RESOURCES"), pytest.raises(cuwheel.CudaError, match="holding|block"):
        held(x, x, 0.5, 4)


def test_configured_kernels_leave_nothing_behind():
    kernel = saxpy()
    counted = sys.getrefcount(kernel), sys.getrefcount(type(kernel[1, 1]))
    gone = []
    watched = kernel[1, 32]
    weakref.finalize(watched, gone.append, "gone")
    for _ in range(1000):
        kernel[1, 32].grid, kernel.configure(1, 32).kernel, repr(kernel[1, 1]), hash(kernel[1, 1]), kernel[1, 1] == kernel[1, 1]
        kernel[1, 32].__reduce__()
    del watched
    assert gone == ["gone"]
    assert (sys.getrefcount(kernel), sys.getrefcount(type(kernel[1, 1]))) == counted
