"""Views of device arrays, and assignment to them, are NumPy's for the same request, and so are their errors."""

import cuwheel
import numpy as np
import pytest
from device_arrays import contents, read_only, used_strides
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outcomes import outcome

pytestmark = pytest.mark.usefixtures("driver")

#: The stand-in is one for the process; examples leave it as they found it.
ONE_DRIVER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "uint16", "float32", "int64", "complex128"])
NUMBERS = st.integers(-6, 6)
PARTS = st.one_of(
    NUMBERS,
    st.builds(slice, *[st.none() | NUMBERS] * 3),
    st.just(slice(None)),
    st.none(),
    st.just(...),
)
KEYS = st.lists(PARTS, max_size=5).map(tuple) | PARTS


def apply(name, argument):
    """A request for a view, as a function of an array of either library."""

    def request(array):
        match name:
            case "index":
                key = argument if isinstance(argument, tuple) else (argument,)
                # NumPy makes a scalar of an element, unless there is an ellipsis.
                return array[key if ... in key or isinstance(array, cuwheel.DeviceArray) else (*key, ...)]
            case "T":
                return array.T
            case "squeeze":
                return array.squeeze(argument)
            case _:
                return getattr(array, name)(*argument)

    return request


REQUESTS = st.one_of(
    st.tuples(st.just("index"), KEYS),
    st.tuples(st.just("T"), st.none()),
    st.tuples(st.just("ravel"), st.just(())),
    st.tuples(st.just("squeeze"), st.none() | st.integers(-4, 4) | st.lists(st.integers(-4, 4), max_size=3).map(tuple)),
    st.tuples(
        st.just("transpose"),
        st.permutations(range(3)) | st.permutations(range(2)) | st.lists(st.integers(-4, 4), max_size=4),
    ),
    st.tuples(st.just("reshape"), st.lists(st.integers(-1, 8), min_size=1, max_size=4)),
    st.tuples(
        st.just("view"),
        st.sampled_from(["int8", "uint16", "float32", "int64", "complex128", "V3"]).map(lambda name: (name,)),
    ),
)


def made(shape, dtype) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def assert_same_error(ours, peers):
    """NumPy's `AxisError` is a `ValueError`, as ours is, and an `IndexError` too."""
    assert (ours.exception is None) == (peers.exception is None), (ours, peers)
    assert ours.exception is None or issubclass(peers.exception, ours.exception), (ours, peers)


def assert_same(array, peer, base, peer_base):
    assert (array.shape, array.dtype, array.size, array.nbytes) == (peer.shape, peer.dtype, peer.size, peer.nbytes)
    assert used_strides(array) == used_strides(peer)
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "FORC"):
        assert array.flags[flag] == peer.flags[flag], flag
    if peer.size and np.shares_memory(peer, peer_base):
        address, peer_address = (peer.__array_interface__["data"][0] for peer in (peer, peer_base))
        assert array.pointer - base.pointer == address - peer_address
    assert array.copy_to_host().tobytes() == peer.tobytes()


@ONE_DRIVER
@given(SHAPES, DTYPES, st.lists(REQUESTS, max_size=6))
def test_chains_of_views_are_numpys(shape, dtype, requests):
    peer_base = peer = made(shape, dtype)
    base = array = cuwheel.asarray(peer)
    for name, argument in requests:
        request = apply(name, argument)
        ours, peers = outcome(request, array), outcome(request, peer)
        assert_same_error(ours, peers)
        if peers.exception is not None:
            continue
        array, peer = ours.result, peers.result
        if peer.size and not np.shares_memory(peer, peer_base):
            assert name in ("reshape", "ravel")
            assert peer_base.size == 0 or not base.pointer <= array.pointer < base.pointer + base.nbytes
            base, peer_base = array, peer
        assert_same(array, peer, base, peer_base)


@ONE_DRIVER
@given(SHAPES, KEYS, KEYS)
def test_a_view_of_a_view_is_numpys(shape, first, second):
    peer_base = made(shape, "int32")
    base = cuwheel.asarray(peer_base)
    request = lambda array: apply("index", second)(apply("index", first)(array))  # noqa: E731
    ours, peers = outcome(request, base), outcome(request, peer_base)
    assert_same_error(ours, peers)
    if peers.exception is None:
        assert_same(ours.result, peers.result, base, peer_base)


def shapes_for(shape):
    """Shapes that fit one by broadcasting, and some that do not."""
    fitting = st.tuples(*(st.sampled_from([size, size, 1]) for size in shape))
    ones = st.lists(st.just(1), max_size=2).map(tuple)
    return st.one_of(
        fitting,
        st.builds(lambda shape, first: shape[first:], fitting, st.integers(0, 2)),
        st.builds(lambda shape, ones: ones + shape, fitting, ones),
        SHAPES,
    )


@ONE_DRIVER
@given(SHAPES, KEYS, st.sampled_from(["host", "device", "strided device", "scalar"]), st.data())
def test_assignment_is_numpys(shape, key, kind, data):
    peer = made(shape, "int32")
    array = cuwheel.asarray(peer)
    place = outcome(lambda: np.shape(peer[key])).result or ()
    value = made((*data.draw(shapes_for(place)), 2), "int32") + 100
    if kind == "strided device":
        ours_value = cuwheel.asarray(value)[..., 0]
    value = value[..., 0] if kind != "scalar" else 7
    if kind == "device":
        ours_value = cuwheel.asarray(value)
    elif kind != "strided device":
        ours_value = value

    ours = outcome(lambda: array.__setitem__(key, ours_value))
    peers = outcome(lambda: peer.__setitem__(key, value))
    assert_same_error(ours, peers)
    assert contents(array) == peer.tolist()


@ONE_DRIVER
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), st.data())
def test_assignment_from_overlapping_memory_is_numpys(shape, data):
    peer = made(shape, "int16")
    array = cuwheel.asarray(peer)
    keys = st.lists(
        st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), slice(None, -1), slice(None, None, 2)])
    )
    to, source = (tuple(data.draw(keys)[: len(shape)]) for _ in range(2))
    ours, peers = (outcome(lambda a=a: a.__setitem__(to, a[source])) for a in (array, peer))
    assert_same_error(ours, peers)
    assert contents(array) == peer.tolist()


@pytest.mark.parametrize("value", ["host", "device"])
@pytest.mark.parametrize(
    ("to", "source"),
    [((slice(None), 0), (slice(None), 5)), ((slice(None), slice(None)), (slice(None, None, -1), slice(None))), (3, 4)],
    ids=str,
)
def test_assignments_of_many_pieces(value, to, source):
    """More pieces than copies are made for."""
    peer = made((300, 7), "float64")
    array = cuwheel.asarray(peer)
    array[to] = peer[source] if value == "host" else array[source]
    peer[to] = peer[source].copy()
    assert contents(array) == peer.tolist()


@pytest.mark.parametrize("key", [(2, 1), (..., 0), slice(None), (slice(None, None, 2), slice(1, None))], ids=str)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "complex128", "V3", "bfloat16"])
def test_scalars_fill(key, dtype, driver):
    array = cuwheel.zeros((4, 3), dtype)
    peer = np.zeros((4, 3), array.dtype)
    value = np.ones((), "V3" if dtype == "V3" else array.dtype)
    driver.reset()
    array[key] = value
    peer[key] = value
    assert array.copy_to_host().tobytes() == peer.tobytes()


@pytest.mark.parametrize("shape", [(2, 12), (24,), (-1, 8)], ids=str)
def test_reshape_says_when_it_copies(shape):
    array = cuwheel.asarray(made((4, 6), "float32"))
    assert array.reshape(shape).pointer == array.reshape(shape, copy=False).pointer == array.pointer
    assert array.reshape(shape, copy=True).pointer != array.pointer
    assert array.T.reshape(shape).pointer != array.pointer
    assert contents(array.T.reshape(shape)) == made((4, 6), "float32").T.reshape(shape).tolist()
    with pytest.raises(ValueError, match="without a copy; copy it first, or allow a copy"):
        array.T.reshape(shape, copy=False)


def test_shapes_and_axes_are_arguments_or_tuples():
    array = cuwheel.empty((2, 3, 4))
    assert array.reshape(4, 6).shape == array.reshape((4, 6)).shape == array.reshape([4, -1]).shape == (4, 6)
    assert array.transpose(1, 2, 0).shape == array.transpose((1, 2, 0)).shape == (3, 4, 2)
    assert array.transpose().shape == array.transpose(None).shape == array.T.shape == (4, 3, 2)
    assert cuwheel.empty((1, 1)).reshape(()).shape == cuwheel.empty((1, 1)).reshape().shape == ()


def test_integers_are_whatever_has_index():
    class Index:
        def __index__(self):
            return 1

    array = cuwheel.asarray([1, 2, 3])
    assert contents(array[Index()]) == contents(array[np.int8(1)]) == 2
    assert contents(array[: Index() : 2**70]) == [1]
    assert contents(array[-(2**70) :]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("shape", "dtype", "key", "viewed"),
    [((4,), "float4_e2m1fn", slice(2, None), "uint8"), ((8,), "float6_e2m3fn", slice(4, None), "uint8")],
    ids=str,
)
def test_packed_elements_are_cut_at_bytes(shape, dtype, key, viewed):
    array = cuwheel.asarray(np.arange(1, 1 + cuwheel.empty(shape, dtype).nbytes, dtype="uint8")).view(dtype)
    assert array.shape == shape
    assert contents(array[key].view(viewed)) == contents(array.view(viewed))[len(contents(array.view(viewed))) // 2 :]
    with pytest.raises(BufferError, match="cannot begin inside of a byte"):
        array[1:]


def test_views_of_read_only_arrays_are_read_only():
    array = read_only((2, 3))
    for view in (array[0], array.T, array.reshape(6), array.squeeze(), array.view("int64"), array.ravel()):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 1
    assert array.copy_to_device().flags.writeable
