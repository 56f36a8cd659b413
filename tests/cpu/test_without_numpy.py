"""NumPy is optional: what needs none works without it, and what needs it says so."""

import fresh_python
import pytest

BLOCK_NUMPY = """
import sys

class Blocker:
    active = True
    def find_spec(self, name, path=None, target=None):
        if self.active and name.partition(".")[0] == "numpy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker)
Blocker.find_spec = classmethod(Blocker.find_spec)
"""


def test_mviewbuf_works_without_numpy():
    printed = fresh_python.run(
        BLOCK_NUMPY
        + """
import ctypes
from cuwheel import mviewbuf
memory = bytearray(b"memory")
address = mviewbuf.memoryview_get_buffer(memory)
assert mviewbuf.memoryview_get_extents(memory) == (address, address + 6)
assert mviewbuf.memoryview_get_extents_info((3,), (-8,), 1, 8) == (-16, 8)
Allocation = type("Allocation", (mviewbuf.MemAlloc,), {"_bufptr_": address, "_buflen_": 6})
assert bytes(memoryview(Allocation())) == memory
assert "numpy" not in sys.modules
print("done")
"""
    )
    assert printed == "done\n"


def test_the_error_says_what_to_install_and_the_next_call_tries_again():
    printed = fresh_python.run(
        BLOCK_NUMPY
        + """
from cuwheel._numpy import describe
for _ in range(3):
    try:
        describe(None)
    except ImportError as error:
        assert type(error) is ImportError
        assert type(error.__cause__) is ModuleNotFoundError, error.__cause__
        assert "(ModuleNotFoundError: No module named 'numpy')" in str(error)
        print(error)
Blocker.active = False
try:
    describe(None)
except TypeError as error:
    print(error)
"""
    )
    *errors, last = printed.splitlines()
    assert len(errors) == 3
    assert all('pip install "cuwheel[numpy]"' in error for error in errors)
    assert last == "expected a NumPy array, scalar or dtype, not NoneType"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "raise RuntimeError('broken')",
        "raise ImportError('libopenblas.so.0: cannot open shared object file')",
        "import sys; sys.modules['numpy._core'] = sys.modules['numpy._core._multiarray_umath'] = sys",
        "import sys; sys._ARRAY_API = 5\n"
        "sys.modules['numpy._core'] = sys.modules['numpy._core._multiarray_umath'] = sys",
    ],
)
def test_something_else_called_numpy_is_an_import_error(tmp_path, content):
    (tmp_path / "numpy.py").write_text(content)
    printed = fresh_python.run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from cuwheel._numpy import describe
        for _ in range(2):
            try:
                describe(None)
            except ImportError as error:
                assert error.__cause__ is not None
                print(error)
        """,
        tmp_path,
    )
    assert len(printed.splitlines()) == 2
    assert "NumPy 1.26 or newer" in printed


@pytest.mark.parametrize(
    ("abi_version", "api_version", "message"),
    [
        # NumPy 1.24, one step below the floor.
        (0x0100_0009, 0x10, "0x11"),
        # A NumPy of the future that broke its ABI.
        (0x0300_0000, 0x30, "0x3000000"),
    ],
)
def test_a_numpy_that_does_not_fit_is_refused_each_time(tmp_path, abi_version, api_version, message):
    """Public reports call it "module compiled against API version 0x… but this version of numpy is 0x…"."""
    (tmp_path / "numpy.py").write_text(
        f"""
import ctypes, sys
version = ctypes.CFUNCTYPE(ctypes.c_uint)
functions = version(lambda: {abi_version}), version(lambda: {api_version})
table = (ctypes.c_void_p * 300)()
table[0], table[211] = (ctypes.cast(function, ctypes.c_void_p) for function in functions)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
_ARRAY_API = new_capsule(ctypes.addressof(table), None, None)
sys.modules["numpy._core"] = sys.modules["numpy._core._multiarray_umath"] = sys.modules["numpy"]
"""
    )
    printed = fresh_python.run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from cuwheel._numpy import describe
        for _ in range(3):
            try:
                describe(None)
            except ImportError as error:
                print(error)
        """,
        tmp_path,
    )
    lines = printed.splitlines()
    assert [message in line and "NumPy 1.26 or newer" in line for line in lines] == [True] * 3, printed


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit", "MemoryError", "RecursionError"])
def test_what_is_no_fault_of_numpy_stays_what_it_is(tmp_path, error):
    (tmp_path / "numpy.py").write_text(f"raise {error}")
    printed = fresh_python.run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from cuwheel._numpy import describe
        try:
            describe(None)
        except BaseException as error:
            print(type(error).__name__)
        """,
        tmp_path,
    )
    assert printed == f"{error}\n"
