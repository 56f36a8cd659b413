"""Dispatchers: which arguments share an overload, how one is made, and what a call costs once it is there."""

import gc
import os
import pickle
import signal
import threading
import time
import weakref

import cuwheel
import fresh_python
import kernels
import numpy as np
import pytest
from at_once import at_once
from cuwheel import ArgumentType

POINTER = "// parameters: .param .u64 x\n"


def template(name="k<T>", signature=("T* x",), source=POINTER, **options) -> cuwheel.Dispatcher:
    return cuwheel.Dispatcher(source, name, signature, **options)


def names(dispatcher) -> list[str]:
    return [kernel.name for _, kernel in dispatcher.overloads]


def array(dtype="float32", shape=(4, 6)):
    return cuwheel.zeros(shape, dtype)


class Exporting:
    """An array of another library."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.owner.__dlpack__(**arguments)


def test_overloads_differ_in_what_the_template_has_variables_for(driver, compiler):
    cases = [
        (template(), ["k<float>", "k<double>"]),
        (template("k<T, 3>", ("const T* x",)), ["k<float, 3>", "k<double, 3>"]),
        (template("k<N>", ("view[float32, N] x",), "// parameters: .param .align 8 .b8 x[40]"), ["k<2>"]),
        (template("plain", ("void*",)), ["plain"]),
    ]
    for dispatcher, expected in cases:
        for dtype in ("float32", "float64", "float32"):
            if dtype == "float32" or "double" in str(expected) or expected == ["plain"]:
                dispatcher[1, 32](array(dtype))
        assert names(dispatcher) == expected
    before = compiler.compiled
    dispatcher[1, 32](array("int8", 3)[::2])
    assert compiler.compiled == before


def test_shape_and_order_decide_where_the_template_says_so(driver, compiler):
    dispatcher = template("k<T, N, C>", ("view[T, N, C] x",), "// parameters: .param .align 8 .b8 x[40]")
    matrix = array()
    for each in (matrix, matrix[:, ::2], matrix.T, matrix, Exporting(matrix)):
        dispatcher[1, 1](each)
    assert names(dispatcher) == ["k<float, 2, true>", "k<float, 2, false>"]
    [(types,), _] = [types for types, _ in dispatcher.overloads]
    assert (str(types), str(types.dtype), types.ndim, types.order) == ("float32[2, C]", "float32", 2, "C")


SCALARS = [
    (1, "long long"),
    (True, "bool"),
    (1.5, "double"),
    (1j, "cuda::std::complex<double>"),
    (np.float32(1), "float"),
    (np.float64(1), "double"),
    (np.uint16(1), "unsigned short"),
    (np.longlong(1), "long long"),
    (np.bool_(1), "bool"),
    (np.complex64(1), "cuda::std::complex<float>"),
]


@pytest.mark.parametrize(("value", "expected"), SCALARS, ids=[repr(value) for value, _ in SCALARS])
def test_a_number_decides_where_no_array_does(driver, compiler, value, expected):
    dispatcher = template("k<T>", ("T x",))
    kernel = dispatcher.kernel_for(value)
    assert kernel.name == f"k<{expected}>"
    converted = template("k<T>", ("T* x", "T a"))
    assert converted.kernel_for(array("float32"), value).name == "k<float>"


def test_types_get_other_names_in_cplusplus(driver, compiler):
    dispatcher = template(types={"float16": "my::half", "float32": "float4"})
    for dtype in ("float16", "float32", "bool"):
        dispatcher.kernel_for(array(dtype))
    assert names(dispatcher) == ["k<my::half>", "k<float4>", "k<bool>"]
    unusual = array("float8_e3m4")
    with pytest.raises(TypeError, match=r'argument 0 \(x\) of k<T> has the type float8_e3m4, and no C\+\+ type is known for it; name one: types='):
        dispatcher[1, 1](unusual)


MISTAKES = [
    (lambda a, b: (a,), TypeError, "k<T> takes 3 arguments (T* y, const T* x, T a), and 1 are given"),
    (lambda a, b: (a, b, 1), TypeError, "T of k<T> is float32 by argument 0 and float64 by argument 1"),
    (lambda a, b: (a, 1, 1), TypeError, "argument 1 (x) of k<T>: int is no array, and the parameter is const T* x"),
    (lambda a, b: (a, a, a), TypeError, 'argument 2 (a) of kernel "k<float>": an array is no number, and the parameter is float32'),
    (lambda a, b: (a, a, "1"), TypeError, 'argument 2 (a) of kernel "k<float>": str is no number, and the parameter is float32'),
    (lambda a, b: (a, a, 2**200), OverflowError, 'argument 2 (a) of kernel "k<float>": 1606938044258990275541962092341162602522… does not fit float32'),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "message"), MISTAKES)
def test_mistakes_are_named(driver, compiler, arguments, error, message):
    dispatcher = template("k<T>", ("T* y", "const T* x", "T a"), "// parameters: .param .u64 y, .param .u64 x, .param .f32 a")
    with pytest.raises(error) as raised:
        dispatcher[1, 1](*arguments(array("float32"), array("float64")))
    assert str(raised.value).startswith(message[:90])


def test_what_is_no_number_is_named(driver, compiler):
    dispatcher = template("k<T>", ("T value",))
    for value, name in [("1", "str"), (None, "NoneType"), (np.zeros(2), "numpy.ndarray")]:
        with pytest.raises(TypeError) as raised:
            dispatcher[1, 1](value)
        assert str(raised.value) == f"argument 0 (value) of k<T>: {name} is no number, and the parameter is T value"
    with pytest.raises(TypeError, match=r"argument 0 \(value\) of k<T> is an array, and the parameter is T value"):
        dispatcher[1, 1](array())


def test_keywords_are_refused(driver, compiler):
    for configured in (template()[1, 1], kernels.untyped("void*")[1, 1]):
        with pytest.raises(TypeError, match=r"Configured\w+\.__call__\(\) got an unexpected keyword argument 'x'"):
            configured(x=1)


def test_an_array_in_host_memory_is_refused_with_its_place(driver, compiler):
    with pytest.raises(ValueError, match="the array is in host memory") as raised:
        template()[1, 1](np.zeros(3))
    assert raised.value.__notes__ == ["argument 0 (x) of k<T>"]


WRONG = [
    ((POINTER,), {}, TypeError, "a dispatcher of source needs the name of the kernel and a signature"),
    ((POINTER, "k<T>"), {}, TypeError, "a dispatcher of source needs the name of the kernel and a signature"),
    ((POINTER, "k<T>", ("U*",)), {}, ValueError, '"U*" is no type of a parameter'),
    ((POINTER, "k<T>", "T*"), {}, TypeError, "a signature is a tuple of texts"),
    ((8,), {}, TypeError, "a source is CUDA C++ as a string, or a path object, not int"),
    ((len,), {"options": ["-D"]}, TypeError, "a function compiles by itself"),
    ((len, "k", ("T*",)), {}, ValueError, '"T*" is no type of a parameter'),
    ((POINTER, "k<T>", ("T*",)), {"types": {"float99": "x"}}, TypeError, "float99"),
    ((POINTER, "k<T>", ("T*",)), {"architecture": "x"}, ValueError, '"x" is no architecture'),
]


@pytest.mark.parametrize(("arguments", "options", "error", "message"), WRONG)
def test_a_dispatcher_that_could_not_work_is_refused_at_once(arguments, options, error, message):
    with pytest.raises(error) as raised:
        cuwheel.Dispatcher(*arguments, **options)
    assert message in str(raised.value)


def function(make, *parameters: str, **options):
    """A dispatcher of a function, and the calls that the function gets."""
    calls = []

    def made(*types):
        calls.append(types)
        return make(kernels.module(kernels.entry("k", *parameters)))

    return cuwheel.Dispatcher(made, **options), calls


RETURNED = {
    "kernel": lambda module: module.kernel("k", ("void* x", "float32 a")),
    "module": lambda module: module,
    "text": lambda module: kernels.HEAD + kernels.entry("k", "void*", "float32"),
    "image": lambda module: (kernels.HEAD + kernels.entry("k", "void*", "float32")).encode(),
}


@pytest.mark.parametrize("make", RETURNED.values(), ids=RETURNED)
def test_a_function_makes_an_overload_for_each_combination_of_types(driver, make):
    dispatcher, calls = function(make, "void*", "float32")
    matrix = array()
    for _ in range(2):
        for arguments in [(matrix, 1.0), (Exporting(matrix), 2.0), (matrix.T, 1.0), (matrix[0], 1.0), (matrix, np.float32(1))]:
            dispatcher[1, 32](*arguments)
    number = ArgumentType("float64")
    expected = [
        (ArgumentType("float32", 2), number),
        (ArgumentType("float32", 2, "F"), number),
        (ArgumentType("float32", 1), number),
        (ArgumentType("float32", 2), ArgumentType(np.float32)),
    ]
    assert calls == expected == [types for types, _ in dispatcher.overloads]
    assert driver.report()["launch_count"] == 10


def test_a_function_that_returns_something_else_is_told(driver):
    two = kernels.module(kernels.entry("a", "void*"), kernels.entry("b", "void*"))
    cases = [
        (lambda _: 8, TypeError, "the function of a dispatcher returned int; return a Kernel, a Module or an image"),
        (lambda _: b"nothing", ValueError, "this is no cubin, fatbin or PTX: it looks like text"),
        (lambda _: two, ValueError, "the image has 2 kernels (a, b); return one of them, or name it: Dispatcher(function, name)"),
    ]
    x = array()
    for make, error, message in cases:
        with pytest.raises(error) as raised:
            function(make)[0][1, 1](x)
        assert message in str(raised.value)
    dispatcher, _ = function(lambda _: two, name="b", signature=("void* x",))
    dispatcher[1, 1](x)
    assert (kernels.last_launch(driver)["function"], dispatcher.signature) == ("b", ("void* x",))


def test_the_device_of_the_arrays_is_current_while_a_function_compiles(driver):
    dispatcher, _ = function(lambda module: devices.append(cuwheel.current_stream().device.id) or module, "void*")
    devices = []
    x = cuwheel.zeros(4, "float32", device=1)
    dispatcher[1, 1](x)
    assert devices == [1]
    assert cuwheel.current_stream().device.id == 0


def test_threads_that_need_an_overload_wait_for_one_of_them(driver, compiler):
    dispatcher = template(source=POINTER + "// wait: 100\n")
    before = compiler.compiled
    x = array()
    at_once(lambda: dispatcher[1, 32](x), count=8)
    assert compiler.compiled == before + 1
    assert driver.report()["launch_count"] == 8


def test_a_failure_is_raised_in_all_that_wait_and_is_not_remembered(driver):
    errors, calls, entered = [], [], []

    def fail(*types):
        calls.append(types)
        if len(calls) == 1:
            # Until the others wait: one that came later would try again.
            while len(entered) < 6:
                time.sleep(0.01)
            time.sleep(1)
            raise KeyError("on purpose")
        return kernels.module(kernels.entry("k", "void*"))

    dispatcher = cuwheel.Dispatcher(fail)
    x = array()

    def work():
        entered.append(True)
        try:
            dispatcher[1, 1](x)
        except KeyError as error:
            errors.append(error)

    at_once(work, count=6)
    assert [repr(error) for error in errors] == ["KeyError('on purpose')"] * 6
    assert len(calls) == 1
    dispatcher[1, 1](x)
    assert (len(calls), len(dispatcher.overloads)) == (2, 1)


def test_what_does_not_compile_is_tried_again(driver, compiler):
    dispatcher = template(source="// fail: no\n")
    before = compiler.compiled
    for _ in range(2):
        with pytest.raises(cuwheel.CompileError, match="error: no"):
            dispatcher[1, 1](array())
    assert compiler.compiled == before + 2
    assert dispatcher.overloads == ()


def test_an_interrupt_is_for_the_thread_that_compiles(driver):
    calls = []
    under_way = threading.Event()

    def interrupted(*types):
        calls.append(threading.current_thread())
        under_way.set()
        time.sleep(0.1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return kernels.module(kernels.entry("k", "void*"))

    dispatcher = cuwheel.Dispatcher(interrupted)
    x, raised = array(), []

    def first():
        try:
            dispatcher[1, 1](x)
        except KeyboardInterrupt as error:
            raised.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    under_way.wait()
    dispatcher[1, 1](x)
    thread.join()
    assert (len(raised), len(calls)) == (1, 2)


def test_ctrl_c_reaches_a_thread_that_waits(driver):
    under_way, go_on = threading.Event(), threading.Event()

    def slow(*types):
        under_way.set()
        go_on.wait(30)
        return kernels.module(kernels.entry("k", "void*"))

    dispatcher, x = cuwheel.Dispatcher(slow), array()
    thread = threading.Thread(target=lambda: dispatcher[1, 1](x))
    thread.start()
    under_way.wait()
    interrupt = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        dispatcher[1, 1](x)
    assert not go_on.is_set()
    go_on.set()
    thread.join()
    interrupt.join()
    dispatcher[1, 1](x)
    assert len(dispatcher.overloads) == 1


def test_a_child_does_not_wait_for_threads_of_its_parent(compiler):
    code = """
        import os, threading, time, warnings
        import cuwheel

        warnings.simplefilter("ignore")
        dispatcher = cuwheel.Dispatcher("// wait: 600", "k<T>", ("T x",), architecture="sm_90", cache=False)
        thread = threading.Thread(target=dispatcher.kernel_for, args=(1,))
        thread.start()
        time.sleep(0.2)
        child = os.fork()
        if child == 0:
            os._exit(dispatcher.kernel_for(1).name != "k<long long>")
        print(os.waitpid(child, 0)[1])
        thread.join()
    """
    assert fresh_python.run(code, timeout=20) == "0\n"


def test_a_function_that_needs_its_own_overload_is_told(driver):
    def again(*types):
        dispatcher[1, 1](x)

    dispatcher, x = cuwheel.Dispatcher(again), array()
    with pytest.raises(RuntimeError, match="it is being made by this very thread"):
        dispatcher[1, 1](x)


def test_another_function_can_be_needed(driver):
    inner, _ = function(lambda module: module, "void*")

    def outer(*types):
        inner[1, 1](x)
        return kernels.module(kernels.entry("k", "void*"))

    x = array()
    cuwheel.Dispatcher(outer)[1, 1](x)
    assert driver.report()["launch_count"] == 2


def test_a_hit_makes_no_python_objects(driver, compiler):
    x = array("float32", 4)
    dispatcher = template("k<T>", ("T* y", "const T* x", "T a", "int32 n"), "// parameters: .param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n")
    for configured in (dispatcher[1, 32], function(lambda module: module, "void*", "void*", "float32", "int32")[0][1, 32]):
        kernels.check_makes_no_python_objects(configured, (x, x, 0.5, 4))


def test_everything_of_a_launch_can_be_said(driver, compiler):
    dispatcher = template()
    x = array()
    stream = cuwheel.Stream()
    stream.wait(x.stream)
    dispatcher[(2, 3), 32, stream, 64](x)
    dispatcher.launch((x,), grid=4, block=32, cluster=2, cooperative=True, attributes={"priority": -1})
    first, second = driver.report()["launches"]
    assert (first["grid"], first["shared_bytes"], first["stream"]) == ([2, 3, 1], 64, stream.handle)
    assert (second["cluster"], second["cooperative"], second["attributes"]) == ([2, 1, 1], True, [8])
    stream.synchronize()
    configured = dispatcher.configure(4, 32, 2, 16, cluster=2, attributes={"priority": 0})
    assert configured == dispatcher.configure(4, 32, 2, 16, cluster=2, attributes={"priority": 0})
    assert hash(configured) == hash(dispatcher.configure(4, 32, 2, 16, cluster=2, attributes={"priority": 0}))
    assert configured != template().configure(4, 32, 2, 16, cluster=2, attributes={"priority": 0})
    assert configured != dispatcher[4, 32]
    assert repr(configured) == "<ConfiguredDispatcher k<T> with grid (4, 1, 1), block (32, 1, 1), 16 bytes of shared memory, cluster (2, 1, 1), priority 0, stream 0x2>"  # fmt: skip
    assert (configured.dispatcher, configured.grid, configured.block) == (dispatcher, (4, 1, 1), (32, 1, 1))
    assert (configured.stream, configured.shared_bytes, configured.cluster) == (2, 16, (2, 1, 1))
    assert (configured.cooperative, configured.attributes) == (False, {"priority": 0})
    assert repr(dispatcher) == "<Dispatcher k<T>(T* x), 1 overload>"
    assert (dispatcher.name, dispatcher.signature) == ("k<T>", ("T* x",))
    assert (cuwheel.Dispatcher(len).name, cuwheel.Dispatcher(len).signature) == (None, None)


def make_kernel(*types):
    return kernels.module(kernels.entry("k", "void*"))


def test_dispatchers_are_pickled_with_their_parts(driver, compiler, tmp_path):
    (tmp_path / "k.cu").write_text(POINTER)
    original = cuwheel.Dispatcher(
        tmp_path / "k.cu", "k<T>", ("T* x",), types={"float32": "F"}, options=("-DX",), headers={"a.h": ""}
    )
    x = array()
    original[1, 1](x)
    (tmp_path / "k.cu").unlink()
    before = compiler.compiled
    twin = pickle.loads(pickle.dumps(original[1, 1]))
    twin(x)
    assert names(twin.dispatcher) == ["k<F>"]
    # What was compiled is on disk.
    assert compiler.compiled == before
    pickle.loads(pickle.dumps(cuwheel.Dispatcher(make_kernel)))[1, 1](x)
    with pytest.raises(TypeError, match="a stream is one of this process"):
        pickle.dumps(original[1, 1, cuwheel.Stream()])
    kind = ArgumentType("bfloat16", 3, "strided")
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert (repr(kind), hash(kind)) == ("<ArgumentType bfloat16[3, strided]>", hash(ArgumentType("bfloat16", 3, "strided")))
    for arguments in [("float32", 65), ("float32", 1, "A"), ("float32", None, "C")]:
        with pytest.raises(ValueError):
            ArgumentType(*arguments)


def test_a_dispatcher_in_a_cycle_is_collected():
    class Function:
        def __call__(self, *types):
            return None

    function = Function()
    function.dispatcher = cuwheel.Dispatcher(function)
    function.configured = function.dispatcher[1, 1]
    gone = weakref.ref(function.dispatcher)
    del function
    gc.collect()
    assert gone() is None
