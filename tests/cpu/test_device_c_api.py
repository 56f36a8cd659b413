"""The C API of device arrays, by an extension that is compiled here; and deleters where Python cannot be used."""

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import cuwheel
import cuwheel._devicearray
import dlpack
import fresh_python
import pytest
from cuwheel import Stream
from device_arrays import KINDS, Described, read_only
from dlpack import Exchange

pytestmark = pytest.mark.usefixtures("driver")

SOURCE = Path(__file__).with_name("device_array_user.c")
LANGUAGES = {
    "C": ("cc", ["-std=c11"]),
    "C, limited API": ("cc", ["-std=c11", "-DPy_LIMITED_API=0x030b0000"]),
    "C++": ("c++", ["-std=c++17", "-x", "c++", "-Wno-missing-field-initializers"]),
}


def compiled(directory: Path, language: str = "C") -> Path:
    """The extension, or a skipped test where there is no compiler."""
    name, flags = LANGUAGES[language]
    compiler = shutil.which(name)
    headers = sysconfig.get_path("include")
    if compiler is None or not Path(headers, "Python.h").exists():
        pytest.skip(f"needs {name} and the headers of Python to compile an extension")
    library = directory / "device_array_user.abi3.so"
    command = [compiler, "-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror", f"-I{cuwheel.get_include()}"]
    # Headers of Python may have warnings of their own.
    command += ["-isystem", headers, *flags, str(SOURCE), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="module", params=LANGUAGES)
def user(request, tmp_path_factory):
    library = compiled(tmp_path_factory.mktemp("extension"), request.param)
    specification = importlib.util.spec_from_file_location("device_array_user", library)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_version_is_checked_and_the_class_is_ours(user):
    assert user.version() == (1, 0, cuwheel.DeviceArray)


ARRAYS = {
    "a part on another device": lambda: cuwheel.empty((4, 6), "int16", device=1, stream=Stream(device=1))[1:, ::2],
    "read-only": lambda: read_only((2, 3), "float32"),
    "no dimension": lambda: cuwheel.empty((), "complex128"),
    "no element": lambda: cuwheel.empty((0, 3), "bool"),
    "packed": lambda: cuwheel.empty(8, "float4_e2m1fn"),
    "two lanes": lambda: cuwheel.empty(8, "float4_e2m1fn_x2"),
    "opaque": lambda: cuwheel.empty(3, "V12"),
    "strides between elements": lambda: cuwheel.empty((3, 6), "uint8")[:, :4].view("int32"),
    **{kind: lambda kind=kind: cuwheel.empty(3, "bfloat16", kind=kind) for kind in KINDS},
}
#: As DLPack has them; bytes without meaning are opaque.
DTYPES = {"int16": (0, 16, 1), "float32": (2, 32, 1), "complex128": (5, 128, 1), "bool": (6, 8, 1), "int32": (0, 32, 1)}
DTYPES |= {"float4_e2m1fn": (17, 4, 1), "float4_e2m1fn_x2": (17, 4, 2), "bfloat16": (4, 16, 1)}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_are_described(case, user):
    array = ARRAYS[case]()
    assert user.check(array)
    assert user.describe(array) == {
        "data": array.pointer,
        "shape": array.shape,
        "strides": array.element_strides,
        "stream": array.stream.handle,
        "item_bits": cuwheel.DType(array.dtype).bits,
        "device": array.device.id,
        "memory_kind": KINDS.index(array.kind),
        "read_only": not array.flags.writeable,
        "dtype": DTYPES.get(str(array.dtype), (3, 8, 1)),
    }


@pytest.mark.parametrize("other", [None, 5, [], cuwheel.DeviceArray, object()], ids=str)
def test_other_objects_are_told_apart(other, user):
    assert not user.check(other)
    with pytest.raises(TypeError) as caught:
        user.describe(other)
    assert str(caught.value).startswith("expected a cuwheel.DeviceArray, not ")


class _API(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("pointers", ctypes.c_void_p * 3)]


@pytest.mark.parametrize(
    ("attribute", "exception", "message"),
    [
        (None, AttributeError, "_DEVICEARRAY_API"),
        (5, ValueError, "invalid PyCapsule object"),
        (
            (2, 0),
            ImportError,
            "pretender has version 2.0 of its C API, and this module was compiled for 1.0; compile it against "
            "the installed version",
        ),
        (
            (0, 9),
            ImportError,
            "pretender has version 0.9 of its C API, and this module was compiled for 1.0; compile it against "
            "the installed version",
        ),
        ((1, 7), None, None),
    ],
    ids=str,
)
def test_other_modules_and_versions_are_refused(attribute, exception, message, user, monkeypatch):
    module = type(sys)("pretender")
    if isinstance(attribute, tuple):
        structure = _API(*attribute)
        attribute = dlpack.capsule(ctypes.addressof(structure), b"else")
    if attribute is not None:
        module._DEVICEARRAY_API = attribute
    monkeypatch.setitem(sys.modules, "pretender", module)
    if exception is None:
        assert user.api_of("pretender") is None
        return
    with pytest.raises(exception) as caught:
        user.api_of("pretender")
    assert message in str(caught.value)


def test_nothing_is_imported(user):
    with pytest.raises(ImportError, match="nowhere is not loaded; import it before this module"):
        user.api_of("nowhere")
    assert user.api_of("cuwheel._devicearray") is None


def test_the_capsule_is_named_after_its_module():
    assert dlpack.name_of(cuwheel._devicearray._DEVICEARRAY_API) == "cuwheel._devicearray._DEVICEARRAY_API"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_version", [None, (1, 3)], ids=["legacy", "versioned"])
def test_numpy_22507_deleters_run_on_any_thread(kind, max_version, user, driver):
    """numpy#22510, pytorch#88082, dlpack#103, dlpack#129, triton python_backend#198, CV-CUDA#298, execution-ucx#17: a
    deleter used Python on a thread that had no state."""
    array = cuwheel.empty(3, kind=kind, stream=Stream())
    tensor = dlpack.take(array.__dlpack__(max_version=max_version))
    del array
    assert len(driver.allocations()) == 1
    user.delete_on_thread(tensor.deleter, ctypes.addressof(tensor))
    assert driver.allocations() == []


def test_what_keeps_a_python_object_lets_go_of_it_at_the_next_call(user, driver):
    """Memory that came by the CUDA array interface belongs to a Python object."""
    tensor = Exchange(cuwheel.DeviceArray).managed(cuwheel.from_dlpack(Described(cuwheel.empty(3))))
    user.delete_on_thread(tensor.deleter, ctypes.addressof(tensor))
    cuwheel.empty(0)
    assert driver.allocations() == []


@pytest.mark.parametrize("max_version", [None, (1, 3)], ids=["legacy", "versioned"])
@pytest.mark.parametrize("what", ["cuwheel.empty(3, stream=cuwheel.Stream())", "cuwheel.empty(3, kind='managed')[1:]"])
def test_dlpack_140_deleters_run_after_python_has_ended(what, max_version, tmp_path):
    """The stand-in counts what is alive once that is done: the memory was freed."""
    compiled(tmp_path)
    printed = fresh_python.run(
        f"""
        import sys
        sys.path[:0] = sys.argv[1:]
        import ctypes, cuwheel, cuwheel._devicearray, device_array_user, dlpack
        tensor = dlpack.take({what}.__dlpack__(max_version={max_version}))
        device_array_user.delete_after_python(tensor.deleter, ctypes.addressof(tensor))
        print("done")
        """,
        tmp_path,
        SOURCE.parent,
        environment={"CUDA_STUB": "at_exit=fail"},
    )
    assert printed == "done\n"
