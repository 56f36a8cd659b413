"""Device arrays across the life of a process: threads, forks, and its end. The stand-in counts what is left alive."""

import fresh_python
import pytest

pytestmark = pytest.mark.usefixtures("driver")

STRICT = {"CUDA_STUB": "devices=2;at_exit=fail"}


def run(code: str, *arguments: object) -> str:
    """Run code in a new process, which fails if it leaves memory behind or uses it out of order."""
    return fresh_python.run(code, *arguments, environment=STRICT)


def test_a_process_that_leaves_memory_behind_fails():
    """The tests below would see a leak: this is how it looks."""
    with pytest.raises(AssertionError, match="exit status 97\n\ncuda-stub: leak: 24 bytes of device memory"):
        run("import ctypes, cuwheel; ctypes.pythonapi.Py_IncRef(ctypes.py_object(cuwheel.empty(3)))")


def test_what_modules_hold_is_freed_at_the_end():
    printed = run(
        """
        import cuwheel
        kinds = ("device", "pinned", "mapped", "managed")
        kept = [cuwheel.zeros(3, kind=kind, stream=cuwheel.Stream()) for kind in kinds]
        kept.append(kept)
        capsule = kept[0].__dlpack__(max_version=(1, 3))
        view = memoryview(kept[1])
        print("done")
        """
    )
    assert printed == "done\n"


#: NumPy's module is empty by then; whatever needs it fails, and nothing else happens.
NO_NUMPY = "TypeError"
#: What is called while the interpreter finalises, and what comes of it.
CALLS = {
    "array.copy_to_host().tolist()": NO_NUMPY,
    "repr(array[1:])": "'DeviceArray(shape=(2,), dtype=int64, device=cuda:0, kind=device)'",
    "array.__setitem__(0, 5)": NO_NUMPY,
    "array.__setitem__(slice(1), array[:1])": "None",
    "cuwheel.zeros(3, 'int8').copy_to_host().tolist()": NO_NUMPY,
    "cuwheel.asarray([4, 5]).shape": NO_NUMPY,
    "cuwheel.from_dlpack(foreign).shape": "(3,)",
    "array.__dlpack__(max_version=(1, 3)) is None": "False",
    "array.__cuda_array_interface__['shape']": "(3,)",
    "list(memoryview(pinned))": "[0, 0, 0]",
    "len(array.__reduce__()[1])": NO_NUMPY,
    "str(array.dtype)": NO_NUMPY,
    "cuwheel.Stream().wait(array.stream)": "None",
    "array['a']": "IndexError",
    "array.reshape(7)": "ValueError",
    "cuwheel.empty(-1)": "ValueError",
    "cuwheel.empty(2**50)": "MemoryError",
    "cuwheel.from_dlpack(5)": "TypeError",
    "array.__dlpack__(stream=0)": "ValueError",
    "memoryview(array)": "BufferError",
}

AT_EXIT = """
import os, sys, types, numpy, cuwheel
import cuwheel._devicearray

owner = cuwheel.zeros(3)
foreign = types.SimpleNamespace(__cuda_array_interface__=owner.__cuda_array_interface__, owner=owner)

class Last:
    # Whatever is needed is kept here: when this runs, the globals of modules are gone.
    def __init__(self):
        made = {name: getattr(cuwheel, name) for name in ("zeros", "empty", "asarray", "from_dlpack", "Stream")}
        self.names = dict(
            cuwheel=type("cuwheel", (), {name: staticmethod(value) for name, value in made.items()}),
            array=cuwheel.asarray([1, 2, 3]), pinned=cuwheel.zeros(3, "uint8", kind="pinned"), foreign=foreign,
        )
        self.calls = [(call, compile(call, "call", "eval")) for call in sys.argv[1:]]

    def outcome(self, code, eval=eval, error=BaseException, type=type):
        try:
            return repr(eval(code, self.names))
        except error as caught:
            return type(caught).__name__

    def __del__(self, write=os.write):
        for call, code in self.calls:
            write(1, f"{self.outcome(code)}\\n".encode())

sys.last = Last()
if PREPARED:
    for _, code in sys.last.calls:
        sys.last.outcome(code)
    sys.last.names["array"][...] = [1, 2, 3]
"""


@pytest.mark.parametrize("prepared", [False, True], ids=["first call", "later call"])
def test_arrays_may_be_used_while_the_interpreter_finalises(prepared):
    printed = run(f"PREPARED = {prepared}\n{AT_EXIT}", *CALLS)
    outcomes = dict(zip(CALLS, printed.splitlines(), strict=True))
    assert outcomes == CALLS


@pytest.mark.parametrize(
    "work",
    [
        "cuwheel.zeros(30)[::2] = 1",
        "cuwheel.asarray(values).copy_to_host()",
        "cuwheel.from_dlpack(Foreign()).copy_to_device()",
        "memoryview(pinned)[0]; array['a']",
    ],
)
def test_daemon_threads_may_be_inside_the_library_when_the_process_exits(work):
    for _ in range(2):
        printed = fresh_python.run(
            f"""
            import threading, time, cuwheel, numpy
            from cuwheel import _devicearray

            values = numpy.arange(8.0)
            array, pinned = cuwheel.zeros(3), cuwheel.zeros(3, kind="pinned")
            class Foreign:
                __cuda_array_interface__ = array.__cuda_array_interface__
            names = dict(globals())
            code = compile({work!r}, "work", "exec")

            def work(exec=exec, names=names, code=code, error=Exception):
                while True:
                    try:
                        exec(code, names)
                    except error:
                        pass

            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.05)
            print("done")
            """
        )
        assert printed == "done\n"


FORKED = """
import os, sys, warnings
import cuwheel, numpy
warnings.simplefilter("ignore")
before = cuwheel.DType("float32")
if sys.argv[1] == "used":
    array, pinned = cuwheel.asarray([1, 2, 3]), cuwheel.asarray([1], kind="pinned")
child = os.fork()
if child == 0:
    try:
        if sys.argv[1] == "unused":
            print(cuwheel.asarray([1, 2, 3]).copy_to_host())
        else:
            print(repr(array), array.shape, array[1:].size, numpy.dtype(str(before)))
            for work in (array.copy_to_host, lambda: cuwheel.empty(3), lambda: array.__setitem__(0, 1),
                         lambda: memoryview(pinned), cuwheel.Stream, cuwheel.Device.count,
                         cuwheel.Device().memory_info):
                try:
                    work()
                    print("no error")
                except RuntimeError as error:
                    print(error)
            del array, pinned
        sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(1)
_, status = os.waitpid(child, 0)
print("status", status)
if sys.argv[1] == "used":
    print(array.copy_to_host().tolist())
"""


def test_a_child_cannot_use_the_arrays_of_its_parent_and_says_so():
    first, *errors, status, contents = run(FORKED, "used").splitlines()
    assert first == "DeviceArray(shape=(3,), dtype=int64, device=cuda:0, kind=device) (3,) 2 float32"
    message = (
        "CUDA was started before this process was forked, and cannot be used in the child; start processes "
        "with the method "
        '"spawn" or "forkserver", or use CUDA only after the fork'
    )
    assert errors == [message] * 7
    assert (status, contents) == ("status 0", "[1, 2, 3]")


def test_a_child_may_start_the_driver_if_its_parent_did_not():
    assert run(FORKED, "unused").splitlines() == ["[1 2 3]", "status 0"]


def test_threads_share_arrays():
    printed = run(
        """
        import threading, cuwheel, numpy
        array = cuwheel.asarray(numpy.arange(64))
        failures = []

        def work(number):
            try:
                stream = cuwheel.Stream()
                with cuwheel.use_stream(stream):
                    for _ in range(30):
                        view = array[number::4].reshape(4, 4).T
                        mine = cuwheel.from_dlpack(view, copy=True)
                        assert mine.copy_to_host().tolist() == numpy.arange(64)[number::4].reshape(4, 4).T.tolist()
                        assert cuwheel.current_stream() == stream
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert failures == [], failures
        print("done")
        """
    )
    assert printed == "done\n"


def test_the_package_is_imported_without_a_driver_numpy_or_anything_else():
    printed = fresh_python.run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        before = set(sys.modules)
        import cuwheel._devicearray
        print(sorted(name for name in set(sys.modules) - before if not name.startswith("cuwheel")))
        print("libcuda" in open("/proc/self/maps").read())
        """,
        site=False,
    )
    assert printed == "[]\nFalse\n"


def test_arrays_work_without_numpy_where_they_need_none():
    printed = run(
        """
        import sys
        for name in ("numpy", "ml_dtypes"):
            sys.modules[name] = None
        import cuwheel
        array = cuwheel.zeros((2, 3), "float32", kind="pinned")
        print(repr(array[1:].T.reshape(-1)), repr(array.dtype), array.strides, array.nbytes)
        print(memoryview(array).tolist(), cuwheel.from_dlpack(array.copy_to_device()).kind)
        print(cuwheel.DType("bfloat16"), cuwheel.DType("<f4"), array.__cuda_array_interface__["typestr"])
        array[...] = cuwheel.zeros(3, "float32")
        for work in (array.copy_to_host, lambda: cuwheel.asarray([1]), lambda: array.__setitem__(0, 1)):
            try:
                work()
            except ImportError as error:
                print('pip install "cuwheel[numpy]"' in str(error))
        """
    )
    assert printed.splitlines() == [
        "DeviceArray(shape=(3,), dtype=float32, device=cuda:0, kind=pinned) DType('float32') (12, 4) 24",
        "[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]] device",
        "bfloat16 float32 <f4",
        "True",
        "True",
        "True",
    ]


def test_arrays_are_pickled_to_other_processes():
    printed = run(
        """
        import cuwheel, pickle, subprocess, sys
        data = pickle.dumps(cuwheel.asarray([1, 2, 3], kind="managed", device=1))
        code = "import pickle, sys; array = pickle.load(sys.stdin.buffer); print(repr(array), array.copy_to_host())"
        subprocess.run([sys.executable, "-I", "-c", code], input=data, check=True)
        """
    )
    assert printed.strip() == "DeviceArray(shape=(3,), dtype=int64, device=cuda:1, kind=managed) [1 2 3]"
