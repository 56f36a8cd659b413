"""Arrays of other libraries as ours: which way is taken, what is checked, and what becomes of tensors."""

import gc
import weakref
from pathlib import Path

import cuwheel
import dlpack
import fresh_python
import numpy as np
import pytest
from cuwheel import Stream
from cuwheel._devicearray import forget_types
from device_arrays import Described, contents
from dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Foreign, Table, Tensor, exchanging, tensor_of

pytestmark = pytest.mark.usefixtures("driver")


def made() -> cuwheel.DeviceArray:
    return cuwheel.asarray(np.arange(12, dtype="float32").reshape(3, 4))


#: How each way takes an array: of a tensor, an object that offers it.
WAYS = {
    "table": exchanging,
    "table without views": lambda tensor: exchanging(tensor, Table(managed_from_object=dlpack.managed)),
    "method": Foreign,
}


@pytest.mark.parametrize("take", [cuwheel.from_dlpack, cuwheel.asarray], ids=["from_dlpack", "asarray"])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_shares_the_memory_and_deletes_once(way, take, driver):
    owner = made()
    tensor = tensor_of(owner)
    array = take(WAYS[way](tensor))
    assert (array.pointer, array.shape, array.dtype, contents(array)) == (
        owner.pointer,
        owner.shape,
        owner.dtype,
        contents(owner),
    )
    view = array[1:]
    del array
    assert tensor.deleted == 0
    del view
    assert tensor.deleted == 1
    assert driver.allocations() == [("device", owner.nbytes)]


def test_legacy_capsules_are_taken_too():
    """Whatever version was asked for: the name of the capsule tells what is in it."""
    owner = made()
    tensor = tensor_of(owner, versioned=False)
    array = cuwheel.from_dlpack(Foreign(tensor))
    assert contents(array) == contents(owner)
    del array
    assert tensor.deleted == 1


def test_capsules_are_renamed_at_once():
    owner = made()
    for versioned, used in ((True, "used_dltensor_versioned"), (False, "used_dltensor")):
        tensor = tensor_of(owner, versioned=versioned)
        producer = Foreign(tensor)
        capsules = [tensor.capsule()]
        producer.__class__ = type("OneCapsule", (Foreign,), {"__dlpack__": lambda self, **_: capsules[0]})
        array = cuwheel.from_dlpack(producer)
        assert dlpack.name_of(capsules[0]) == used
        with pytest.raises(BufferError, match="one whose tensor was taken before; ask the array for another"):
            cuwheel.from_dlpack(producer)
        assert tensor.deleted == 0
        del array
        assert tensor.deleted == 1


def test_tensors_without_a_deleter_are_taken():
    owner = made()
    assert contents(cuwheel.from_dlpack(Foreign(tensor_of(owner, has_deleter=False)))) == contents(owner)


#: What may be wrong with a tensor: its fields, the message, and whether the data cannot be used at all.
BAD = {
    "an unknown type": (
        {"dtype": (3, 64, 1)},
        "an element type of DLPack code 3, 64 bits and 1 lanes is not supported",
    ),
    "lanes": ({"dtype": (2, 32, 2)}, "code 2, 32 bits and 2 lanes is not supported"),
    "an integer of 128 bits": ({"dtype": (0, 128, 1)}, "code 0, 128 bits and 1 lanes is not supported"),
    "a code of the future": ({"dtype": (99, 8, 1)}, "code 99, 8 bits and 1 lanes is not supported"),
    "a ROCm device": ({"device": (10, 0)}, "the tensor is on a ROCm device; move it to a CUDA device first"),
    "a device of the future": ({"device": (77, 0)}, "the tensor is on a DLPack type 77 device"),
    "a negative device": ({"device": (CUDA, -1)}, "the tensor's device has the number -1; its producer is at fault"),
    "negative dimensions": ({"ndim": -1}, "the tensor says that it has -1 dimensions; its producer is at fault"),
    "too many dimensions": ({"ndim": 65}, "the tensor says that it has 65 dimensions; its producer is at fault"),
    "no shape": ({"shape": (), "ndim": 2}, "the tensor has 2 dimensions and no shape; its producer is at fault"),
    "a negative size": (
        {"shape": (2, -3)},
        "the tensor says that dimension 1 has -3 elements; its producer is at fault",
    ),
    "no address": ({"data": None}, "the tensor has elements and no address; its producer is at fault"),
    "an offset out of the address space": (
        {"byte_offset": 2**64 - 1},
        "the tensor's offset of 18446744073709551615 bytes leads out of the address space; its producer is at fault",
    ),
    "elements out of the address space": ({"strides": (2**61, 1)}, "the array would be too large to be addressed"),
    "elements before the address space": (
        {"data": 4, "strides": (-4, 1)},
        "the array would be too large to be addressed",
    ),
    "a version of the future": (
        {"version": (2, 1)},
        "the tensor is of DLPack 2.1, and this library reads version 1; update it, or ask the producer for an "
        "older version",
    ),
    "padded elements": (
        {"dtype": (17, 4, 1), "flags": dlpack.IS_SUBBYTE_TYPE_PADDED},
        "the tensor holds one float4_e2m1fn in each byte, and device arrays pack them; convert it to a packed "
        "or a wider type first",
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", BAD)
def test_tensors_are_checked_and_given_back(fault, way):
    owner = made()
    fields, message = BAD[fault]
    tensor = tensor_of(owner, **fields)
    with pytest.raises((BufferError, ValueError)) as caught:
        cuwheel.from_dlpack(WAYS[way](tensor))
    assert message in str(caught.value)
    assert tensor.deleted == 1


@pytest.mark.parametrize("way", WAYS)
def test_host_memory_is_refused_and_given_back(way):
    memory = np.arange(3, dtype="float32")
    tensor = Tensor(data=memory.ctypes.data, device=(CPU, 0))
    with pytest.raises(ValueError, match="the array is in host memory; copy it to a device with asarray"):
        cuwheel.from_dlpack(WAYS[way](tensor))
    assert tensor.deleted == 1


ORDER = ["table", "method", "interface"]


class _Failure(Exception):
    pass


class Offers:
    """An array that offers every way, of which those in `works` work; `log` gets what was tried."""

    def __init__(self, works, error=_Failure):
        self.owner, self.works, self.error, self.log = made(), works, error, []

    def attempt(self, way):
        self.log.append(way)
        if way not in self.works:
            raise self.error(way)

    def __len__(self):
        self.attempt("table")

    def __dlpack_device__(self):
        return CUDA, 0

    def __dlpack__(self, **_):
        self.attempt("method")
        return tensor_of(self.owner).capsule()

    @property
    def __cuda_array_interface__(self):
        self.attempt("interface")
        return self.owner.__cuda_array_interface__


OFFERS = Table(managed_from_object=dlpack.raises).type("OffersTable", (Offers,))


@pytest.mark.parametrize("first", range(1, 4))
def test_a_way_that_fails_is_followed_by_the_next_and_the_first_error_is_shown(first):
    producer = OFFERS(ORDER[first:])
    if first < len(ORDER):
        assert contents(cuwheel.from_dlpack(producer)) == contents(made())
    else:
        with pytest.raises(_Failure, match="^table$"):
            cuwheel.from_dlpack(producer)
    assert producer.log == ORDER[: first + 1]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_answer_is_not_followed_by_the_next_way(stop):
    producer = OFFERS(ORDER[1:], stop)
    with pytest.raises(stop):
        cuwheel.from_dlpack(producer)
    assert producer.log == ["table"]


@pytest.mark.parametrize("error", [BufferError, RuntimeError, TypeError, MemoryError])
def test_any_error_is_followed_by_the_next_way(error):
    """torch raises RuntimeError where BufferError is meant."""
    producer = OFFERS(ORDER[1:], error)
    assert contents(cuwheel.from_dlpack(producer)) == contents(made())
    assert producer.log == ["table", "method"]


GOOD = {"managed_from_object": dlpack.managed, "view_from_object": dlpack.view}
#: Tables, and whether one is used.
TABLES = {
    "a newer minor version": (lambda: Table((1, 9), **GOOD), True),
    "a newer major version": (lambda: Table((2, 0), **GOOD), False),
    "a version from before the first": (lambda: Table((0, 8), **GOOD), False),
    "an older one behind a newer": (lambda: Table((2, 0), Table((1, 3), **GOOD)), True),
    "the third in a row": (lambda: Table((3, 0), Table((2, 0), Table((1, 2), **GOOD))), True),
    "a long row": (lambda: rows(100), False),
    "a circle": (lambda: circle(), False),
    "no function but one": (lambda: Table(managed_from_object=dlpack.managed), True),
    "no function at all": (lambda: Table(), False),
    "a view and nothing else": (lambda: Table(view_from_object=dlpack.view), False),
}


def rows(count):
    table = Table((1, 3), **GOOD)
    for _ in range(count):
        table = Table((2, 0), table)
    return table


def circle():
    first = Table((2, 0))
    second = Table((3, 0), first)
    first.structure.prev_api = second.address
    return second


@pytest.mark.parametrize("case", TABLES)
def test_tables_are_checked_before_they_are_used(case):
    owner = made()
    make, used = TABLES[case]
    tensor, other = tensor_of(owner), tensor_of(owner, shape=(2, 2))
    producer = exchanging(
        tensor, make(), __dlpack__=lambda self, **_: other.capsule(), __dlpack_device__=lambda self: (CUDA, 0)
    )
    assert cuwheel.from_dlpack(producer).shape == (owner.shape if used else (2, 2))
    dlpack.forget_tensors()


@pytest.mark.parametrize(
    "attribute",
    [5, None, "text", 2**70, lambda: dlpack.capsule(5, b"else"), lambda: dlpack.capsule(5, dlpack.VERSIONED)],
    ids=["number", "None", "text", "large number", "another capsule", "a tensor"],
)
def test_attributes_that_are_no_table_are_left_alone(attribute):
    owner = made()
    attribute = attribute() if callable(attribute) else attribute
    producer = type("Foreign", (Foreign,), {"__dlpack_c_exchange_api__": attribute})(tensor_of(owner))
    assert contents(cuwheel.from_dlpack(producer)) == contents(owner)


def test_a_table_is_looked_for_on_the_type_and_inherited():
    owner = made()
    producer = Foreign(tensor_of(owner))
    producer.__dlpack_c_exchange_api__ = property(lambda self: 1 / 0)
    assert cuwheel.from_dlpack(producer).shape == owner.shape
    derived = type("Derived", (Table(**GOOD).type(),), {})()
    derived.tensor = tensor_of(owner)
    assert cuwheel.from_dlpack(derived).shape == owner.shape


def test_types_are_asked_once_and_again_after_forget_types():
    owner = made()
    asked = []

    class Meta(type):
        def __getattribute__(cls, name):
            if name == "__dlpack_c_exchange_api__":
                asked.append(name)
            return super().__getattribute__(name)

    cls = Meta("Late", (Foreign,), {})
    for _ in range(5):
        cuwheel.from_dlpack(cls(tensor_of(owner)))
    assert len(asked) == 1
    cls.__dlpack_c_exchange_api__ = dlpack.capsule(Table(**GOOD).address, dlpack.TABLE)
    late = cls(tensor_of(owner))
    cuwheel.from_dlpack(late)
    assert len(late.requests) == 1, "that there is no table is remembered"
    forget_types()
    late = cls(tensor_of(owner))
    cuwheel.from_dlpack(late)
    assert late.requests == []


def test_more_types_than_are_remembered_come_and_go():
    """A type is kept as long as it is remembered, so that no other gets its address; not longer."""
    owner = made()
    references = []
    for number in range(300):
        producer = exchanging(tensor_of(owner)) if number % 2 else type("Foreign", (Foreign,), {})(tensor_of(owner))
        references.append(weakref.ref(type(producer)))
        assert cuwheel.from_dlpack(producer).shape == owner.shape
        del producer
    gc.collect()
    assert sum(reference() is not None for reference in references) <= 64


def test_an_error_of_the_type_itself_is_the_users():
    owner = made()

    class Meta(type):
        @property
        def __dlpack_c_exchange_api__(cls):
            raise ZeroDivisionError("the type's own")

    with pytest.raises(ZeroDivisionError, match="the type's own"):
        cuwheel.from_dlpack(Meta("Faulty", (Foreign,), {})(tensor_of(owner)))
    dlpack.forget_tensors()


def test_tables_can_be_switched_off():
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import cuwheel, dlpack
        owner = cuwheel.zeros(3)
        tensor = dlpack.tensor_of(owner, dtype=(2, 64, 1))
        used = []
        table = dlpack.Table(managed_from_object=lambda *arguments: used.append("table") or dlpack.managed(*arguments))
        producer = dlpack.exchanging(
            tensor, table,
            __dlpack__=lambda self, **_: used.append("method") or tensor.capsule(),
            __dlpack_device__=lambda self: (2, 0),
        )
        cuwheel.from_dlpack(producer)
        print(*used)
        """
    directory = Path(dlpack.__file__).parent
    for value, used in (("0", "method"), ("1", "table"), ("", "table")):
        assert fresh_python.run(code, directory, environment={"CUWHEEL_DLPACK_EXCHANGE": value}) == f"{used}\n"


class Older(Foreign):
    """A producer from before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


def test_a_producer_that_does_not_know_max_version_is_asked_without():
    owner = made()
    producer = Older(tensor_of(owner, versioned=False))
    assert contents(cuwheel.from_dlpack(producer)) == contents(owner)
    assert producer.requests == [{"stream": 1}]


def failing(*errors):
    """A producer whose `__dlpack__` raises one error after the other."""
    remaining, requests = list(errors), []

    class Failing(Foreign):
        def __dlpack__(self, **arguments):
            requests.append(sorted(arguments))
            raise remaining.pop(0)

    producer = Failing(Tensor())
    dlpack.forget_tensors()
    return producer, requests


@pytest.mark.parametrize(
    ("errors", "shown", "count"),
    [
        ([BufferError("first")], BufferError("first"), 1),
        ([TypeError("first"), BufferError("second")], BufferError("second"), 2),
        ([TypeError("first"), TypeError("second")], TypeError("first"), 2),
        ([TypeError("first"), KeyboardInterrupt("second")], KeyboardInterrupt("second"), 2),
    ],
    ids=str,
)
def test_only_a_type_error_is_answered_without_max_version(errors, shown, count):
    """What a producer says without the argument is its answer; unless it is of the same kind."""
    producer, requests = failing(*errors)
    with pytest.raises(type(shown), match=str(shown)):
        cuwheel.from_dlpack(producer)
    assert requests == [["max_version", "stream"], ["stream"]][:count]


@pytest.mark.parametrize(
    ("returned", "exception", "message"),
    [
        (5, TypeError, "__dlpack__ returned int, no capsule"),
        (None, TypeError, "__dlpack__ returned NoneType, no capsule"),
        (lambda: dlpack.capsule(5, b"else"), BufferError, "__dlpack__ returned a capsule without a tensor"),
        (lambda: dlpack.capsule(5, dlpack.TABLE), BufferError, "__dlpack__ returned a capsule without a tensor"),
    ],
    ids=range(4),
)
def test_what_is_no_tensor_is_refused(returned, exception, message):
    producer, _ = failing()
    type(producer).__dlpack__ = lambda self, **_: returned() if callable(returned) else returned
    with pytest.raises(exception, match=message):
        cuwheel.from_dlpack(producer)


@pytest.mark.parametrize("device", [(CUDA, 0), (CUDA, 1), (CUDA_MANAGED, 0), (CUDA_HOST, 0), (CPU, 0)], ids=str)
def test_a_stream_is_named_where_the_array_has_one(device):
    kind = {CUDA: "device", CUDA_MANAGED: "managed"}.get(device[0], "pinned")
    owner = cuwheel.zeros(3, kind=kind, device=device[1])
    producer = Foreign(tensor_of(owner, dtype=(2, 64, 1), device=device))
    stream = Stream(device=device[1])
    if device[0] == CPU:
        with pytest.raises(ValueError, match="the array is in host memory"):
            cuwheel.from_dlpack(producer, stream=stream)
    else:
        assert cuwheel.from_dlpack(producer, stream=stream).stream.handle == stream.handle
    asked = {"max_version": (1, 3)} | ({"stream": stream.handle} if device[0] in (CUDA, CUDA_MANAGED) else {})
    assert producer.requests == [asked]


def test_lazily_conjugated_and_negated_tensors_are_refused():
    """torch's table and its interface describe the memory, which holds other values than the tensor shows."""
    owner = made()
    cases = [
        ("is_conj", "conjugated", "resolve_conj", (5, 64, 1), (3, 2)),
        ("is_neg", "negated", "resolve_neg", (5, 64, 1), (3, 2)),
    ]
    for way in (exchanging, lambda tensor, **attributes: type("Method", (Foreign,), attributes)(tensor)):
        for question, what, remedy, dtype, shape in cases:
            answers = {"is_conj": lambda self: False, "is_neg": lambda self: False} | {question: lambda self: True}
            tensor = tensor_of(owner, dtype=dtype, shape=shape, strides=(2, 1))
            with pytest.raises(BufferError) as caught:
                cuwheel.from_dlpack(way(tensor, **answers))
            assert str(caught.value) == (
                f"the tensor is {what} lazily, and its memory holds other values; call .{remedy}() first"
            )
            assert tensor.deleted == 1
        resolved = {"is_conj": lambda self: False, "is_neg": lambda self: False}
        assert cuwheel.from_dlpack(
            way(tensor_of(owner, dtype=(5, 64, 1), shape=(3, 2), strides=(2, 1)), **resolved)
        ).shape == (3, 2)


def test_an_interface_is_read_as_it_says():
    owner = made()
    cases = [
        ({"version": 2}, {}),
        ({"version": 4}, {}),
        ({"strides": (4, 16), "shape": (4, 3)}, {"shape": (4, 3), "strides": (4, 16)}),
        ({"strides": (-16, 4), "data": (owner.pointer + 32, False)}, {"strides": (-16, 4)}),
        ({"data": (owner.pointer, True)}, {}),
        ({"typestr": "|V4"}, {"dtype": np.dtype("V4")}),
        ({"typestr": "<M8[ms]", "shape": (6,)}, {"dtype": np.dtype("V8"), "shape": (6,)}),
        ({"shape": (), "strides": None}, {"shape": ()}),
        ({"shape": (0, 3), "data": (0, False)}, {"shape": (0, 3), "pointer": 0}),
        ({"stream": None}, {}),
        ({"mask": None, "descr": [("", "<f4")]}, {}),
    ]
    for fields, expected in cases:
        array = cuwheel.from_dlpack(Described(owner, **fields))
        expected = {"shape": owner.shape, "dtype": owner.dtype} | expected
        assert {name: getattr(array, name) for name in expected} == expected
        assert array.flags.writeable != fields.get("data", (0, False))[1]


BAD_INTERFACES = [
    (5, TypeError, "__cuda_array_interface__ is int, no dict"),
    ({"version": 1}, ValueError, "__cuda_array_interface__ is not valid: version 1 is older than 2"),
    ({"version": None}, ValueError, "__cuda_array_interface__ is not valid: it has no version"),
    ({"shape": None}, ValueError, "__cuda_array_interface__ is not valid: it has no shape"),
    ({"typestr": ">f4"}, TypeError, 'elements of type ">f4" are in the byte order of another machine'),
    ({"typestr": "|O8"}, TypeError, 'the type string "|O8" is not supported'),
    ({"typestr": 5}, TypeError, "'int' object"),
    ({"data": 5}, TypeError, "'int' object"),
    ({"data": (-1, False)}, OverflowError, "can't convert negative"),
    ({"strides": (4,)}, ValueError, "__cuda_array_interface__ is not valid: 1 strides for 2 dimensions"),
    ({"shape": (3, -4)}, ValueError, "the size of dimension 1 is -4; sizes must not be negative"),
    ({"stream": 0}, ValueError, "stream 0 is ambiguous; 1 is the legacy default stream, 2 the per-thread one"),
    ({"mask": Foreign}, BufferError, "the array has a mask, which device arrays cannot have; fill it first"),
]


@pytest.mark.parametrize(
    ("fields", "exception", "message"), BAD_INTERFACES, ids=[str(case[0]) for case in BAD_INTERFACES]
)
def test_interfaces_are_checked(fields, exception, message):
    owner = made()
    producer = Described(owner, **fields) if isinstance(fields, dict) else Described(owner)
    if not isinstance(fields, dict):
        producer.__cuda_array_interface__ = fields
    with pytest.raises(exception) as caught:
        cuwheel.from_dlpack(producer)
    assert message in str(caught.value)
