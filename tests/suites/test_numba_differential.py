"""The same kernels and arguments, launched by numba-cuda's own Python code and by the overlay: the same memory afterwards.

    cargo xtask test-gpu --wheel dist/overlay/numba_cuda….whl --suite tests/suites/test_numba_differential.py

With the released wheel both ways are the same, and nothing is compared.
"""

import random
import warnings

import numpy as np
import pytest

warnings.simplefilter("ignore")
cuda = pytest.importorskip("numba.cuda")

#: Kernels, each with this many launches.
KERNELS, LAUNCHES = 25, 4
DTYPES = [np.float32, np.float64, np.int8, np.int32, np.uint16, np.int64, np.complex64, np.bool_]


def array(rng, torch):
    """An array on the device, with its number of dimensions; of numba-cuda, or of torch."""
    ndim = rng.randrange(1, 4)
    shape = tuple(rng.randrange(1, 6) for _ in range(ndim))
    values = np.asarray(rng.choices(range(2), k=int(np.prod(shape)))).reshape(shape)
    if torch is not None and rng.random() < 0.5:
        tensor = torch.as_tensor(values, device="cuda").to(rng.choice([torch.float32, torch.int64, torch.float64]))
        return tensor.t() if ndim == 2 and rng.random() < 0.5 else tensor
    order = rng.choice("CF")
    return cuda.to_device(np.asarray(values, dtype=rng.choice(DTYPES), order=order))


def scalar(rng):
    return rng.choice([rng.randrange(-1000, 1000), rng.random(), rng.choice([True, False]), complex(rng.random(), 2), np.float32(1.5)])


def source(arguments):
    """A kernel that writes what it sees of each argument to `out`."""
    lines = [f"def kernel(out, {', '.join(f'a{index}' for index in range(len(arguments)))}):", " n = 0"]
    for index, value in enumerate(arguments):
        name = f"a{index}"
        if hasattr(value, "shape") and len(value.shape):
            indices = [f"i{axis}" for axis in range(len(value.shape))]
            lines.append(" total = 0.0")
            for axis, variable in enumerate(indices):
                lines.append(" " * (axis + 1) + f"for {variable} in range({name}.shape[{axis}]):")
            element = f"{name}[{', '.join(indices)}]"
            element = f"{element}.real" if "complex" in str(value.dtype) else f"({element} * 1.0)"
            weight = " + ".join(f"{variable} * {7 ** axis}" for axis, variable in enumerate(indices))
            lines.append(" " * (len(indices) + 1) + f"total += {element} * ({weight} + 1)")
            lines += [" out[n] = total", " n += 1"]
            lines += [line for axis in range(len(indices)) for line in (f" out[n] = {name}.strides[{axis}]", " n += 1")]
        elif isinstance(value, complex):
            lines += [f" out[n] = {name}.real", " n += 1", f" out[n] = {name}.imag", " n += 1"]
        else:
            lines += [f" out[n] = {name} * 1.0", " n += 1"]
    return "\n".join(lines) + "\n"


def test_both_ways_leave_the_same_memory():
    from numba.cuda.cext import _dispatcher
    from numba.cuda.dispatcher import _Kernel

    torch = None
    try:
        import torch
    except ImportError:
        pass
    rng = random.Random(20261129)
    native = getattr(_dispatcher, "launch_stats", lambda: {"native": 0})()["native"]
    launches = 0
    for _ in range(KERNELS):
        count = rng.randrange(1, 6)
        arguments = [array(rng, torch) if rng.random() < 0.6 else scalar(rng) for _ in range(count)]
        namespace = {}
        exec(source(arguments), namespace)
        kernel = cuda.jit(namespace["kernel"])
        stream = cuda.stream() if rng.random() < 0.5 else 0
        configured = kernel[1, 1, stream]
        outs = [cuda.to_device(np.full(64, -1.0)) for _ in range(2)]
        for _ in range(LAUNCHES):
            configured(outs[0], *arguments)
        overload = next(iter(kernel.overloads.values()))
        shape = (configured.griddim, configured.blockdim, configured.stream, configured.sharedmem)
        _Kernel.launch(overload, (outs[1], *arguments), *shape)
        cuda.synchronize()
        ours, theirs = (out.copy_to_host() for out in outs)
        np.testing.assert_array_equal(ours, theirs, err_msg=source(arguments))
        assert (theirs != -1.0).any()
        launches += LAUNCHES
    if hasattr(_dispatcher, "launch_stats"):
        assert _dispatcher.launch_stats()["native"] - native == launches, _dispatcher.launch_stats()
