"""Functions on NumPy arrays: the one behind the C shim takes them, and the kernels do not."""

import math

import numpy as np
import pytest

import {= package =}

VALUES = np.linspace(-1, 3, 60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    "array", [VALUES, VALUES.T, VALUES[::-1, ::2], VALUES[1, 2, 3], VALUES[:0], np.array(0.5, np.float32)], ids=str
)
def test_arrays_of_any_shape_and_strides_are_added_up(array):
    array = np.asarray(array)
    assert {= package =}.host_sum(array) == pytest.approx(math.fsum(array.ravel().tolist()), abs=1e-12)


@pytest.mark.parametrize("value", [[1.0], 1.0, VALUES.astype(np.float64), VALUES.astype(">f4")], ids=str)
def test_anything_else_is_a_type_error(value):
    with pytest.raises(TypeError):
        {= package =}.host_sum(value)


def test_the_kernels_refuse_arrays_in_host_memory():
    with pytest.raises(ValueError, match="host memory"):
        {= package =}.saxpy(2.0, VALUES, VALUES, VALUES.copy())
    with pytest.raises(ValueError, match="host memory"):
        {= package =}.sum(VALUES, np.zeros((3, 4), np.float32))
