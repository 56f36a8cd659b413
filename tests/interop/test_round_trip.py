"""Arrays of ours in other libraries and theirs with us: the same memory, the same values, the same description."""

import cuwheel
import numpy as np
import peers
import pytest

WHOLE = ("whole", lambda array: array)
LAYOUTS = [
    WHOLE,
    ("offset", lambda array: array[1:, 2:]),
    ("strided", lambda array: array[::2, 1::3]),
    ("row", lambda array: array[2]),
    ("column", lambda array: array[:, 3]),
    ("one row", lambda array: array[1:2]),
    ("one column with a stride", lambda array: array[::3, 4:5]),
    ("transposed", lambda array: array.T),
    ("empty", lambda array: array[0:0]),
    ("empty inside", lambda array: array[:, 2:2]),
    ("without dimensions", lambda array: array[1, 2]),
]
SHAPE = (6, 8)


def layouts(test):
    return pytest.mark.parametrize("cut", [cut for _, cut in LAYOUTS], ids=[name for name, _ in LAYOUTS])(test)


def check_same(peer, ours, theirs):
    """Both are the same array."""
    assert ours.shape == peer.shape(theirs)
    if ours.size:
        assert ours.pointer == peer.pointer(theirs)
    np.testing.assert_array_equal(peers.bytes_of(ours), peer.bytes_of(theirs))


@pytest.mark.parametrize(("peer", "dtype"), peers.cases(peers.ALL))
def test_a_peer_takes_every_data_type(peer, dtype):
    peers.ready(peer)
    array, values = peers.ours(SHAPE, dtype)
    theirs = peer.take(array)
    check_same(peer, array, theirs)
    np.testing.assert_array_equal(peer.bytes_of(theirs), values.reshape(-1))


@pytest.mark.parametrize(("peer", "dtype"), peers.cases(peers.MAKERS))
def test_every_data_type_is_taken_from_a_peer(peer, dtype):
    peers.ready(peer)
    values = peers.pattern(SHAPE, cuwheel.DType(dtype).itemsize, dtype)
    theirs = peer.make(values, dtype)
    array = cuwheel.from_dlpack(theirs)
    assert cuwheel.DType(array.dtype) == cuwheel.DType(dtype)
    assert array.kind == "device"
    check_same(peer, array, theirs)
    np.testing.assert_array_equal(peers.bytes_of(array), values.reshape(-1))


@layouts
def test_a_peer_takes_every_layout(peer, cut):
    if not peer.is_strided:
        pytest.skip(f"{peer.name} has no strided arrays")
    array = cut(peers.ours(SHAPE, "float32")[0])
    check_same(peer, array, peer.take(array))


@layouts
@pytest.mark.parametrize("peer", [peer for peer in peers.MAKERS if peer.is_strided], ids=lambda peer: peer.name)
def test_every_layout_is_taken_from_a_peer(peer, cut):
    peers.ready(peer)
    theirs = peer.make(peers.pattern(SHAPE, 4, "float32"), "float32")
    theirs = cut(theirs)
    if np.isscalar(theirs):
        pytest.skip(f"{peer.name} gives elements, not arrays without dimensions")
    check_same(peer, cuwheel.from_dlpack(theirs), theirs)


def test_negative_strides_go_to_the_peers_that_have_them(peer):
    if not peer.takes_negative_strides:
        pytest.skip(f"{peer.name} has no negative strides")
    array = peers.ours(SHAPE, "int16")[0][::-1, ::-2]
    check_same(peer, array, peer.take(array))


def test_arrays_go_there_and_back(peer):
    array, _ = peers.ours(SHAPE, "int32")
    back = cuwheel.from_dlpack(peer.take(array))
    assert (back.pointer, back.shape, back.strides) == (array.pointer, array.shape, array.strides)
    # Arrays of some libraries never change.
    if back.flags.writeable:
        back[2, 3] = -7
        assert array.copy_to_host()[2, 3] == -7


@pytest.mark.parametrize("kind", ["managed", "pinned", "mapped"])
@pytest.mark.parametrize("peer", [peers.MemoryView(), peers.TvmFfi()], ids=lambda peer: peer.name)
def test_memory_that_the_host_sees_comes_back_as_what_it_is(peer, kind):
    peers.ready(peer)
    array, _ = peers.ours(SHAPE, "float32", kind=kind)
    back = cuwheel.from_dlpack(peer.take(array))
    # To the driver mapped memory is pinned memory.
    assert back.kind == ("pinned" if kind == "mapped" else kind)
    assert (back.device, back.pointer) == (array.device, array.pointer)


@pytest.mark.gpu
def test_cupy_takes_managed_memory(cupy):
    array, values = peers.ours(SHAPE, "float32", kind="managed")
    np.testing.assert_array_equal(peers.Cupy().bytes_of(cupy.from_dlpack(array)), values.reshape(-1))


@pytest.mark.gpu
def test_torch_takes_memory_that_the_host_sees_as_the_hosts(torch):
    array = cuwheel.full((3, 4), 2.5, "float32", kind="pinned")
    capsule = array.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    tensor = torch.from_dlpack(capsule)
    assert (tensor.device.type, tensor.data_ptr()) == ("cpu", array.pointer)
    tensor += 1
    assert (np.asarray(array) == 3.5).all()


class ReadOnly:
    """Somebody's array that must not be written."""

    def __init__(self, array):
        interface = array.__cuda_array_interface__
        self.__cuda_array_interface__ = {**interface, "data": (interface["data"][0], True)}
        self.array = array


@pytest.fixture
def read_only():
    return cuwheel.from_dlpack(ReadOnly(peers.ours(SHAPE, "float32")[0]))


def test_read_only_is_said_to_whoever_listens(read_only):
    assert not read_only.flags.writeable
    view = peers.MemoryView()
    peers.ready(view)
    theirs = view.take(read_only)
    assert theirs.readonly
    assert not cuwheel.from_dlpack(theirs).flags.writeable


def test_a_consumer_without_flags_gets_no_read_only_array(read_only):
    with pytest.raises(BufferError, match="read-only"):
        cuwheel._native._devicearray._time_exchange(read_only, "view", 1)
    with pytest.raises(BufferError, match="read-only"):
        read_only.__dlpack__()


@pytest.mark.gpu
def test_jax_which_reads_no_flags_is_refused_read_only_arrays(read_only):
    jax = peers.ready(peers.Jax())
    with pytest.raises(BufferError, match="read-only"):
        jax.take(read_only)


@pytest.mark.gpu
def test_cuda_compute_takes_our_arrays_in_and_out():
    compute = peers.library("cuda.compute")
    if not hasattr(compute, "reduce_into"):
        pytest.skip("cuda.compute has no bindings for this driver")
    plus = compute.OpKind.PLUS
    numbers = cuwheel.asarray(np.arange(1000, dtype="int32"))
    total = cuwheel.empty(1, "int32")
    zero = np.zeros(1, "int32")
    compute.reduce_into(d_in=numbers, d_out=total, num_items=1000, op=plus, h_init=zero)
    assert total.copy_to_host()[0] == 499500
    sums = cuwheel.empty(1000, "int32")
    stream = cuwheel.current_stream()
    compute.exclusive_scan(d_in=numbers, d_out=sums, op=plus, init_value=zero, num_items=1000, stream=stream)
    expected = np.concatenate([[0], np.cumsum(np.arange(999, dtype="int32"))])
    np.testing.assert_array_equal(sums.copy_to_host(), expected)
