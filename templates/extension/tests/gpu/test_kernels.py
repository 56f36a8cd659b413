"""The kernels on arrays of torch and CuPy: results, streams, CUDA graphs, errors."""

import numpy as np
import pytest

import {= package =}

pytestmark = pytest.mark.gpu

LENGTHS = [0, 1, 31, 257, 5000, 3_000_000]


def values(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def row_sums(x):
    return x.sum(axis=-1, dtype=np.float64).astype(np.float32)


@pytest.mark.parametrize("length", LENGTHS)
def test_saxpy_of_any_length(library, length):
    x, y = values(length), values(length, seed=1)
    out = library.array(np.zeros_like(x))
    {= package =}.saxpy(2.5, library.array(x), library.array(y), out)
    np.testing.assert_allclose(library.host(out), 2.5 * x + y, rtol=1e-5, atol=1e-5)


def test_saxpy_in_place_and_of_any_shape(library):
    x, y = values(3, 4, 5), values(3, 4, 5, seed=1)
    on_device = library.array(y)
    {= package =}.saxpy(-1.0, library.array(x), on_device, on_device)
    np.testing.assert_allclose(library.host(on_device), y - x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(5,), (0,), (1, 300_000), (3, 257), (10_000, 3), (2, 3, 64), (4, 0), (0, 4)])
def test_sums_along_the_last_axis(library, shape):
    x = values(*shape)
    out = library.array(np.full(shape[:-1], np.nan, np.float32))
    {= package =}.sum(library.array(x), out)
    np.testing.assert_allclose(library.host(out), row_sums(x), rtol=1e-6, atol=1e-6)


def test_equal_rows_have_equal_sums(library):
    x = np.tile(values(100_003), (7, 1))
    out = library.array(np.zeros(7, np.float32))
    {= package =}.sum(library.array(x), out)
    assert len(set(library.host(out).tolist())) == 1


def test_launches_are_in_order_with_the_library_s_current_stream(library):
    x = values(4_000_000)
    with library.stream():
        on_device = library.array(x) + 1  # still being computed when saxpy is called
        out = library.array(np.zeros_like(x))
        {= package =}.saxpy(2.0, on_device, on_device, out)
        doubled = out + out
    library.synchronize()
    np.testing.assert_allclose(library.host(doubled), 6 * (x + 1), rtol=1e-5, atol=1e-5)


def test_launches_are_captured_into_a_graph(library):
    x, total = library.array(np.ones((2, 1000), np.float32)), library.array(np.zeros(2, np.float32))

    def work():
        {= package =}.saxpy(1.0, x, x, x)
        {= package =}.sum(x, total)

    work()
    library.synchronize()
    replay = library.captured(work)
    library.synchronize()
    assert library.host(total).tolist() == [2000, 2000], "what is captured does not run"
    replay()
    replay()
    library.synchronize()
    assert library.host(total).tolist() == [8000, 8000]


def test_arguments_that_do_not_fit_are_named(library):
    x, y = library.array(values(8)), library.array(values(8))
    doubles, short, wide = library.array(np.zeros(8)), library.array(values(7)), library.array(values(8, 2))
    with pytest.raises(TypeError, match="float64"):
        {= package =}.saxpy(1.0, doubles, x, y)
    with pytest.raises(TypeError, match="out.*float64"):
        {= package =}.saxpy(1.0, x, y, doubles)
    with pytest.raises(ValueError, match="shapes"):
        {= package =}.saxpy(1.0, x, short, y)
    with pytest.raises(ValueError, match="x is not contiguous"):
        {= package =}.saxpy(1.0, wide[:, 0], x, y)
    with pytest.raises(ValueError, match="shapes"):
        {= package =}.sum(x, y)
    with pytest.raises(ValueError, match="host memory"):
        {= package =}.saxpy(1.0, values(8), x, y)


class ReadOnly:
    """An array that says that it must not be written to."""

    def __init__(self, array):
        interface = array.__cuda_array_interface__
        self.array = array
        self.__cuda_array_interface__ = {**interface, "data": (interface["data"][0], True)}


def test_read_only_arrays_are_read_and_not_written(library):
    x, out = library.array(values(8)), library.array(values(8, seed=1))
    {= package =}.saxpy(1.0, ReadOnly(x), ReadOnly(x), out)
    np.testing.assert_allclose(library.host(out), 2 * library.host(x), rtol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        {= package =}.saxpy(1.0, x, x, ReadOnly(out))
