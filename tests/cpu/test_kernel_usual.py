"""Launches of a kernel that is known already take a shorter way. It must lead to the same place as the long one, which
`kernel.launch` and first launches take, or to nowhere."""

import threading
import weakref

import cuwheel
import dlpack
import kernels
import numpy as np
import pytest
from outcomes import outcome

KINDS = ("float32*", "const float32*", "float32*")


class NamedStream:
    """A stream of another library."""

    def __init__(self, handle: int):
        self.cuda_stream = handle


def launched(driver, launch, arguments) -> object:
    """What becomes of a launch: what the driver was told, or the exception."""

    def call():
        driver.reset()
        launch(*arguments)
        return driver.report()["launches"], driver.calls("cuEventRecord", "cuStreamWaitEvent")

    return outcome(call)


def check_both_ways(driver, kernel, *arguments, **options) -> object:
    """Both ways lead to the same, also after launches that were usual and before more of them."""
    options = {"grid": 1, "block": 32} | options
    configured = kernel.configure(**options)
    long_way = launched(driver, lambda *arguments: kernel.launch(arguments, **options), arguments)
    for _ in range(2):
        assert launched(driver, configured, arguments) == long_way
    # What was kept until its stream has passed it goes.
    for handle in (0, 2):
        cuwheel.Stream(handle).synchronize()
    return long_way


def arrays(count=3, dtype="float32", **options) -> list[cuwheel.DeviceArray]:
    return [cuwheel.zeros((4, 6), dtype, **options) for _ in range(count)]


def exchanging(array, handle=0, **fields) -> object:
    return dlpack.exchanging(dlpack.tensor_of(array, **fields), handle=handle)


@pytest.fixture(autouse=True)
def tensors_go(driver):
    yield
    dlpack.forget_tensors()


def known_kernel() -> cuwheel.Kernel:
    """One that was launched on arrays before."""
    kernel = kernels.typed(*KINDS)
    kernel[1, 32](*arrays())
    return kernel


def lazily(array, **answers) -> object:
    asked = {name: (lambda self, answer=answers.get(name, False): answer) for name in ("is_conj", "is_neg")}
    return dlpack.exchanging(dlpack.tensor_of(array), **asked)


OWN = {
    "all": lambda x, y, z: (x, y, z),
    "one thrice": lambda x, y, z: (x, x, x),
    "views": lambda x, y, z: (x[1:, ::2], y[::-1], z[2]),
    "without elements": lambda x, y, z: (x[:0], y, z),
    "another type": lambda x, y, z: (x, cuwheel.zeros(3, "float64"), z),
    "read-only where it may be": lambda x, y, z: (x, cuwheel.from_dlpack(exchanging(y, flags=1)), z),
    "another device": lambda x, y, z: (x, y, cuwheel.zeros(3, "float32", device=1)),
    "all on another device": lambda x, y, z: arrays(device=1),
    "managed": lambda x, y, z: (cuwheel.zeros(3, "float32", kind="managed"), y, z),
    "pinned": lambda x, y, z: arrays(kind="pinned"),
    "another stream": lambda x, y, z: (x, y, cuwheel.zeros(3, "float32", stream=cuwheel.Stream(2))),
    "all on another stream": lambda x, y, z: arrays(stream=cuwheel.Stream(2)),
    "too few": lambda x, y, z: (x, y),
    "too many": lambda x, y, z: (x, y, z, x),
    "no array": lambda x, y, z: (x, 1, z),
    "none": lambda x, y, z: (x, None, z),
}

FOREIGN = {
    "all": lambda x, y, z: map(exchanging, (x, y, z)),
    "with ours": lambda x, y, z: (x, exchanging(y), z),
    "before ours": lambda x, y, z: (exchanging(x), y, z),
    "on their stream": lambda x, y, z: [exchanging(array, handle=2) for array in (x, y, z)],
    "on two streams": lambda x, y, z: (exchanging(x, handle=2), exchanging(y), z),
    "at an offset": lambda x, y, z: (exchanging(x, byte_offset=16, shape=(2,), strides=(1,)), y, z),
    "with gaps": lambda x, y, z: (exchanging(x, shape=(2, 3), strides=(12, 2)), y, z),
    "of one size": lambda x, y, z: (exchanging(x, shape=(1, 24), strides=(77, 1)), y, z),
    "of no dimensions": lambda x, y, z: (exchanging(x, shape=(), strides=()), y, z),
    "without strides": lambda x, y, z: (exchanging(x, strides=None), y, z),
    "without elements": lambda x, y, z: (exchanging(x, shape=(0, 3), strides=(3, 1)), y, z),
    "without an address": lambda x, y, z: (exchanging(x, data=0), y, z),
    "without a shape": lambda x, y, z: (exchanging(x, shape=None, ndim=2), y, z),
    "of negative size": lambda x, y, z: (exchanging(x, shape=(-1,), strides=(1,)), y, z),
    "too large": lambda x, y, z: (exchanging(x, shape=(2**40, 2**40), strides=(2**40, 1)), y, z),
    "beyond the address space": lambda x, y, z: (exchanging(x, byte_offset=2**64 - 8), y, z),
    "of too many dimensions": lambda x, y, z: (exchanging(x, ndim=65), y, z),
    "of another type": lambda x, y, z: (exchanging(x, dtype=(0, 32, 1)), y, z),
    "of an unknown type": lambda x, y, z: (exchanging(x, dtype=(99, 32, 1)), y, z),
    "on another device": lambda x, y, z: (exchanging(x, device=(2, 1)), y, z),
    "on no device": lambda x, y, z: (exchanging(x, device=(2, -1)), y, z),
    "in host memory": lambda x, y, z: (exchanging(x, device=(1, 0)), y, z),
    "not lazy": lambda x, y, z: (lazily(x), y, z),
    "not lazy, with one element": lambda x, y, z: (lazily(x[:1, :1]), y, z),
    "negated, with one element": lambda x, y, z: (lazily(x[:1, :1], is_neg=True), y, z),
    "negated, with gaps": lambda x, y, z: (lazily(x[:, ::2], is_neg=True), y, z),
    "not described": lambda x, y, z: (dlpack.exchanging(dlpack.tensor_of(x), dlpack.Table()), y, z),
    "refused": lambda x, y, z: (dlpack.exchanging(dlpack.tensor_of(x), dlpack.Table(view_from_object=dlpack.raises)), y, z),
    "without a stream": lambda x, y, z: (dlpack.exchanging(dlpack.tensor_of(x), dlpack.Table(view_from_object=dlpack.view)), y, z),
}  # fmt: skip


ARGUMENTS = {f"own, {case}": make for case, make in OWN.items()} | {f"foreign, {case}": make for case, make in FOREIGN.items()}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arrays_lead_to_the_same(driver, case):
    kernel = known_kernel()
    arguments = tuple(ARGUMENTS[case](*arrays()))
    check_both_ways(driver, kernel, *arguments)
    check_both_ways(driver, kernel, *arguments, stream=2)


def test_a_conjugate_is_refused_either_way(driver):
    kernel = kernels.typed("complex64*")
    x = cuwheel.zeros(3, "complex64")
    kernel[1, 32](x)
    for is_conj in (False, True):
        methods = {"is_conj": lambda self, answer=is_conj: answer, "is_neg": lambda self: False}
        conjugate = dlpack.exchanging(dlpack.tensor_of(x, dtype=(5, 64, 1)), **methods)
        assert (check_both_ways(driver, kernel, conjugate).exception is BufferError) == is_conj


NUMBERS = (0, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, True) + (
    0.0, -0.0, 1.5, 1e39, float("inf"), float("nan"), 2.0**-149, 1j, np.int32(7), np.float64(7.5), np.bool_(True), "7", None,
)  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("kind", ["int64", "uint64", "int32", "uint32", "int16", "float64", "float32", "float16", "bool", "complex64"])
def test_numbers_lead_to_the_same(driver, kind, value):
    for kernel in (kernels.typed("uint8", kind, "float32*"), kernels.untyped("uint8", kind, "float32*")):
        kernel.attributes()
        check_both_ways(driver, kernel, np.uint8(1), value, cuwheel.zeros(3, "float32"))


@pytest.mark.parametrize("kind", ["int64", "int32", "float64", "float32"])
@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_numbers_beside_arrays_lead_to_the_same(driver, kind, value):
    x = cuwheel.zeros(3, "float32")
    for kernel in (kernels.typed("float32*", kind, "int32"), kernels.untyped("float32*", kind, "int32")):
        kernel.attributes()
        check_both_ways(driver, kernel, x, value, 7)
        check_both_ways(driver, kernel, exchanging(x), value, 7)


def test_no_array_is_taken_for_a_number_of_unknown_type(driver):
    x = cuwheel.zeros(3, "float32")
    kernel = kernels.untyped(".u64", ".u32")
    kernel.attributes()
    for arguments in [(x, 1), (exchanging(x), 1), (1, 1), (1.5, 1.5), (x, x), (1, x), (object(), 1), (1, object())]:
        check_both_ways(driver, kernel, *arguments)


def test_bytes_between_parameters_are_zero(driver):
    kernel = kernels.typed("int32", "float32*", "int32", "float64")
    kernel.attributes()
    x = cuwheel.zeros(3, "float32")
    for _ in range(2):
        check_both_ways(driver, kernel, -1, x, -1, -1.0)


def test_more_than_there_is_room_for_leads_to_the_same(driver):
    x = cuwheel.zeros(3, "float32")
    for count in (15, 16, 17, 65):
        kernel = kernels.typed(*["float32*"] * count)
        kernel.attributes()
        check_both_ways(driver, kernel, *[x] * count)


def test_a_shape_that_is_not_plain_leads_to_the_same(driver):
    kernel = known_kernel()
    x, y, z = arrays()
    for options in (
        {"grid": (2, 3, 4), "block": (5, 6)},
        {"shared_bytes": 1024},
        {"shared_bytes": 100_000},
        {"shared_bytes": 300_000},
        {"block": 2048},
        {"cluster": 1},
        {"cooperative": True},
        {"attributes": {"priority": 1}},
        {"release_gil": False},
        {"stream": cuwheel.Stream(2)},
        {"stream": NamedStream(0)},
    ):
        check_both_ways(driver, kernel, x, y, z, **options)


def test_every_device_has_its_own_kernel_function(driver):
    kernel = known_kernel()
    configured = kernel[1, 32]
    for device in (0, 1, 0, 1):
        there = arrays(device=device)
        configured(*there)
        assert kernels.last_launch(driver)["device"] == device
    with driver.context(1):
        for device in (1, 0):
            configured(*arrays(device=device))
            assert kernels.last_launch(driver)["device"] == device


def test_a_current_stream_is_used_as_soon_as_there_is_one(driver):
    kernel = known_kernel()
    configured, stream = kernel[1, 32], cuwheel.Stream()
    x, y, z = arrays()
    with cuwheel.use_stream(stream):
        inside = arrays()
        configured(*inside)
        assert kernels.last_launch(driver)["stream"] == stream.handle
        check_both_ways(driver, kernel, *inside)
        check_both_ways(driver, kernel, x, y, inside[2])
        check_both_ways(driver, kernel, *map(exchanging, (x, y, z)))
        check_both_ways(driver, kernels.typed("int32"), 1)
    configured(x, y, z)
    assert kernels.last_launch(driver)["stream"] == 0


def test_an_error_that_waits_is_raised_by_the_next_launch(driver):
    kernel = known_kernel()
    configured, (x, y, z) = kernel[1, 32], arrays()
    configured(x, y, z)
    gone = cuwheel.zeros(3, "float32")
    with driver.faults("fail=cuMemFreeAsync:1:INVALID_VALUE"):
        del gone
    with pytest.raises(cuwheel.CudaError, match="while freeing memory"):
        configured(x, y, z)
    configured(x, y, z)
    # What could not be freed goes with its context.
    del x, y, z
    driver.call("cuDevicePrimaryCtxReset_v2", 0)


# `kernel[grid, block]`: what nobody has any more is used again.


def test_shapes_in_use_are_not_mixed_up(driver):
    kernel = known_kernel()
    shapes = [kernel[blocks, 32] for blocks in range(1, 6)]
    assert [shape.grid[0] for shape in shapes] == [1, 2, 3, 4, 5]
    assert len({id(shape) for shape in shapes}) == 5
    for _ in range(3):
        for blocks in (1, 2, (3, 2)):
            kernel[blocks, 64](*arrays())
            assert kernels.last_launch(driver)["grid"] == ([*blocks, 1] if isinstance(blocks, tuple) else [blocks, 1, 1])
            assert kernel[blocks, 64] == kernel.configure(blocks, 64) != kernel[blocks, 32]
            assert hash(kernel[blocks, 64]) == hash(kernel.configure(blocks, 64))
    assert [shape.grid[0] for shape in shapes] == [1, 2, 3, 4, 5]


def test_a_shape_that_fitted_says_nothing_of_the_next(driver):
    kernel = known_kernel()
    there = arrays()
    kernel[1, 32](*there)
    with pytest.raises(ValueError, match="block.x is 2048"):
        kernel[1, 2048](*there)
    kernel[1, 32](*there)
    with pytest.raises(ValueError, match="grid.x is 0"):
        kernel[0, 32]
    assert kernel[1, 32].grid == (1, 1, 1)


def test_a_shape_that_is_used_again_is_as_new():
    kernel = known_kernel()
    gone = []
    shape = kernel[1, 32]
    weakref.finalize(shape, gone.append, "first")
    watching = weakref.ref(shape)
    del shape
    shape = kernel[1, 32]
    assert (gone, watching(), shape.kernel) == (["first"], None, kernel)
    weakref.finalize(shape, gone.append, "second")
    del shape
    assert gone == ["first", "second"]
    # Numbers that only equal others, and streams, are read as ever.
    assert (kernel[True, 32].grid, kernel[np.int64(1), 32].grid) == ((1, 1, 1), (1, 1, 1))
    stream = NamedStream(2)
    kept = weakref.ref(stream)
    shape = kernel[1, 32, stream]
    del stream
    assert kept() is not None
    del shape
    assert (kept(), kernel[1, 32].stream) == (None, None)


def test_a_kernel_goes_with_its_shapes():
    kernel = kernels.typed(*KINDS)
    gone = weakref.ref(kernel)
    shape = kernel[1, 32]
    del kernel
    assert gone() is shape.kernel
    del shape
    assert gone() is None


def test_threads_ask_for_shapes_of_one_kernel(driver):
    kernel = known_kernel()
    wrong, there = [], arrays()

    def work(number):
        for count in range(500):
            blocks = 1 + (number + count) % 3
            shape = kernel[blocks, 32]
            if shape.grid != (blocks, 1, 1) or shape.kernel is not kernel:
                wrong.append(shape)
            kernel[blocks, 32](*there)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert driver.violations() == []
