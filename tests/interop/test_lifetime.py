"""Who keeps whose memory alive, and for how long: the source may go first, and the last one frees, once."""

import gc
import threading
import time
import weakref

import cuwheel
import numpy as np
import peers
import pytest

COUNT = 1 << 20


class Owner:
    """Memory whose owner can be watched."""

    def __init__(self):
        self.array = cuwheel.full((64, 32), 3, "float32")

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def is_gone(owner, timeout_s=5.0):
    """Whether the owner is let go, perhaps by a thread of the other library.

    A Python object that a deleter in another library let go of is released with the next call of this one: a deleter may
    run on a thread that has no Python.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        gc.collect()
        cuwheel.current_stream()
        if owner() is None:
            return True
        if time.monotonic() > deadline:
            return False


def watched():
    """An array of ours, and a reference to what owns its memory."""
    owner = Owner()
    return cuwheel.from_dlpack(owner), weakref.ref(owner)


def test_a_peer_keeps_our_memory_alive_and_lets_it_go(peer):
    array, owner = watched()
    theirs = peer.take(array)
    del array
    gc.collect()
    assert owner() is not None
    assert (np.frombuffer(peer.bytes_of(theirs).tobytes(), "float32") == 3).all()
    del theirs
    assert is_gone(owner)


def test_a_peer_may_let_go_on_another_thread(peer):
    array, owner = watched()
    kept = [peer.take(array)]
    del array
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert is_gone(owner)


def test_views_of_a_peers_array_keep_it_alive(peer):
    array, owner = watched()
    kept = cuwheel.from_dlpack(peer.take(array))[1:, ::2].T
    del array
    gc.collect()
    assert owner() is not None
    del kept
    assert is_gone(owner)


def test_a_capsule_that_nobody_takes_frees_its_tensor():
    for version in (None, (1, 0)):
        array, owner = watched()
        capsule = array.__dlpack__(max_version=version)
        del array
        gc.collect()
        assert owner() is not None
        del capsule
        assert is_gone(owner)


@pytest.mark.gpu
class TestTorchMemory:
    """torch counts what it has allocated."""

    @pytest.fixture(autouse=True)
    def counted(self, torch):
        torch.zeros(1, device="cuda")
        gc.collect()
        self.allocated = torch.cuda.memory_allocated
        self.before = torch.cuda.memory_allocated()
        yield
        gc.collect()
        assert torch.cuda.memory_allocated() == self.before

    def test_the_memory_goes_back_with_our_last_view(self, torch):
        tensor = torch.full((COUNT,), 2.0, device="cuda")
        array = cuwheel.from_dlpack(tensor)
        view = array[::2]
        del tensor, array
        assert self.allocated() >= self.before + 4 * COUNT
        assert (view.copy_to_host() == 2).all()
        del view
        gc.collect()
        assert self.allocated() == self.before

    def test_taking_an_argument_keeps_nothing(self, torch):
        tensor = torch.ones(COUNT, device="cuda")
        for _ in range(100):
            cuwheel._native._devicearray._take_argument(tensor)
        del tensor

    def test_empty_tensors_are_let_go(self, torch):
        for _ in range(10):
            base = torch.ones((4, COUNT), device="cuda")
            array = cuwheel.from_dlpack(base[2:2])
            assert (array.shape, array.pointer) == ((0, COUNT), 0)
            del base, array

    def test_what_is_refused_is_let_go(self, torch):
        tensor = torch.ones(COUNT, dtype=torch.complex64, device="cuda").conj()
        for _ in range(10):
            with pytest.raises(BufferError, match="resolve_conj"):
                cuwheel.from_dlpack(tensor)
        del tensor

    def test_a_round_trip_through_torch_is_let_go(self, torch):
        tensor = torch.ones(COUNT, device="cuda")
        for _ in range(10):
            tensor = torch.from_dlpack(cuwheel.from_dlpack(tensor))
        assert float(tensor.sum()) == COUNT
        del tensor

    def test_the_deleter_runs_on_a_thread_without_python(self, torch):
        # The autograd engine of torch drops what a graph keeps on a thread of its own.
        leaf = torch.ones(COUNT, device="cuda", requires_grad=True)
        constant = torch.from_dlpack(cuwheel.full(COUNT, 3, "float32"))
        (leaf * constant).sum().backward()
        del constant
        assert bool((leaf.grad == 3).all())
        del leaf
