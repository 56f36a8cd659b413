"""Threads that use `_typeconv`, `_dispatcher` and `mviewbuf` at the same time, and what belongs to each of them.

A public change to numba-cuda (PK-897) tests these scenarios for Python without a GIL. With one they find what is not
ordered by it: callbacks give other threads their turn.
"""

import gc
import itertools
import sys
import threading
import weakref

import numpy as np
import pytest
from at_once import at_once
from cuwheel import _dispatcher, _typeconv, mviewbuf
from dispatching import FLOAT64, INT64, LAUNCH_CONFIG, Implementation, typeof
from values import VALUES, Array

ROUNDS = 200


@pytest.fixture(scope="module")
def ours():
    return Implementation(_typeconv, _dispatcher)


@pytest.fixture(autouse=True)
def quick_turns():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_t14_c6_pk_897_conversions_are_set_while_others_choose(ours):
    manager, numbers = ours.manager(), itertools.count(10)

    def work():
        for _ in range(ROUNDS):
            code = next(numbers)
            _typeconv.set_compatible(manager, code, 1, ord("p"))
            _typeconv.set_compatible(manager, code, 2, ord("s"))
            assert _typeconv.check_compatible(manager, code, 1) == "promote"
            assert _typeconv.select_overload(manager, (code, code), ((2, 2), (1, 2), (1, 1)), 0, 0) == 2
            assert _typeconv.check_compatible(manager, 1, code) is None

    at_once(work)


def test_t14_pk_897_type_managers_come_and_go():
    def work():
        for _ in range(ROUNDS):
            manager = _typeconv.new_type_manager()
            _typeconv.set_compatible(manager, 1, 2, ord("u"))
            pointer = _typeconv.get_pointer(manager)
            dispatcher = _dispatcher.Dispatcher(pointer, 1, 0, ("a",), (), 1)
            del manager
            dispatcher._insert([1], len)

    at_once(work)


def test_t14_pk_897_values_of_every_kind_are_typed(ours):
    expected = {}
    for name, value in VALUES.items():
        try:
            expected[name] = ours.module.compute_fingerprint(value())
        except Exception as error:
            expected[name] = type(error)

    def work():
        for _ in range(5):
            for name, value in VALUES.items():
                try:
                    seen = ours.module.compute_fingerprint(value())
                except Exception as error:
                    seen = type(error)
                assert seen == expected[name], name

    at_once(work)


def test_t9_t14_pk_897_first_calls_with_new_types(ours):
    """Threads that meet a type for the first time agree on it."""
    values = [np.zeros((1,) * 8, f"M8[{number}us]") for number in range(100, 150)]
    values += [(np.zeros(1), number, *[1.5] * number) for number in range(30)]

    def work():
        dispatcher = ours.dispatcher(1)
        dispatcher.typeof_pyval = typeof
        for value in values:
            dispatcher._insert([typeof(value)._code], ("found", typeof(value)._code), cuda=True)
        for value in values * 3:
            assert dispatcher._cuda_call(value) == ("found", typeof(value)._code)
            dispatcher._cuda_call(value.view(Array) if isinstance(value, np.ndarray) else value)

    at_once(work)


def test_h6_h8_pk_897_overloads_are_inserted_and_cleared_during_calls(ours):
    dispatcher = ours.dispatcher(2)
    dispatcher._compile_for_args = lambda *args, **kws: "compiled"

    class Slow:
        @property
        def _numba_type_(self):
            for _ in range(20):
                pass
            return typeof(1.5j)

    code, numbers = typeof(1.5j)._code, itertools.count()

    def work():
        slow = Slow()
        for _ in range(ROUNDS):
            number = next(numbers)
            if number % 7 == 0:
                dispatcher._clear()
            elif number % 11 == 0:
                dispatcher.__init__(*ours.arguments(dispatcher.manager, 2))
            elif number % 3 == 0:
                dispatcher._insert([code, INT64], "found", cuda=True)
            assert dispatcher._cuda_call(slow, 1) in {"found", "compiled"}
            assert dispatcher._cuda_call(slow) == "compiled"
            dispatcher._can_compile = True

    at_once(work)


def test_pk_897_dispatchers_of_many_threads_are_collected(ours):
    def work():
        for _ in range(20):
            dispatcher = ours.dispatcher(1, [([FLOAT64], "found")])
            dispatcher._insert([INT64], dispatcher, cuda=True)
            assert dispatcher._cuda_call(1) is dispatcher
            gc.collect(0)

    at_once(work)


def test_pk_897_buffers_are_exported_while_others_look_at_extents():
    values = np.arange(24.0).reshape(2, 3, 4)

    def work():
        for _ in range(ROUNDS):
            address = mviewbuf.memoryview_get_buffer(values)
            assert mviewbuf.memoryview_get_extents(values[::-1]) == (address, address + values.nbytes)
            assert mviewbuf.memoryview_get_extents_info((3, 4), (-32, 8), 2, 8) == (-64, 32)

    at_once(work)


def test_the_launch_configuration_belongs_to_the_thread(ours):
    dispatcher, configs = ours.dispatcher(1), itertools.count()
    current, swap = ours.module.get_current_launch_config, ours.module.swap_current_launch_args

    def compile_(config):
        for _ in range(20):
            assert current() == config
        return config

    dispatcher._compile_for_args = compile_

    def work():
        for _ in range(ROUNDS):
            config = next(configs)
            assert dispatcher._cuda_call(config, **{LAUNCH_CONFIG: config}) == config
            assert current() is None
            assert swap(config) is None
            assert swap(None) == config

    at_once(work)


class Launch:
    pass


def test_h11_what_belongs_to_a_thread_ends_with_it(ours):
    alive = []

    def work():
        launch = Launch()
        alive.append(weakref.ref(launch))
        ours.module.swap_current_launch_args(launch)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert [each() for each in alive] == [None]


def test_h11_cycles_through_the_launch_configuration_are_collected(ours):
    dispatcher, launch = ours.dispatcher(1), Launch()
    launch.dispatcher = dispatcher
    dispatcher.launch = launch
    alive = weakref.ref(launch)
    dispatcher._compile_for_args = lambda value: ours.module.get_current_launch_config()
    assert dispatcher._cuda_call(1, **{LAUNCH_CONFIG: launch}) is launch
    del dispatcher, launch
    gc.collect()
    assert alive() is None
