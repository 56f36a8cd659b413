"""Launches of numba-cuda's kernels by this library, beside those by numba-cuda's own Python code.

Each test is a process of its own, with numba-cuda on our modules. Both ways are tried there with the same kernel and the same
arguments: what the driver gets has to be the same, and so have exceptions.
"""

import fresh_python
import pytest


def test_the_driver_gets_the_same_parameters(run):
    run("""
    import random
    from numba.cuda.types import UniTuple, Tuple
    random.seed(20261129)
    dtypes = [np.float32, np.float64, np.int8, np.int32, np.uint16, np.complex64, np.bool_]

    def an_array():
        ndim = random.randrange(5)
        shape = tuple(random.choice([0, 1, 1, 2, 3, 5]) for _ in range(ndim))
        order = random.choice("CF")
        value = cuda.device_array(shape, random.choice(dtypes), order=order)
        if ndim and random.random() < 0.4:
            try:
                value = value[tuple(slice(random.randrange(2), None, random.choice([1, 2])) for _ in range(ndim))]
            except Exception:
                pass
        return cuda.typeof(value) if hasattr(cuda, "typeof") else value._numba_type_, value

    def a_number():
        name = random.choice("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
        value = random.choice([0, 1, -1, 127, 128, 255, 2**31, -2**31, 2**32 + 5, 2**63 - 1, -2**63, 2**64 - 1, 2**70, True])
        if random.random() < 0.3:
            value = getattr(np, name)(random.randrange(100))
        return getattr(types, name), value

    def a_float():
        name = random.choice(["float32", "float64"])
        value = random.choice([0.0, -0.0, 1.5, 1e300, -1e300, float("inf"), float("nan"), 7, 2**60 + 1, np.float32(0.1),
                               np.float64(0.1), np.int32(3), True, 1e-46])
        return getattr(types, name), value

    def a_half():
        return types.float16, np.float16(random.choice([0.0, 1.5, 65504.0, float("inf")]))

    def a_bool():
        return types.boolean, random.choice([True, False, np.True_, np.False_])

    def a_complex():
        name = random.choice(["complex64", "complex128"])
        return getattr(types, name), random.choice([1 + 2j, complex("nan"), -0.0j, np.complex128(3 - 1j), 1e300j])

    def a_pointer():
        return types.CPointer(types.float32), random.choice([0, 4096, 2**63 - 1, -1])

    def a_tuple():
        items = [an_argument() for _ in range(random.randrange(1, 4))]
        return types.BaseTuple.from_types([kind for kind, _ in items]), tuple(value for _, value in items)

    def an_argument():
        return random.choice([an_array, an_array, a_number, a_float, a_half, a_bool, a_complex, a_pointer, a_tuple])()

    native = total = 0
    for number in range(300):
        made = [an_argument() for _ in range(random.randrange(6))]
        _, overload = kernel(*[kind for kind, _ in made], name=f"k{number}")
        args = tuple(value for _, value in made)
        for _ in range(2):
            launches, raised, is_native = both(overload, args)
            assert raised is None and len(launches) == 1, raised
            native += is_native
            total += 1
    assert native == total, (native, total, stats())
    """)


def test_the_same_exceptions_for_the_same_mistakes(run):
    run("""
    a = cuda.device_array(4, np.float32)
    _, one = kernel(array)
    _, number = kernel(types.int32)
    _, real = kernel(types.float32)
    _, flag = kernel(types.boolean)
    _, pair = kernel(types.UniTuple(types.int32, 2))
    _, half = kernel(types.float16)
    _, pointer = kernel(types.CPointer(types.float32))
    _, plex = kernel(types.complex64)
    cases = [
        (number, (1.5,)), (number, ("x",)), (number, (None,)), (number, (a,)), (number, (1 + 2j,)),
        (real, ("x",)), (real, (1j,)), (real, (10**400,)), (real, (None,)), (real, (a,)),
        (flag, (2,)), (flag, ("x",)), (flag, (None,)), (flag, (1.0,)),
        (pair, ((1,),)), (pair, ((1, 2, 3),)), (pair, (1,)), (pair, ([1, 2],)), (pair, ((1, "x"),)),
        (half, (1.5,)), (half, (1e9,)), (half, ("x",)),
        (pointer, (2**63,)), (pointer, (2.0,)), (pointer, (None,)), (pointer, (True,)),
        (plex, (1.5,)), (plex, ("x",)), (plex, (np.complex64(2j),)),
        (one, (None,)), (one, (object(),)),
        (one, (a, a)),
    ]
    for overload, args in cases:
        both(overload, args)
    class Index:
        def __index__(self): return 300
        def __float__(self): return 2.5
    for overload in (number, real):
        assert both(overload, (Index(),))[2]
    class Broken:
        def __index__(self): raise KeyError("no number")
        __float__ = __index__
    for overload in (number, real):
        assert both(overload, (Broken(),))[1] == (KeyError, "'no number'")

    for config in [((0, 1, 1), (32, 1, 1)), ((1, 1, 1), (0, 1, 1)), ((-1, 1, 1), (1, 1, 1)), ((1, 1), (1, 1)), (1, 32), ([1, 1, 1], (1, 1, 1)),
                   ((np.int64(1), 1, 1), (1, 1, 1)), ((1.0, 1, 1), (1, 1, 1)), ((True, 1, 1), (1, 1, 1)), ((2**40, 1, 1), (1, 1, 1)),
                   ((1, 1, 1, 1), (1, 1, 1)), ((1, 1, 1), (4096, 1, 1)), ((1, 65536, 1), (1, 1, 1))]:
        both(one, (a,), config)
    for shared_bytes in [0, 1024, -1, 2**20, 2**33, 1.5, "x", True, np.int32(4)]:
        both(one, (a,), shared_bytes=shared_bytes)
    for stream in [1, "x", object()]:
        both(one, (a,), stream=stream)
    """)


def test_what_is_left_to_python(run):
    run("""
    a = cuda.device_array(4, np.float32)
    host = np.zeros(4, np.float32)

    def reason(overload, args, **options):
        before = stats()[1]
        launches, raised, is_native = both(overload, args, **options)
        after = stats()[1]
        assert not is_native
        [(name, _)] = [item for item in after.items() if before.get(item[0], 0) != item[1]]
        return name

    _, one = kernel(array)
    assert both(one, (a,))[2]
    assert reason(one, (host,)) == "host array"
    assert reason(one, (cuda.In(host),)) == "argument"
    assert reason(one, (cuda.Out(host),)) == "argument"
    assert reason(one, (cuda.InOut(a),)) == "argument"
    from cuda.core.utils import StridedMemoryView
    view = StridedMemoryView.from_cuda_array_interface(a, stream_ptr=-1)
    assert reason(one, (view,)) == "argument"

    _, record = kernel(types.Record.make_c_struct([("x", types.int32)]))
    assert reason(record, (np.zeros(1, [("x", np.int32)])[0],)) == "parameter type"
    _, date = kernel(types.NPDatetime("s"))
    assert reason(date, (np.datetime64(5, "s"),)) == "parameter type"

    class Extension:
        seen = 0
        def prepare_args(self, kind, value, stream, retr):
            Extension.seen += 1
            return kind, value
    extensions = []
    _, extended = kernel(array, extensions=extensions)
    assert both(extended, (a,))[2]
    extensions.append(Extension())
    assert reason(extended, (a,)) == "extensions"
    assert Extension.seen == 2
    extensions.clear()
    assert both(extended, (a,))[2]

    _, cooperative = kernel(array, cooperative=True)
    assert reason(cooperative, (a,)) == "cooperative"
    one.cooperative = True
    assert reason(one, (a,)) == "cooperative"
    one.cooperative = False
    one.debug = True
    outcome(one.launch, (a,), (1, 1, 1), (1, 1, 1), 0, 0)
    assert stats()[1]["debug"] == 1
    one.debug = False

    original = _Kernel.launch
    calls = []
    def replaced(self, *args, **keywords):
        calls.append(self)
        return original(self, *args, **keywords)
    _Kernel.launch = replaced
    one.launch((a,), (1, 1, 1), (1, 1, 1), stream := cuda.dispatcher.driver._to_core_stream(0), 0)
    assert calls == [one] and stats()[1]["launch replaced"] == 1
    _Kernel.launch = original

    # By name, and with defaults: the stream that `launch` has by default is none of cuda.core's, which it says.
    launches, raised, is_native = outcome(lambda: one.launch(args=(a,), griddim=(1, 1, 1), blockdim=(1, 1, 1), stream=stream))
    assert (len(launches), raised, is_native) == (1, None, False)
    launches, raised, is_native = outcome(lambda: one.launch(nothing=1))
    assert raised[0] is TypeError and "nothing" in raised[1], raised
    """)


def test_arrays_with_the_interface_only(run):
    run("""
    class Interface:
        def __init__(self, of, **fields):
            self.of = of
            self.__dict__["fields"] = fields
        @property
        def __cuda_array_interface__(self):
            return self.of.__cuda_array_interface__ | self.fields
    a = cuda.device_array((4, 6), np.float32)
    _, two = kernel(types.Array(types.float32, 2, "A"))
    assert both(two, (Interface(a),))[2]
    assert both(two, (Interface(a, strides=(24, 4)),))[2]
    assert both(two, (Interface(a[:, ::2]),))[2]
    stream = cuda.stream()
    for fields in [{"stream": int(stream.handle)}, {"version": 2}, {"mask": Interface(a)}, {"strides": (24, 3)},
                   {"shape": (0, 6)}, {"data": (5, False)}, {"typestr": "|V4"}, {"strides": (24,)},
                   {"typestr": "<i3"}, {"typestr": "<f7"}, {"typestr": "|f1"}, {"typestr": "<c4"}, {"typestr": "|b2"},
                   {"typestr": ">f4"}, {"shape": (-4, -6)}, {"shape": [4, 6]}, {"strides": [24, 4]},
                   {"data": (np.uint64(a.gpu_data.device_pointer_value), False)}, {"data": [a.gpu_data.device_pointer_value, False]}]:
        assert not both(two, (Interface(a, **fields),))[2], fields
    """)


def test_arrays_with_an_exchange_table(run):
    run("""
    import cuwheel
    a = cuwheel.zeros((4, 6), "float32")
    two = types.Array(types.float32, 2, "C")
    dispatcher, overload = kernel(two)
    assert both(overload, (a,))[2]
    assert both(overload, (a.T,))[2]
    assert both(overload, (a[::2, ::3],))[2]
    # Elsewhere than on the device of the context, Python says what is to be said.
    other = cuwheel.zeros((4, 6), "float32", device=1)
    assert not both(overload, (other,))[2]

    # Typed by what the table tells, Python is asked once for each type.
    asked = []
    original = type(dispatcher).typeof_pyval
    def typeof_pyval(self, value):
        asked.append(value)
        return original(self, value)
    type(dispatcher).typeof_pyval = typeof_pyval
    driver.reset()
    configured = dispatcher[1, 32]
    for _ in range(5):
        configured(cuwheel.zeros((4, 6), "float32"))
    assert len(asked) <= 2, len(asked)
    assert [launch["holds_gil"] for launch in driver.report()["launches"]] == [False] * 5

    # The launch waits for the stream that the producer works on, and for no other.
    stream = cuda.stream()
    core = cuda.dispatcher.driver._to_core_stream(stream)
    driver.reset()
    overload.launch((a,), (1, 1, 1), (1, 1, 1), core, 0)
    assert driver.calls("cuEventRecord") == driver.calls("cuStreamWaitEvent") == 1, driver.report()["calls"]
    own = cuwheel.Stream(device=0)
    core = cuda.dispatcher.driver._to_core_stream(cuda.external_stream(own.handle))
    with cuwheel.use_stream(own):
        driver.reset()
        overload.launch((cuwheel.zeros((4, 6), "float32"),), (1, 1, 1), (1, 1, 1), core, 0)
        assert driver.calls("cuEventRecord", "cuStreamWaitEvent") == 0, driver.report()["calls"]
        assert driver.report()["launches"][0]["stream"] == own.handle
    """)


def test_views_of_cuda_core_are_typed_one_by_one(run):
    run("""
    import cuwheel
    from cuda.core.utils import StridedMemoryView
    a = cuwheel.zeros((4, 4), "float32")
    dispatcher, overload = kernel(types.Array(types.float32, 2, "C"))
    view = StridedMemoryView.from_any_interface(a, stream_ptr=-1)
    asked = []
    original = type(dispatcher).typeof_pyval
    type(dispatcher).typeof_pyval = lambda self, value: (asked.append(value), original(self, value))[1]
    for _ in range(3):
        dispatcher[1, 32](view)
    assert len(asked) >= 3

    # The launch waits once for an array on another stream, also when Python makes it.
    stream = cuda.stream()
    _, two = kernel(types.Array(types.float32, 2, "C"), types.Array(types.float32, 2, "C"), name="two")
    driver.reset()
    two.launch((a, view), (1, 1, 1), (1, 1, 1), cuda.dispatcher.driver._to_core_stream(stream), 0)
    assert driver.calls("cuEventRecord") == 1, driver.report()["calls"]
    """)


def test_classes_that_change_what_they_derive_from(run):
    run("""
    import collections
    class Complex(complex):
        real = property(lambda self: 7.0)
    class Pair(tuple):
        def __iter__(self):
            return iter((5, 6))
    Point = collections.namedtuple("Point", "x y")
    _, number = kernel(types.complex64)
    assert not both(number, (Complex(1, 2),))[2]
    _, pair = kernel(types.UniTuple(types.int32, 2))
    assert not both(pair, (Pair((1, 2)),))[2]
    assert both(pair, (Point(1, 2),))[2]
    """)


def test_an_argument_that_closes_the_stream(run):
    run("""
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    _, number = kernel(types.int64)
    stream = device.create_stream()
    class Closing:
        def __index__(self):
            stream.close()
            return 1
    try:
        number.launch((Closing(),), (1, 1, 1), (1, 1, 1), stream, 0)
    except Exception as error:
        print(error)
    assert driver.violations() == []
    """)


def test_streams(run):
    run("""
    a = cuda.device_array(4, np.float32)
    _, one = kernel(array)
    core = cuda.dispatcher.driver._to_core_stream
    streams = [core(0), core(cuda.default_stream()), core(cuda.legacy_default_stream()), core(cuda.per_thread_default_stream()),
               core(cuda.stream())]
    for stream in streams * 2:
        assert both(one, (a,), stream=stream)[2]
    # A stream that was closed has no handle any more.
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    assert both(one, (a,), stream=stream)[2]
    handle = int(stream.handle)
    stream.close()
    launches, _, _ = both(one, (a,), stream=stream)
    assert all(launch["stream"] != handle for launch in launches)
    """)


@pytest.mark.parametrize("variable", ["1", "00"])
def test_streams_of_threads(run, variable):
    run(
        """
    a = cuda.device_array(4, np.float32)
    core = cuda.dispatcher.driver._to_core_stream(0)
    expected = 2 if sys.argv[3] == "1" else 0
    for variable in (sys.argv[3], "1"):
        # cuda.bindings has made up its mind by now.
        os.environ["CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"] = variable
        _, one = kernel(array)
        launches, raised, is_native = outcome(one.launch, (a,), (1, 1, 1), (1, 1, 1), core, 0)
        assert is_native and raised is None
        assert launches[0]["stream"] == expected
    """,
        variable,
        environment={"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": variable},
    )


def test_contexts(run):
    run("""
    a = cuda.device_array(4, np.float32)
    dispatcher, one = kernel(array)
    core = cuda.dispatcher.driver._to_core_stream(0)
    arguments = ((a,), (1, 1, 1), (1, 1, 1), core, 0)
    for _ in range(2):
        assert both(one, (a,))[2]
    with cuda.gpus[1]:
        b = cuda.device_array(4, np.float32)
        for _ in range(2):
            launches, raised, is_native = both(one, (b,))
            assert is_native and launches[0]["device"] == 1
    assert both(one, (a,))[0][0]["device"] == 0

    # A thread without a context gets that of device 0, as in Python.
    import threading
    def thread():
        results.append(outcome(one.launch, *arguments))
    results = []
    thread = threading.Thread(target=thread)
    thread.start(); thread.join()
    assert results[0][1] is None and results[0][2], results

    # What numba-cuda does not know of any more is not used.
    first = one._codelibrary.get_cufunc()
    one._codelibrary._cufunc_cache.clear()
    assert both(one, (a,))[2]
    assert one._codelibrary.get_cufunc() is not first

    # After a reset there is another context at the same address, and the kernel is looked for there.
    _, number = kernel(types.int64, name="number")
    assert both(number, (1,))[2]
    driver.call("cuDevicePrimaryCtxReset_v2", 0)
    assert both(number, (1,))[2]
    driver.call("cuDevicePrimaryCtxReset_v2", 0)
    outcome(number.launch, (1,), *arguments[1:])
    assert driver.calls("cuKernelGetFunction") == 1 and driver.violations() == []
    outcome(number.launch, (1,), *arguments[1:])
    assert driver.calls("cuKernelGetFunction") == 0
    """)


def test_kernels_are_freed(run):
    run("""
    import weakref
    a = cuda.device_array(4, np.float32)
    dispatcher, one = kernel(array)
    launch = one.launch
    reference, library = weakref.ref(one), weakref.ref(one._codelibrary)
    for _ in range(3):
        dispatcher[1, 32](a)
    # numba-cuda keeps the last dispatchers and configurations.
    type(dispatcher)._recent.clear()
    type(dispatcher).configure.cache_clear()
    del one, dispatcher
    gc.collect()
    assert reference() is not None
    launch((a,), (1, 1, 1), (1, 1, 1), cuda.dispatcher.driver._to_core_stream(0), 0)
    assert stats()[0] == 4
    del launch
    gc.collect()
    assert reference() is None and library() is None

    # Nor are arrays kept: at the address of one there may be another.
    dispatcher, one = kernel(array)
    for size in range(1, 200):
        b = cuda.device_array(size, np.float32)
        launches, _, is_native = both(one, (b,))
        assert is_native
        alive = weakref.ref(b)
        del b
        assert alive() is None
    """)


def test_pickling_and_attributes_are_as_before(run):
    run("""
    import inspect
    dispatcher, one = kernel(array)
    assert "launch" not in one._reduce_states()
    assert list(inspect.signature(one.launch).parameters) == ["args", "griddim", "blockdim", "stream", "sharedmem"]
    assert one.launch.__name__ == "launch"
    assert list(inspect.signature(dispatcher.call).parameters) == ["args", "launch_config"]
    import pickle
    again = pickle.loads(pickle.dumps(dispatcher))
    assert again.py_func.__name__ == dispatcher.py_func.__name__
    """)


def test_the_counts_are_those_of_the_overlay(run):
    run("""
    import cuwheel.numba
    _, one = kernel(types.int64)
    both(one, (1,))
    assert cuwheel.numba.launch_stats() == _dispatcher.launch_stats() == {"native": 1, "python": {}}
    """)
    fresh_python.run("""
    import cuwheel.numba
    try:
        cuwheel.numba.launch_stats()
    except ImportError as error:
        assert "overlay" in str(error), error
    else:
        raise AssertionError("these are the modules of the release")
    """)


def test_it_can_be_turned_off(run):
    run(
        """
    dispatcher, one = kernel(array)
    assert "launch" not in vars(one) and "call" not in vars(dispatcher)
    one.launch((cuda.device_array(4, np.float32),), (1, 1, 1), (1, 1, 1), cuda.dispatcher.driver._to_core_stream(0), 0)
    assert stats() == (0, {})
    """,
        environment={"CUWHEEL_NUMBA_LAUNCH": "0"},
    )


def test_from_several_threads(run):
    run("""
    from concurrent.futures import ThreadPoolExecutor
    dispatcher, one = kernel(array, types.int64)
    configured = dispatcher[1, 32]
    arrays = [cuda.device_array(4, np.float32) for _ in range(4)]
    # The kernel is loaded by now, as numba-cuda does it when it compiles.
    configured(arrays[0], 0)
    def work(position):
        with cuda.gpus[0]:
            for number in range(500):
                configured(arrays[position], number)
    driver.reset()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert driver.report()["launch_count"] == 2000
    assert stats() == (2001, {})
    """)


def test_a_hit_asks_the_driver_for_the_context_and_the_launch(run):
    run("""
    dispatcher, one = kernel(array, array, types.int64)
    configured = dispatcher[1, 32]
    a = cuda.device_array(4, np.float32)
    configured(a, a, 1)
    driver.reset()
    for _ in range(100):
        configured(a, a, 1)
    assert driver.report()["calls"] == {"cuCtxGetId": 100, "cuLaunchKernelEx": 100}, driver.report()["calls"]
    """)
