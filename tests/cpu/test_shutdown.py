"""The end of the process: what `__del__` methods call while the interpreter finalises, and threads that it cuts off."""

import fresh_python
import pytest

#: The same for what needs NumPy.
NUMPY_CALLS = [
    ("describe(array)", None),
    ("describe(scalar)", None),
    ("describe(dtype)", None),
    ("describe(5)", "TypeError"),
    ("compute_fingerprint(array)", None),
    ("compute_fingerprint(scalar)", None),
    ("compute_fingerprint(dtype)", None),
    ("compute_fingerprint(writable)", None),
    ("compute_fingerprint((1, [2.0]))", None),
    ("compute_fingerprint('text')", "NotImplementedError"),
    ("compute_fingerprint([])", "ValueError"),
]

#: Every public function, when it succeeds and when it fails, and the exception.
CALLS = [
    ("get_buffer(writable)", None),
    ("get_buffer(b'read-only')", "BufferError"),
    ("get_buffer(b'read-only', 1)", None),
    ("get_buffer(5, 1)", "TypeError"),
    ("get_buffer()", "TypeError"),
    ("get_buffer(obj=writable)", "TypeError"),
    ("get_buffer(writable, None)", "TypeError"),
    ("get_buffer(writable, 2**31)", "OverflowError"),
    ("get_buffer(writable, 0, 2**70)", "OverflowError"),
    ("get_extents(writable)", None),
    ("get_extents(5)", "TypeError"),
    ("get_extents(without_strides)", "ValueError"),
    ("get_extents_info((3,), (8,), 1, 8)", None),
    ("get_extents_info(repeat(1), repeat(1), 70_000, 8)", None),
    ("get_extents_info((3,), (8,), 2, 8)", "ValueError"),
    ("get_extents_info((), (), 1, 0)", "ValueError"),
    ("get_extents_info((), (), 1, 2**63)", "OverflowError"),
    ("get_extents_info((), (), -1, 8)", "ValueError"),
    ("get_extents_info((), (), 2**31, 8)", "OverflowError"),
    ("get_extents_info(5, 5, 1, 1)", "TypeError"),
    ("get_extents_info(('x',), (8,), 1, 8)", "TypeError"),
    ("get_extents_info((2**62,), (2**62,), 1, 8)", "OverflowError"),
    ("memoryview(Allocation())", None),
    ("memoryview(MemAlloc(1, two=2))", "AttributeError"),
    ("memoryview(Allocation(_buflen_=-1))", "ValueError"),
    ("memoryview(Allocation(_buflen_='x'))", "TypeError"),
    ("memoryview(Allocation(_bufptr_='x'))", "ValueError"),
    ("memoryview(Allocation(_bufptr_=0))", "ValueError"),
    ("memoryview(Allocation(_bufptr_=-1))", "OverflowError"),
    ("check_compatible(manager, 1, 2)", None),
    ("check_compatible(5, 1, 2)", "TypeError"),
    ("set_compatible(manager, 1, 2, 0)", "ValueError"),
    ("select_overload(manager, (1,), ((1,),), 0, 0)", None),
    ("select_overload(manager, (1,), ((1,), (1,)), 0, 0)", "TypeError"),
    ("get_pointer(new_type_manager())", None),
    ("dispatcher()._cuda_call()", "AttributeError"),
    ("dispatcher()._insert([], len)", None),
    ("dispatcher()._insert([1], len)", "ValueError"),
    ("Dispatcher(0, 0, 0, (), (), 1)", "ValueError"),
    ("Dispatcher()", "TypeError"),
    ("swap_current_launch_args(5)", None),
    ("get_current_launch_config()", None),
    *NUMPY_CALLS,
]

CALL_AT_EXIT = """
import ctypes, itertools, os, sys
from cuwheel import _dispatcher, _typeconv, mviewbuf
from cuwheel._numpy import describe

call, numpy, prepared = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
if numpy == "missing":
    sys.modules["numpy"] = array = scalar = dtype = None
else:
    import numpy
    array, scalar, dtype = numpy.zeros((2, 3)), numpy.datetime64(1, "s"), numpy.dtype("i4,f8")

class Allocation(mviewbuf.MemAlloc):
    _buflen_, _bufptr_ = 8, 4096
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

class Last:
    # Whatever is needed is kept here: when this runs, the globals of modules are gone.
    def __init__(self):
        functions = {name.removeprefix("memoryview_"): value for name, value in vars(mviewbuf).items()}
        functions |= vars(_typeconv) | vars(_dispatcher)
        manager = _typeconv.new_type_manager()
        arguments = (_typeconv.get_pointer(manager), 0, 0, (), (), 1)
        self.names = functions | dict(
            manager=manager, dispatcher=lambda class_=_dispatcher.Dispatcher, arguments=arguments: class_(*arguments),
            describe=describe, Allocation=Allocation, array=array, scalar=scalar, dtype=dtype, memoryview=memoryview,
            repeat=itertools.repeat, writable=bytearray(8), without_strides=(ctypes.c_int * 3)(),
        )
        self.code = compile(call, "call", "eval")

    def outcome(self, eval=eval, error=BaseException, type=type):
        try:
            eval(self.code, self.names)
        except error as caught:
            return type(caught).__name__
        return "None"

    def __del__(self, write=os.write):
        write(1, self.outcome().encode())

sys.last = Last()
if prepared:
    sys.last.outcome()
"""


@pytest.mark.parametrize("prepared", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize(("call", "exception"), CALLS, ids=[call for call, _ in CALLS])
def test_functions_may_be_called_while_the_interpreter_finalises(call, exception, prepared):
    if (call, exception) not in NUMPY_CALLS:
        assert fresh_python.run(CALL_AT_EXIT, call, "missing", prepared) == str(exception)
        return
    assert fresh_python.run(CALL_AT_EXIT, call, "missing", prepared) == "ImportError"
    # It is too late to import NumPy.
    expected = str(exception) if prepared else "ImportError"
    assert fresh_python.run(CALL_AT_EXIT, call, "imported", prepared) == expected


WORK = {
    "a property": "memoryview(allocation)",
    "an index": "mviewbuf.memoryview_get_extents_info((number,), (8,), 1, 8)",
    "an iterator": "mviewbuf.memoryview_get_extents_info((number for _ in 'x'), (8,), 1, 8)",
    "an exception with a note": "mviewbuf.memoryview_get_extents_info((), (), 1, 0)",
    "plain results": "mviewbuf.memoryview_get_extents(writable)",
    "an import that fails": "describe(5)",
    "a choice that fails": "_typeconv.select_overload(manager, (1,), ((2,),), 0, 0)",
    "a callback": "dispatcher._cuda_call(__numba_cuda_launch_config__=5)",
    "a handle": "_typeconv.get_pointer(_typeconv.new_type_manager())",
}


@pytest.mark.parametrize("call", WORK.values(), ids=WORK)
def test_daemon_threads_may_be_inside_the_library_when_the_process_exits(call):
    """They are ended there, which must not look like a panic: it was a crash at exit, a few times in ten."""
    for _ in range(6):
        printed = fresh_python.run(
            f"""
            import sys, threading, time
            sys.modules["numpy"] = None
            from cuwheel import _dispatcher, _typeconv, mviewbuf
            from cuwheel._numpy import describe

            def linger(value):
                for _ in range(50):
                    pass
                return value

            class Allocation(mviewbuf.MemAlloc):
                _buflen_ = property(lambda self: linger(8))
                _bufptr_ = 4096

            class Number:
                def __index__(self):
                    return linger(3)

            class Compiling(_dispatcher.Dispatcher):
                def _compile_for_args(self):
                    return linger(_dispatcher.get_current_launch_config())

            manager = _typeconv.new_type_manager()
            dispatcher = Compiling(_typeconv.get_pointer(manager), 0, 0, (), (), 1)
            names = dict(globals(), allocation=Allocation(), number=Number(), writable=bytearray(8))
            code = compile({call!r}, "call", "eval")

            def work(eval=eval, names=names, code=code, error=Exception):
                while True:
                    try:
                        eval(code, names)
                    except error:
                        pass

            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.05)
            print("done")
            """
        )
        assert printed == "done\n"
