"""Where launches go, who waits for whom, and how long arguments live. The stand-in sees work that nothing orders."""

import ctypes
import gc
import weakref

import cuwheel
import kernels
import pytest
from cuwheel import Stream

pytestmark = pytest.mark.usefixtures("driver", "first_and_later_launches")

ORDERS = ("cuEventRecord", "cuStreamWaitEvent")


class Described:
    """An array of another library, whose work is on a stream."""

    def __init__(self, owner, stream):
        self.owner = owner
        self.__cuda_array_interface__ = {**owner.__cuda_array_interface__, "stream": max(stream.handle, 1)}


def pair() -> cuwheel.Kernel:
    return kernels.typed("float32*", "float32*")


def array(stream=None, **options) -> cuwheel.DeviceArray:
    return cuwheel.zeros(16, "float32", stream=stream, **options)


def launched_on(driver) -> int:
    return kernels.last_launch(driver)["stream"]


def test_a_launch_is_on_the_current_stream(driver):
    kernel, stream = pair(), Stream()
    x = array()
    driver.reset()
    kernel[1, 1](x, x)
    assert (launched_on(driver), driver.calls(*ORDERS)) == (0, 0)
    with cuwheel.use_stream(stream):
        y = array()
        driver.reset()
        kernel[1, 1](y, y)
        assert (launched_on(driver), driver.calls(*ORDERS)) == (stream.handle, 0)
    with cuwheel.use_stream(stream):
        kernels.typed()[1, 1]()
        assert launched_on(driver) == stream.handle


def test_a_launch_is_on_the_stream_of_another_library(driver):
    kernel, stream = pair(), Stream()
    x = array(stream)
    foreign = Described(x, stream)
    kernel[1, 1](foreign, foreign)
    assert (launched_on(driver), driver.calls("cuEventRecord")) == (stream.handle, 0)


class Exporting(Described):
    """One that has `__dlpack__` too, as arrays of CuPy have: it makes the consumer's stream wait."""

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.owner.__dlpack__(**arguments)


def test_a_library_that_says_its_stream_is_not_asked_to_make_another_one_wait(driver):
    kernel, stream = pair(), Stream()
    foreign = Exporting(array(stream), stream)
    driver.reset()
    kernel[1, 1](foreign, foreign)
    assert (launched_on(driver), driver.calls(*ORDERS)) == (stream.handle, 0)
    # A type that the CUDA array interface has no name for goes through DLPack.
    foreign.__cuda_array_interface__["typestr"] = "<V4"
    kernel[1, 1](foreign, foreign)
    assert (launched_on(driver), driver.calls("cuStreamWaitEvent")) == (0, 2)
    Stream(0).synchronize()


def test_arrays_of_several_streams_are_ordered_with_the_launch_and_wait_for_it(driver):
    kernel, first, second = pair(), Stream(), Stream()
    x, y = array(first), array(second)
    driver.fill(x, first)
    driver.fill(y, second)
    driver.reset()
    kernel[1, 1](Described(x, first), Described(y, second))
    assert launched_on(driver) == first.handle
    assert driver.calls("cuStreamWaitEvent") == 2
    # Freed in the order of its stream: the stand-in would see a launch that is not behind.
    del x, y
    kernel[1, 1](array(first), array(second))
    assert driver.violations() == []


@pytest.mark.parametrize("where", ["argument", "configured", "integer"])
def test_a_stream_that_is_named_is_behind_the_streams_of_the_arrays(driver, where):
    kernel, own, named = pair(), Stream(), Stream()
    x = array(own)
    driver.fill(x, own)
    driver.reset()
    if where == "argument":
        kernel.launch((x, x), grid=1, block=1, stream=named)
    else:
        kernel[1, 1, named if where == "configured" else named.handle](x, x)
    assert launched_on(driver) == named.handle
    # The stream of the array goes on without waiting.
    assert driver.calls("cuStreamWaitEvent") == 1
    named.synchronize()


def test_arguments_live_until_a_stream_that_was_named_has_passed_them(driver):
    kernel, named = pair(), Stream()
    foreign = Described(array(), Stream(0))
    alive = weakref.ref(foreign)
    with driver.faults("fail=cuEventQuery:1+:NOT_READY"):
        kernel[1, 1, named](foreign, foreign)
        del foreign
        gc.collect()
        named.synchronize()
        assert alive() is not None
    named.synchronize()
    assert alive() is None


def test_arguments_on_their_own_stream_live_until_the_launch_has_returned(driver):
    kernel = pair()
    x = array()
    alive = weakref.ref(x)
    kernel[1, 1](x, x)
    del x
    assert alive() is None


def test_memory_that_goes_right_after_the_launch_is_still_there_for_it(driver):
    kernel, stream = pair(), Stream()
    with cuwheel.use_stream(stream):
        for _ in range(10):
            kernel[1, 1](array(), array())
            kernel[1, 1](array(Stream(0)), array())
    assert driver.violations() == []


def test_arrays_of_several_devices_are_refused_with_their_places(driver):
    kernel = kernels.typed("float32*", "int32", "float32*", "float32*")
    x, y = array(), array(device=1)
    with pytest.raises(ValueError) as raised:
        kernel[1, 1](x, 1, Described(y, Stream(0)), y)
    assert str(raised.value) == 'the arrays of kernel "k" are on several devices: argument 0 is on cuda:0, argument 2 is on cuda:1, argument 3 is on cuda:1; copy them to one first'  # fmt: skip
    assert driver.report()["launch_count"] == 0


def test_memory_that_all_devices_see_goes_where_the_others_are(driver):
    kernel = pair()
    for arguments in ((array(kind="pinned"), array(device=1)), (array(device=1), array(kind="managed"))):
        kernel[1, 1](*arguments)
        assert kernels.last_launch(driver)["device"] == 1
    kernel[1, 1](array(kind="pinned"), array(kind="mapped"))
    assert kernels.last_launch(driver)["device"] == 0


@pytest.mark.parametrize("current", [None, 0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_the_context_of_the_arrays_is_current_for_the_launch_only(driver, device, current):
    kernel, x = pair(), array(device=device)

    def launch_and_look():
        before, after = ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuCtxGetCurrent", ctypes.byref(before))
        kernel[1, 1](x, x)
        driver.call("cuCtxGetCurrent", ctypes.byref(after))
        assert kernels.last_launch(driver)["device"] == device
        assert after.value == before.value or before.value is None

    if current is None:
        launch_and_look()
    else:
        with driver.context(current):
            launch_and_look()


def test_a_kernel_without_arrays_is_on_the_current_device(driver):
    kernel = kernels.typed("int32")
    with driver.context(1):
        kernel[1, 1](3)
    assert kernels.last_launch(driver)["device"] == 1


def test_a_launch_is_captured_into_a_graph(driver):
    kernel, stream = pair(), Stream()
    x, early = array(stream), array()
    with driver.capture(stream):
        # The image is loaded during the capture, and nothing waits for streams outside.
        with cuwheel.use_stream(stream):
            kernel[1, 1](x, x)
            kernel[1, 1](x, early)
        kernel[1, 1, stream](x, early)
    assert driver.report()["launch_count"] == 0
    assert driver.calls("cuStreamWaitEvent") == 0
    kernel[1, 1](x, x)
    assert driver.report()["launch_count"] == 1


def test_streams_of_one_capture_are_ordered_with_each_other(driver):
    kernel, stream, other = pair(), Stream(), Stream()
    x, y = array(stream), array(other)
    stream.wait(other)
    other.synchronize()
    with driver.capture(stream):
        other.wait(stream)
        kernel[1, 1](Described(x, stream), Described(y, other))
        stream.wait(other)
    assert driver.violations() == []


def test_an_image_is_unloaded_during_a_capture(driver):
    stream = Stream()
    kernel = pair()
    x = array(stream)
    kernel[1, 1](x, x)
    with driver.capture(stream):
        del kernel
        gc.collect()
    assert driver.calls("cuLibraryUnload") == 1
