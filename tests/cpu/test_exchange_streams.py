"""Who waits for whom when arrays change hands. The stand-in sees work that nothing orders."""

import ctypes

import cuwheel
import dlpack
import numpy as np
import pytest
from cuwheel import Stream
from device_arrays import Described, contents
from dlpack import CPU, Foreign, Table, exchanging, tensor_of

pytestmark = pytest.mark.usefixtures("driver")

ORDERS = ("cuEventRecord", "cuStreamWaitEvent")
SYNCHRONISATIONS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")
STREAMS = {"legacy": lambda: Stream(0), "per-thread": lambda: Stream(2), "own": Stream}


class Producer(Foreign):
    """An array that is being written on a stream of its library, which orders a consumer's stream behind it."""

    def __init__(self, owner, stream):
        super().__init__(tensor_of(owner))
        self.owner, self.stream = owner, stream

    def __dlpack__(self, **arguments):
        Stream(arguments["stream"]).wait(self.stream)
        return super().__dlpack__(**arguments)


def through_table(owner, stream):
    return exchanging(tensor_of(owner), handle=stream.handle)


def through_interface(owner, stream):
    return Described(owner, stream=max(stream.handle, 1))


WAYS = {"table": through_table, "method": Producer, "interface": through_interface}


def produced(driver, stream) -> cuwheel.DeviceArray:
    """Memory that work on a stream is writing to."""
    owner = cuwheel.empty(64, "float32", stream=stream)
    driver.fill(owner, stream)
    return owner


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("producers", STREAMS)
@pytest.mark.parametrize("consumers", STREAMS)
@pytest.mark.parametrize("named", [False, True])
def test_the_arrays_stream_is_behind_the_producers(producers, consumers, way, named, driver):
    producer_stream, consumer_stream = STREAMS[producers](), STREAMS[consumers]()
    owner = produced(driver, producer_stream)
    producer = WAYS[way](owner, producer_stream)
    driver.reset()
    if named:
        array = cuwheel.from_dlpack(producer, stream=consumer_stream)
    else:
        with cuwheel.use_stream(consumer_stream):
            array = cuwheel.from_dlpack(producer)
    assert array.stream == consumer_stream
    assert driver.calls(*SYNCHRONISATIONS) == 0, "the host waits for nothing"
    assert (driver.calls(*ORDERS) == 0) == (producers == consumers != "own"), "nothing is ordered that is in order"
    driver.fill(array, consumer_stream)
    assert driver.violations() == []
    # The memory goes back in the order of its owner's stream: what was put on another is ordered before that.
    producer_stream.wait(consumer_stream)


@pytest.mark.parametrize("way", ["table", "interface"])
def test_arrays_of_other_devices_are_ordered_on_theirs(way, driver):
    """flash-attention#2356, FlashMLA#158: the current device is another than the array's."""
    producer_stream, consumer_stream = Stream(device=1), Stream(device=1)
    owner = cuwheel.empty(64, "float32", device=1, stream=producer_stream)
    driver.fill(owner, producer_stream)
    with driver.context(0), cuwheel.use_stream(consumer_stream):
        array = cuwheel.from_dlpack(WAYS[way](owner, producer_stream))
    assert (array.device, array.stream) == (cuwheel.Device(1), consumer_stream)
    driver.fill(array, consumer_stream)
    producer_stream.wait(consumer_stream)


def test_the_table_is_asked_for_the_stream_of_the_arrays_device_each_time(driver):
    owner = cuwheel.empty(3, device=1)
    current = dlpack.stream(0)
    table = Table(managed_from_object=dlpack.managed, current_work_stream=current)
    cls = table.type()
    for _ in range(2):
        producer = cls()
        producer.tensor = tensor_of(owner, dtype=(2, 64, 1))
        cuwheel.from_dlpack(producer)
    assert current.asked == [(dlpack.CUDA, 1)] * 2


@pytest.mark.parametrize(("kind", "device_type"), [("pinned", dlpack.CUDA_HOST), ("managed", dlpack.CUDA_MANAGED)])
def test_memory_that_the_host_sees_has_a_stream_too(kind, device_type):
    owner = cuwheel.empty(3, kind=kind)
    current = dlpack.stream(Stream(2).handle)
    table = Table(managed_from_object=dlpack.managed, current_work_stream=current)
    assert cuwheel.from_dlpack(exchanging(tensor_of(owner), table)).stream == Stream(0)
    assert current.asked == [(device_type, 0)]


def test_managed_memory_of_another_device_gets_a_stream_of_that_device(driver):
    """DLPack has the number 0 for it, so that the producer is asked for a stream of device 0."""
    owner = cuwheel.empty(64, "float32", kind="managed", device=1)
    zero, one = Stream(), Stream(device=1)
    with cuwheel.use_stream(zero), cuwheel.use_stream(one):
        producer = Foreign(tensor_of(owner))
        array = cuwheel.from_dlpack(producer)
    assert producer.requests == [{"stream": zero.handle, "max_version": (1, 3)}]
    assert (array.device, array.stream) == (cuwheel.Device(1), one)
    assert driver.calls("cuStreamWaitEvent") == 1


def test_an_interface_without_a_stream_is_ready(driver):
    owner = cuwheel.empty(3)
    driver.reset()
    cuwheel.from_dlpack(Described(owner, stream=None), stream=2)
    assert driver.calls(*ORDERS) == 0


def test_a_table_that_cannot_tell_its_stream_gets_the_current_one():
    producer = exchanging(tensor_of(cuwheel.empty(3)), Table(managed_from_object=dlpack.managed))
    assert cuwheel.from_dlpack(producer, stream=2).stream == Stream(2)


@pytest.mark.parametrize("way", ["table", "interface"])
def test_tvm_ffi_466_a_capture_stays_clean(way, driver):
    """While the producer records a graph, the array stays on its stream, and nobody waits."""
    stream = Stream()
    owner = produced(driver, stream)
    with driver.capture(stream):
        driver.reset()
        array = cuwheel.from_dlpack(WAYS[way](owner, stream))
        assert array.stream == stream
        assert driver.calls(*SYNCHRONISATIONS, *ORDERS) == 0
        driver.fill(array, stream)
    assert contents(array.view("uint8"))[:4] == [7] * 4


@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_pytorch_163242_an_export_without_synchronisation_can_be_captured(max_version, driver):
    stream = Stream()
    array = cuwheel.zeros(3, stream=stream)
    with driver.capture(stream):
        driver.reset()
        capsule = array.__dlpack__(stream=-1, max_version=max_version)
        assert driver.report()["calls"] == {}
    del capsule


@pytest.mark.parametrize(
    ("argument", "consumer"),
    [(None, 0), (1, 1), (2, 2), ("own", "own")],
    ids=["pytorch#150217: None is the legacy stream", "pytorch#67618: 1", "pytorch#67618: 2", "a handle"],
)
@pytest.mark.parametrize("producers", STREAMS)
def test_exports_are_ready_for_the_consumers_stream(producers, argument, consumer, driver):
    own = Stream()
    argument, consumer = (own.handle if value == "own" else value for value in (argument, consumer))
    stream = STREAMS[producers]()
    array = produced(driver, stream)
    driver.reset()
    capsule = array.__dlpack__(stream=argument)
    assert driver.calls(*SYNCHRONISATIONS) == 0
    assert (driver.calls(*ORDERS) == 0) == (stream == Stream(consumer))
    driver.fill(array, Stream(consumer))
    assert driver.violations() == []
    stream.wait(consumer)
    del capsule


def test_exports_without_synchronisation_are_not_ordered(driver):
    """With -1 the order is the consumer's, which the stand-in sees."""
    stream, other = Stream(), Stream()
    array = produced(driver, stream)
    driver.reset()
    capsule = array.__dlpack__(stream=-1)
    assert driver.calls(*ORDERS, *SYNCHRONISATIONS) == 0
    driver.fill(array, other)
    assert len(driver.violations()) == 1
    del array, capsule
    driver.reset()


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            0,
            "stream 0 could be either default stream; pass 1 for the legacy one, 2 for the per-thread one, or "
            "-1 for no synchronisation",
        ),
        (-2, "-2 is no handle of a stream; negative is only -1, for no synchronisation"),
    ],
)
def test_pytorch_67618_streams_that_mean_nothing_are_refused(stream, message):
    with pytest.raises(ValueError) as caught:
        cuwheel.empty(3).__dlpack__(stream=stream)
    assert str(caught.value) == message


@pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
def test_exports_to_the_host_are_complete(kind, driver):
    stream = Stream()
    array = cuwheel.empty(8, "uint8", kind=kind, stream=stream)
    driver.fill(array, stream)
    driver.reset()
    tensor = dlpack.take(array.__dlpack__(dl_device=(CPU, 0), max_version=(1, 3)))
    assert driver.calls("cuStreamSynchronize") >= 1
    assert ctypes.string_at(tensor.dl_tensor.data, 8) == bytes([7] * 8)
    dlpack.delete(tensor)


def test_our_own_arrays_stay_on_their_stream(driver):
    one, two = Stream(), Stream()
    array = produced(driver, one)
    driver.reset()
    with cuwheel.use_stream(two):
        assert cuwheel.from_dlpack(array).stream == one
    assert driver.calls(*ORDERS) == 0
    other = cuwheel.from_dlpack(array, stream=two)
    assert other.stream == two
    driver.fill(other, two)
    one.wait(two)


def test_two_producers_with_streams_of_their_own_are_ordered(driver):
    one, two = Stream(), Stream()
    first, second = produced(driver, one), produced(driver, two)
    target = cuwheel.from_dlpack(through_table(first, one))
    target[...] = cuwheel.from_dlpack(through_table(second, two))
    target[...] = through_interface(second, two)
    target[...] = through_table(second, two)
    assert driver.violations() == []
    assert np.asarray(target.copy_to_host()).view("uint8").tolist() == [7] * 256
    for stream in (one, two):
        stream.wait(target.stream)


def test_torchrec_4231_memory_is_not_reused_under_work_of_another_stream(driver):
    """The array goes back in the order of the stream that it was made on, behind what was ordered before."""
    one, two = Stream(), Stream()
    owner = produced(driver, one)
    array = cuwheel.from_dlpack(owner, stream=two)
    driver.fill(array, two)
    one.wait(two)
    del owner, array
    again = cuwheel.empty(64, "float32", stream=one)
    driver.fill(again, one)
    assert driver.violations() == []
