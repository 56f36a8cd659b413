"""What native code sees of NumPy objects, compared with what NumPy says of them."""

import gc
import sys
import warnings

import fresh_python
import numpy as np
import pytest
from at_once import at_once
from cuwheel._numpy import describe
from hypothesis import given
from hypothesis import strategies as st

IS_NUMPY_1 = np.lib.NumpyVersion(np.__version__) < "2.0.0"

NATIVE = {"=", "|", {"little": "<", "big": ">"}[sys.byteorder]}

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]

with warnings.catch_warnings():
    # Dates and durations without a unit are about to go, and are here as long as they exist.
    warnings.simplefilter("ignore", DeprecationWarning)
    EVERY_CODE = [np.dtype(code) for code in np.typecodes["All"]]

DTYPES = [
    *EVERY_CODE,
    *(np.dtype(order + code) for order in "<>=" for code in ("i2", "u8", "f2", "f4", "c16", "M8[s]", "m8[7D]", "U3")),
    *(np.dtype(f"{kind}8[{count}{unit}]") for kind in "Mm" for unit in UNITS for count in (1, 25)),
    *map(np.dtype, ("S0", "S7", "U0", "U5", "V0", "V3", "?", "O", "g", "G", "q", "Q", "p", "P")),
    np.dtype([("a", "i1"), ("b", ">f8")]),
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    np.dtype([("nested", [("x", "f4", (2, 3)), ("when", "M8[us]")])]),
    np.dtype((np.void, 12)),
    np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 12}),
    np.dtype("i4", metadata={"key": "value"}),
    np.dtype((np.record, [("a", "f4")])),
]
if not IS_NUMPY_1:
    DTYPES += [np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)]


def check_element(seen: dict, dtype: np.dtype) -> None:
    assert seen["type_number"] == dtype.num
    assert seen["type_kind"] == dtype.kind
    assert seen["byte_order"] == dtype.byteorder
    assert seen["native_byte_order"] == (dtype.byteorder in NATIVE)
    assert seen["itemsize"] == dtype.itemsize
    assert seen["alignment"] == dtype.alignment
    assert seen["datetime"] == (np.datetime_data(dtype) if dtype.kind in "Mm" else None)


def check_array(values: np.ndarray) -> None:
    seen = describe(values)
    check_element(seen, values.dtype)
    assert seen["kind"] == "array"
    assert seen["single_value"] == (values.ndim == 0)
    assert seen["array"] == {
        "exact": type(values) is np.ndarray,
        "address": values.ctypes.data,
        "shape": values.shape,
        "strides": values.strides,
        "flags": values.flags.num,
        "c_contiguous": values.flags.c_contiguous,
        "f_contiguous": values.flags.f_contiguous,
        "aligned": values.flags.aligned,
        "writeable": values.flags.writeable,
        "behaved": values.flags.behaved and values.dtype.byteorder in NATIVE,
    }


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_dtypes_and_arrays_of_them(dtype):
    seen = describe(dtype)
    assert (seen["kind"], seen["single_value"], seen["array"]) == ("dtype", False, None)
    check_element(seen, dtype)
    for shape in [(), (1,), (0,), (2, 3)]:
        check_array(np.zeros(shape, dtype))


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.kind not in "OT"], ids=repr)
def test_scalars(dtype):
    scalar = np.zeros(1, dtype)[0]
    seen = describe(scalar)
    assert (seen["kind"], seen["single_value"], seen["array"]) == ("scalar", True, None)
    check_element(seen, scalar.dtype)


@pytest.mark.parametrize(
    "scalar",
    [
        np.datetime64("NaT", "s"),
        np.timedelta64(5, "25us"),
        np.datetime64("2020-02-29T12:00:00.000000000"),
        np.str_(""),
        np.str_("Größe"),
        np.bytes_(b""),
        np.void(b"\x00" * 3),
        np.longdouble(1),
        np.record((1.0,), dtype=[("a", "f8")]),
        type("Float", (np.float64,), {})(1),
        type("Text", (np.str_,), {})("text"),
        type("Structure", (np.void,), {})(b"12345"),
    ],
    ids=repr,
)
def test_unusual_scalars(scalar):
    assert describe(scalar)["kind"] == "scalar"
    check_element(describe(scalar), np.asarray(scalar).dtype if type(scalar).__name__ == "Structure" else scalar.dtype)


@st.composite
def views(draw):
    """Arrays of many strides, flags and byte orders."""
    dtype = np.dtype(draw(st.sampled_from("?bhilqBHILQefdgFDGOmM"))).newbyteorder(draw(st.sampled_from("=<>")))
    values = np.zeros(draw(st.lists(st.integers(0, 3), max_size=5)), dtype, order=draw(st.sampled_from("CF")))
    values = values.transpose(draw(st.permutations(range(values.ndim))))
    values = values[(..., *(slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in values.shape))]
    values.flags.writeable = draw(st.booleans())
    return values


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")
@given(views())
def test_views(values):
    check_array(values)


def test_unaligned_arrays():
    memory = np.zeros(33, np.uint8)
    for start in range(4):
        values = memory[start : start + 16].view("f8") if start == 0 else np.ndarray(2, "f8", memory, start)
        check_array(values)
    assert not describe(np.ndarray(2, "f8", memory, 1 if memory.ctypes.data % 8 == 0 else 0))["array"]["behaved"]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::DeprecationWarning")
def test_subclasses_are_arrays_but_not_exactly():
    class Mine(np.ndarray):
        ndim = property(lambda self: 1 / 0)
        shape = property(lambda self: 1 / 0)
        dtype = property(lambda self: 1 / 0)

    seen = describe(np.zeros((2, 3), ">i2").view(Mine))
    assert seen["array"]["shape"] == (2, 3)
    assert seen["byte_order"] == ">"
    for values in (np.ma.zeros((2, 3)), np.matrix("1 2"), np.recarray(3, dtype=[("a", "i4")])):
        check_array(values)
        assert not describe(values)["array"]["exact"]


def test_as_many_dimensions_as_numpy_allows():
    limit = 32 if IS_NUMPY_1 else 64
    check_array(np.zeros((1,) * limit))


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
def test_arrays_that_change_in_place():
    values = np.zeros(6, "<i4")
    described = [describe(values)]
    values.dtype = ">i2"
    described.append(describe(values))
    assert [seen["array"]["shape"] for seen in described] == [(6,), (12,)]
    assert [seen["native_byte_order"] for seen in described].count(True) == 1


class Pretender:
    """Says that it is an array."""

    __class__ = np.ndarray
    dtype = np.dtype("f4")
    shape = (3,)


@pytest.mark.parametrize(
    "obj",
    [None, 5, 1.5, "f4", [1], np, np.ndarray, np.float32, np.generic, Pretender(), memoryview(b""), np.nditer([1])],
    ids=repr,
)
def test_other_objects(obj):
    with pytest.raises(TypeError, match="expected a NumPy array, scalar or dtype, not "):
        describe(obj)


class Untold(type):
    """The class of classes that keep their names to themselves."""

    def __getattribute__(cls, name):
        if name in ("__module__", "__qualname__", "__name__"):
            raise ZeroDivisionError
        return super().__getattribute__(name)


def named(module="exotic", qualname="Exotic"):
    exotic = type("Exotic", (), {"__module__": module})
    exotic.__qualname__ = qualname
    return exotic


def test_classes_that_do_not_tell_their_names():
    for kind, name in [
        (named(), "exotic.Exotic"),
        (named("exotic", "Inner.Exotic"), "exotic.Inner.Exotic"),
        (Untold("Exotic", (), {}), "Exotic"),
        (named(5), "Exotic"),
        (named("\ud800"), "Exotic"),
    ]:
        with pytest.raises(TypeError, match="expected a NumPy array, scalar or dtype, not ") as caught:
            describe(kind())
        assert str(caught.value).endswith(name)


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
def test_code_that_runs_while_an_array_is_described():
    """Up to Python 3.11 objects that are created may set off the garbage collector, and that any code."""
    values = np.zeros(6, "<i4")

    def change(phase, info):
        if phase == "start":
            values.dtype = ">i2" if values.itemsize == 4 else "<i4"

    thresholds = gc.get_threshold()
    gc.callbacks.append(change)
    gc.set_threshold(1)
    try:
        seen = [describe(values) for _ in range(50)]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(change)
    for description in seen:
        of_array = description["array"]["shape"], description["array"]["strides"]
        assert (description["itemsize"], *of_array) in [(4, (6,), (4,)), (2, (12,), (2,))]


def test_scalars_that_were_never_initialised():
    """NumPy may have no data type for them; whatever it says must arrive as an exception, not end the process."""
    printed = fresh_python.run(
        """
        import warnings
        import numpy as np
        from cuwheel._numpy import describe
        warnings.simplefilter("ignore")
        generic = [np.generic]
        for base in generic:
            generic += base.__subclasses__()
            try:
                scalar = object.__new__(type("Raw", (base,), {}))
            except TypeError:
                try:
                    scalar = type("Raw", (base,), {}).__new__(base)
                except (TypeError, ValueError):
                    continue
            try:
                describe(scalar)
            except Exception as error:
                assert not isinstance(error, SystemError), (base, error)
        print("done")
        """
    )
    assert printed == "done\n"


def test_references_are_balanced():
    dtype = np.dtype([("a", "f4")])
    objects = [dtype, np.zeros(3, dtype), np.zeros(1, dtype)[0], np.datetime64(1, "s")]
    for obj in objects:
        describe(obj)
    before = [sys.getrefcount(obj) for obj in objects]
    for _ in range(1000):
        for obj in objects:
            describe(obj)
    after = [sys.getrefcount(obj) for obj in objects]
    assert all(abs(now - then) < 100 for then, now in zip(before, after, strict=True)), (before, after)


def test_threads_may_meet_at_first_use():
    printed = fresh_python.run(
        """
        import sys, threading
        sys.setswitchinterval(1e-5)
        from cuwheel._numpy import describe
        assert "numpy" not in sys.modules
        start, seen = threading.Barrier(8), []
        def work():
            start.wait()
            try:
                describe(None)
            except TypeError as error:
                seen.append(str(error))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(seen), *set(seen), sep="; ")
        """
    )
    assert printed == "8; expected a NumPy array, scalar or dtype, not NoneType\n"


def test_threads():
    values = np.zeros((2, 3), ">f4")
    expected = describe(values)

    def work():
        for _ in range(2000):
            assert describe(values) == expected

    at_once(work)
