"""Calls of numba-cuda's dispatchers by this library: they run no Python code where nothing is new, and whatever a program has
replaced is called. Each test is a process of its own.
"""


def test_a_hit_runs_no_python_code(run):
    run("""
    dispatcher, one = kernel(array, types.int64, types.float64, types.boolean)
    a = cuda.device_array(4, np.float32)
    configured = dispatcher[1, 32]
    # At first the arguments are typed, and arrays described.
    for _ in range(2):
        configured(a, 1, 2.5, True)
        configured(a, np.int64(1), np.float64(2.5), False)
    entered = []
    def profile(frame, event, argument):
        if event == "call":
            entered.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)
    driver.reset()
    sys.setprofile(profile)
    try:
        configured(a, np.int64(7), 2.5, False)
        configured(a, 1, np.float64(2.5), True)
    finally:
        sys.setprofile(None)
    assert [name.rpartition(".")[2] for name in entered] == ["__call__"] * 2, entered
    first, second = driver.report()["launches"]
    assert first["parameters"][-3:] == ["0700000000000000", "0000000000000440", "00"]
    assert second["parameters"][-3:] == ["0100000000000000", "0000000000000440", "01"]
    """)


def test_a_dispatcher_is_called_as_before_when_anything_is_new(run):
    run("""
    dispatcher, one = kernel(array)
    a = cuda.device_array(4, np.float32)
    configured = dispatcher[1, 32]
    for _ in range(2):
        configured(a)
    assert "call" in vars(dispatcher)

    def launches(*args, of=configured):
        driver.reset()
        of(*args)
        return driver.report()["launches"]

    # Callbacks see the kernel, and what is being launched.
    seen = []
    def callback(kernel, config):
        seen.append((kernel, config, config.args))
    configured.pre_launch_callbacks.append(callback)
    assert len(launches(a)) == 1
    assert seen == [(one, configured, (a,))]
    configured.pre_launch_callbacks.clear()
    assert len(launches(a)) == 1 and len(seen) == 1
    assert _dispatcher.get_current_launch_args() is None

    # Whoever replaces a method of numba-cuda's is asked.
    class_ = type(dispatcher)
    original = class_.call
    class_.call = lambda self, args, config: seen.append(args)
    assert launches(a) == [] and seen[-1] == (a,)
    class_.call = original
    one.launch, kept = (lambda *args: seen.append("launch")), one.launch
    assert launches(a) == [] and seen[-1] == "launch"
    one.launch = kept
    dispatcher.call, kept = (lambda args, config: seen.append("call")), dispatcher.call
    assert launches(a) == [] and seen[-1] == "call"
    dispatcher.call = kept
    assert len(launches(a)) == 1

    # What has an overload by the configuration is chosen in Python.
    one.launch_config_sensitive = True
    assert len(launches(a)) == 1 and dispatcher._launch_config_sensitive
    one.launch_config_sensitive = dispatcher._launch_config_sensitive = False

    # A dispatcher that is specialized takes its only overload, whatever the arguments.
    dispatcher._specialized = True
    before = stats()[0]
    assert len(launches(a)) == 1 and stats()[0] == before + 1
    dispatcher._specialized = False

    # Other streams and sizes, and those that cannot be.
    stream = cuda.stream()
    shaped = dispatcher[(2, 3), (4, 5, 6), stream, 128]
    [launch] = launches(a, of=shaped)
    assert (launch["grid"], launch["block"], launch["shared_bytes"]) == ([2, 3, 1], [4, 5, 6], 128)
    assert launch["stream"] == int(stream.handle.value if hasattr(stream.handle, "value") else stream.handle)
    configured.griddim = (0, 1, 1)
    try:
        configured(a)
    except ValueError as error:
        assert "must be >= 1" in str(error)
    else:
        raise AssertionError("a grid without blocks")
    configured.griddim = (1, 1, 1)

    # By name, and with other arguments than there are.
    driver.reset()
    dispatcher.call(args=(a,), launch_config=configured)
    assert len(driver.report()["launches"]) == 1
    for mistake in [(), (a,), (a, configured, 1)]:
        try:
            dispatcher.call(*mistake)
        except TypeError as error:
            assert "call()" in str(error), error
        else:
            raise AssertionError(mistake)
    """)


def test_what_a_program_replaced_before_there_was_a_kernel_is_called(run):
    run("""
    a = cuda.device_array(4, np.float32)
    seen = []

    original = _Kernel.launch
    def launch(self, *args, **keywords):
        seen.append("launch")
        original(self, *args, **keywords)
        return "launched"
    _Kernel.launch = launch
    dispatcher, one = kernel(array)
    for _ in range(3):
        dispatcher[1, 32](a)
    assert seen == ["launch"] * 3
    arguments = ((a,), (1, 1, 1), (1, 1, 1), dispatcher[1, 32].stream, 0)
    assert one.launch(*arguments) == "launched"
    _Kernel.launch = original
    assert one.launch(*arguments) is None

    class_ = type(dispatcher)
    original = class_.call
    def call(self, args, config):
        original(self, args, config)
        return "called"
    class_.call = call
    dispatcher, _ = kernel(array)
    assert [dispatcher[1, 32](a) for _ in range(3)] == ["called"] * 3
    class_.call = original
    assert [dispatcher[1, 32](a) for _ in range(3)] == [None] * 3

    original = _Kernel._prepare_args
    def prepare_args(self, *args):
        seen.append("prepare")
        return original(self, *args)
    seen.clear()
    _Kernel._prepare_args = prepare_args
    dispatcher[1, 32](a)
    assert seen == ["prepare"]
    _Kernel._prepare_args = original
    """)


def test_derived_classes_do_what_they_do(run):
    run("""
    from numba.cuda.dispatcher import CUDADispatcher, _LaunchConfiguration
    a = cuda.device_array(4, np.float32)
    seen = []

    class Dispatcher(CUDADispatcher):
        def call(self, args, config):
            seen.append("call")
            return super().call(args, config)

    class Kernel(_Kernel):
        def launch(self, *args):
            seen.append("launch")
            return super().launch(*args)

    plain, one = kernel(array)
    dispatcher = Dispatcher(plain.py_func, targetoptions=plain.targetoptions)
    dispatcher.add_overload(one, (array,))
    for _ in range(3):
        dispatcher[1, 32](a)
    assert seen == ["call"] * 3

    seen.clear()
    one.__class__ = Kernel
    for _ in range(2):
        plain[1, 32](a)
    assert seen == ["launch"] * 2
    del one.launch
    plain._clear()
    plain.add_overload(one, (array,))
    plain[1, 32](a)
    assert seen == ["launch"] * 3 and "launch" not in vars(one)

    class Configuration(_LaunchConfiguration):
        def _push_args(self, args):
            seen.append("push")
            return super()._push_args(args)

    seen.clear()
    plain, one = kernel(array)
    configured = Configuration(plain, (1, 1, 1), (32, 1, 1), 0, 0)
    for _ in range(3):
        configured(a)
    assert seen == ["push"] * 3
    """)


def test_code_of_an_argument_sees_the_launch_that_it_is_part_of(run):
    run("""
    dispatcher, one = kernel(types.float32)
    dispatcher[1, 32](np.float32(1.0))
    dispatcher._specialized = True
    seen = []

    class Number(np.float32):
        def __float__(self):
            seen.append(_dispatcher.get_current_launch_args())
            return 2.5

    number = Number(1.0)
    for _ in range(3):
        dispatcher[1, 32](number)
    assert seen == [(number,)] * 3

    class Debug:
        def __bool__(self):
            raise KeyboardInterrupt
    one.debug = Debug()
    try:
        dispatcher[1, 32](np.float32(1.0))
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("the interrupt was lost")
    """)


def test_a_kernel_that_numba_cuda_loads_again_stays_fast(run):
    run("""
    a = cuda.device_array(4, np.float32)
    dispatcher, one = kernel(array)
    configured = dispatcher[1, 32]
    for _ in range(5):
        configured(a)
        one._codelibrary._cufunc_cache.clear()
    configured(a)
    entered = []
    sys.setprofile(lambda frame, event, argument: event == "call" and entered.append(frame.f_code.co_name))
    try:
        configured(a)
    finally:
        sys.setprofile(None)
    assert entered == ["__call__"], entered
    """)


def test_what_will_not_work_is_not_tried_again(run):
    run("""
    driver.configure("missing=cuKernelGetParamInfo")
    a = cuda.device_array(4, np.float32)
    dispatcher, one = kernel(array)
    configured = dispatcher[1, 32]
    configured(a)
    asked = []
    original = type(one._codelibrary).get_cufunc
    type(one._codelibrary).get_cufunc = lambda self: (asked.append(1), original(self))[1]
    configured(a)
    assert len(asked) == 1 and stats()[0] == 0
    """)


def test_producers_are_asked_once_for_each_call(run):
    run("""
    import cuwheel, dlpack
    from numba.cuda.typing.typeof import typeof_impl
    described, current = [], dlpack.stream(0)
    def view(an_object, out):
        described.append(an_object)
        return dlpack.view(an_object, out)
    table = dlpack.Table(managed_from_object=dlpack.managed, view_from_object=view, current_work_stream=current)
    a = cuwheel.zeros((4, 6), "float32")
    # The table says all of an array of torch.
    methods = {"__dlpack__": lambda self, **options: a.__dlpack__(**options), "__dlpack_device__": lambda self: (2, 0)}
    Foreign = table.type(__module__="torch", **methods)
    two = types.Array(types.float32, 2, "C")
    typeof_impl.register(Foreign)(lambda value, context: two)
    arrays = [Foreign() for _ in range(3)]
    for each in arrays:
        each.tensor = dlpack.tensor_of(a)
    dispatcher, overload = kernel(two, two, two)
    configured = dispatcher[1, 32]
    for _ in range(3):
        configured(*arrays)
    driver.reset()
    described.clear(), current.asked.clear()
    native, _ = stats()
    configured(*arrays)
    assert (described, len(current.asked), stats()[0]) == (arrays, 1, native + 1)
    words = driver.report()["launches"][0]["parameters"]
    assert words[:9] == words[9:18] == words[18:], words
    assert [int.from_bytes(bytes.fromhex(word), "little") for word in words[2:9]] == [24, 4, a.pointer, 4, 6, 24, 4]
    # Another shape the next time is another shape for the kernel.
    arrays[1].tensor = dlpack.tensor_of(a, shape=(2, 3), strides=(3, 1))
    configured(*arrays)
    words = driver.report()["launches"][1]["parameters"][9:18]
    assert [int.from_bytes(bytes.fromhex(word), "little") for word in words[2:9]] == [6, 4, a.pointer, 2, 3, 12, 4]
    """)
