"""What is particular to torch: gradients, lazy views, types and streams."""

import cuwheel
import numpy as np
import pytest

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def on_the_device(torch):
    if not torch.cuda.is_available():
        pytest.skip("this torch was built without CUDA, or finds no device")


@pytest.mark.parametrize("kind", ["leaf", "parameter", "result"])
def test_tensors_that_require_a_gradient_are_taken(torch, kind):
    tensor = torch.ones(8, device="cuda", requires_grad=True)
    tensor = {"leaf": tensor, "parameter": torch.nn.Parameter(tensor), "result": tensor * 1}[kind]
    array = cuwheel.from_dlpack(tensor)
    assert array.pointer == tensor.data_ptr()
    cuwheel._native._devicearray._take_argument(tensor)


LAZY = {
    "a conjugate": (lambda tensor: tensor.conj(), "resolve_conj"),
    "a conjugate of a view": (lambda tensor: tensor[::2].conj(), "resolve_conj"),
    "a conjugate of one element": (lambda tensor: tensor[1].conj(), "resolve_conj"),
    "the imaginary part of a conjugate": (lambda tensor: tensor.conj().imag, "resolve_neg"),
    "one element of such a part": (lambda tensor: tensor.conj().imag[3], "resolve_neg"),
}


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("take", ["from_dlpack", "argument"])
def test_lazy_views_are_refused_with_the_remedy(torch, name, take):
    make, remedy = LAZY[name]
    tensor = make(torch.tensor([1 + 2j, 3 - 4j, 5j, 6.0 + 1j], device="cuda"))
    functions = {"from_dlpack": cuwheel.from_dlpack, "argument": cuwheel._native._devicearray._take_argument}
    with pytest.raises(BufferError, match=remedy):
        functions[take](tensor)
    resolved = cuwheel.from_dlpack(getattr(tensor, remedy)())
    np.testing.assert_array_equal(resolved.copy_to_host(), tensor.cpu().resolve_conj().resolve_neg().numpy())


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.conj().conj(), lambda t: t.real, lambda t: t.imag])
def test_views_that_are_not_lazy_are_taken(torch, make):
    tensor = make(torch.tensor([1 + 2j, 3 - 4j, 5j], device="cuda"))
    array = cuwheel.from_dlpack(tensor)
    np.testing.assert_array_equal(array.copy_to_host(), tensor.cpu().numpy())


@pytest.mark.parametrize(
    "refused",
    [
        lambda torch: torch.eye(3, device="cuda").to_sparse(),
        lambda torch: torch.empty(3, device="meta"),
        lambda torch: torch.zeros(3, dtype=torch.complex32, device="cuda"),
    ],
    ids=["sparse", "meta", "complex32"],
)
def test_what_has_no_description_is_an_error(torch, refused):
    with pytest.raises((BufferError, RuntimeError, TypeError, ValueError)):
        cuwheel.from_dlpack(refused(torch))


def test_tensors_on_the_cpu_are_named_as_such(torch):
    with pytest.raises(ValueError, match="host memory"):
        cuwheel.from_dlpack(torch.ones(3))
    with pytest.raises(ValueError, match="host memory"):
        cuwheel._native._devicearray._take_argument(torch.ones(3))
    assert cuwheel.asarray(torch.ones(3)).copy_to_host().sum() == 3


def test_changes_on_either_side_are_seen_on_the_other(torch):
    tensor = torch.zeros((4, 4), device="cuda")
    array = cuwheel.from_dlpack(tensor)
    array[1] = 5
    assert float(tensor.sum()) == 20
    tensor += 1
    np.testing.assert_array_equal(cuwheel.from_dlpack(tensor).copy_to_host()[1], [6] * 4)


def test_streams_of_torch_are_streams_here(torch):
    side = torch.cuda.Stream()
    array = cuwheel.full(1000, 2, "float32", stream=side)
    assert array.stream.handle == side.cuda_stream
    side.synchronize()
    assert float(torch.from_dlpack(array).sum()) == 2000


def test_an_exchange_after_another_on_two_streams_keeps_the_order(torch):
    side = torch.cuda.Stream()
    tensor = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for value in range(1, 6):
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            tensor.fill_(value)
            array = cuwheel.from_dlpack(tensor)
        taken = torch.from_dlpack(array)
        assert bool((taken == value).all())
        side.wait_stream(torch.cuda.current_stream())


def test_cupy_waits_for_the_stream_in_the_interface(torch, cupy):
    stream = cuwheel.Stream()
    array = cuwheel.zeros(1 << 20, "float32", stream=stream)
    stream.synchronize()
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        torch.cuda._sleep(200_000_000)
    array[...] = 7
    assert array.__cuda_array_interface__["stream"] == stream.handle
    assert bool((cupy.asarray(array) == 7).all())


def test_an_import_from_cupy_waits_for_its_current_stream(torch, cupy):
    side = cupy.cuda.Stream(non_blocking=True)
    source = cupy.zeros(1 << 20, "float32")
    cupy.cuda.get_current_stream().synchronize()
    with side:
        with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
            torch.cuda._sleep(200_000_000)
        source[...] = 7
        by_dlpack = cuwheel.from_dlpack(source)
    assert (by_dlpack.copy_to_host() == 7).all()
