"""Memory of each kind on a real device: what it holds, who sees it, and what happens when there is no more."""

import gc
import pickle
import re
import threading

import cuwheel
import numpy as np
import pytest

KINDS = ["device", "pinned", "mapped", "managed"]
HOST_VISIBLE = KINDS[1:]
MIB = 1 << 20


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_each_kind_hold_what_is_put_in(kind, order):
    values = np.random.default_rng(1).standard_normal((37, 53)).astype("float32")
    array = cuwheel.empty(values.shape, "float32", kind=kind, order=order)
    array.copy_from_host(values)
    np.testing.assert_array_equal(array.copy_to_host(), values)
    assert (array.kind, array.device) == (kind, cuwheel.Device(0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64", "complex128"])
def test_fills_set_every_element(kind, dtype):
    value = np.array(3).astype(dtype)
    array = cuwheel.full((129, 65), value, dtype, kind=kind)
    assert (array.copy_to_host() == value).all()
    array[5:100:3, ::-2] = np.array(0).astype(dtype)
    expected = np.full((129, 65), value)
    expected[5:100:3, ::-2] = 0
    np.testing.assert_array_equal(array.copy_to_host(), expected)
    assert not cuwheel.zeros((129, 65), dtype, kind=kind).copy_to_host().any()


def random_index(random, shape):
    """An index of integers and slices of any step."""

    def along(size):
        if random.integers(4) == 0:
            return int(random.integers(-size, size))
        start, stop = (int(bound) for bound in random.integers(-size - 1, size + 2, size=2))
        return slice(start, stop, int(random.choice([-3, -2, -1, 1, 2, 3])))

    return tuple(along(size) for size in shape[: random.integers(len(shape) + 1)])


@pytest.mark.parametrize("seed", range(60))
def test_copies_of_strided_arrays_equal_those_of_numpy(seed):
    random = np.random.default_rng(seed)
    shape = tuple(int(size) for size in random.integers(1, 9, size=random.integers(1, 5)))
    dtype = str(random.choice(["uint8", "int16", "float32", "complex64", "complex128"]))
    host = random.integers(0, 120, size=shape).astype(dtype)
    kinds = random.choice(KINDS, size=2)
    source = cuwheel.asarray(host, kind=str(kinds[0]))
    axes = random.permutation(len(shape)).tolist()
    source, host = source.transpose(axes), host.transpose(axes)
    index = random_index(random, host.shape)
    view, expected = source[index], host[index]
    np.testing.assert_array_equal(view.copy_to_host(), expected)
    np.testing.assert_array_equal(view.copy_to_device(kind=str(kinds[1])).copy_to_host(), expected)
    # Onto another strided array, and from the host onto this one.
    target = cuwheel.zeros((*expected.shape, 2), dtype, kind=str(kinds[1]))[..., 1]
    target[...] = view
    np.testing.assert_array_equal(target.copy_to_host(), expected)
    changed = host.copy()
    changed[index] = expected + 1
    view[...] = expected + 1
    np.testing.assert_array_equal(source.copy_to_host(), changed)


@pytest.mark.parametrize("kind", HOST_VISIBLE)
def test_the_host_and_the_device_see_the_same_memory(kind):
    array = cuwheel.zeros(1000, "int32", kind=kind)
    cuwheel.current_stream().synchronize()
    seen = np.asarray(array)
    assert seen.ctypes.data == array.pointer
    seen[:] = np.arange(1000)
    copy = array.copy_to_device(kind="device")
    np.testing.assert_array_equal(copy.copy_to_host(), np.arange(1000))
    array[...] = copy[::-1]
    array.stream.synchronize()
    np.testing.assert_array_equal(seen, np.arange(1000)[::-1])


def test_numpy_is_refused_memory_of_the_device():
    array = cuwheel.zeros(4, "float32")
    with pytest.raises(TypeError, match="copy_to_host"):
        np.asarray(array)
    with pytest.raises(BufferError):
        memoryview(array)


def until_there_is_no_more(size_bytes):
    """As many arrays as there is memory for, and the error of the one that was too many."""
    arrays = []
    for _ in range(100_000):
        try:
            arrays.append(cuwheel.empty(size_bytes, "uint8"))
        except MemoryError as error:
            return arrays, str(error)
    raise AssertionError("memory without end")


def test_memory_that_runs_out_is_a_memory_error_and_loses_nothing(alone_on_the_device):
    _, total = cuwheel.Device(0).memory_info()
    size_bytes = total // 10
    for _ in range(2):
        arrays, message = until_there_is_no_more(size_bytes)
        assert re.search(rf"{size_bytes} bytes were asked for on device 0, where \d+ of {total} are free", message)
        assert len(arrays) >= 1
        arrays[-1][:16] = 7
        assert (arrays[-1][:16].copy_to_host() == 7).all()
        del arrays
        gc.collect()
    array = cuwheel.full(size_bytes, 5, "uint8")
    assert (array[-16:].copy_to_host() == 5).all()


def test_memory_that_was_freed_is_there_for_others(torch, alone_on_the_device):
    arrays, _ = until_there_is_no_more(cuwheel.Device(0).memory_info()[1] // 10)
    half = sum(array.nbytes for array in arrays) // 2
    del arrays
    gc.collect()
    torch.cuda.synchronize()
    tensor = torch.full((half,), 3, dtype=torch.uint8, device="cuda")
    assert int(tensor[-1]) == 3
    del tensor
    torch.cuda.empty_cache()


def test_more_than_there_can_be_is_refused_before_the_driver_is_asked():
    with pytest.raises((MemoryError, ValueError)):
        cuwheel.empty(1 << 60, "float64")


def test_threads_work_on_their_own_arrays_at_the_same_time():
    failures = []

    def work(number):
        try:
            stream = cuwheel.Stream()
            with cuwheel.use_stream(stream):
                for round_ in range(50):
                    array = cuwheel.full((64, 64), number * 100 + round_, "int32")
                    copy = array.T.copy_to_device()
                    assert (copy.copy_to_host() == number * 100 + round_).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_array_may_be_dropped_on_another_thread():
    free_before = cuwheel.Device(0).memory_info()[0]
    arrays = [cuwheel.empty(64 * MIB, "uint8") for _ in range(8)]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    cuwheel.current_stream().synchronize()
    assert cuwheel.Device(0).memory_info()[0] >= free_before - 64 * MIB
    assert (cuwheel.full(16, 1, "int8").copy_to_host() == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_pickles_hold_the_values(kind):
    values = np.random.default_rng(3).integers(0, 1000, (7, 11))
    array = cuwheel.asarray(values, kind=kind)[::2, 1:]
    again = pickle.loads(pickle.dumps(array))
    assert again.pointer != array.pointer
    assert (again.shape, again.dtype, again.device) == (array.shape, array.dtype, array.device)
    np.testing.assert_array_equal(again.copy_to_host(), values[::2, 1:])
