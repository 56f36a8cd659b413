"""Attributes of launches: what the driver is told, and what is refused."""

import copy
import pickle

import cuwheel
import kernels
import numpy as np
import pytest

#: Each with the number that the driver knows it by.
ATTRIBUTES = [
    ({"priority": -2}, 8),
    ({"priority": np.int64(3)}, 8),
    ({"programmatic_stream_serialization": True}, 6),
    ({"cluster_scheduling_policy_preference": "load_balancing"}, 5),
    ({"mem_sync_domain": "remote"}, 10),
    ({"mem_sync_domain_map": (0, 1)}, 9),
    ({"preferred_cluster_dimension": (4, 2, 1)}, 11),
    ({"preferred_shared_memory_carveout": 50}, 14),
    ({"nvlink_util_centric_scheduling": False}, 16),
]


def nothing() -> cuwheel.Kernel:
    return kernels.untyped(name="nothing")


@pytest.mark.parametrize(("attributes", "number"), ATTRIBUTES)
def test_the_driver_is_told(driver, attributes, number):
    kernel = nothing()
    configured = kernel.configure((4, 2), 32, cluster=(2, 2), attributes=attributes)
    configured()
    kernel.launch((), grid=(4, 2), block=32, cluster=(2, 2), attributes=attributes)
    assert [launch["attributes"] for launch in driver.report()["launches"]] == [[number]] * 2
    assert [launch["cluster"] for launch in driver.report()["launches"]] == [[2, 2, 1]] * 2
    assert configured.attributes == attributes
    for twin in (pickle.loads(pickle.dumps(configured)), copy.deepcopy(configured)):
        assert (twin, hash(twin), twin.attributes) == (configured, hash(configured), attributes)
    assert configured != kernel.configure((4, 2), 32, cluster=(2, 2))


def test_all_attributes_go_together(driver):
    attributes = {name: value for given, _ in ATTRIBUTES for name, value in given.items()}
    configured = nothing().configure((4, 2), 32, cluster=2, cooperative=True, attributes=attributes)
    configured()
    assert sorted(kernels.last_launch(driver)["attributes"]) == [5, 6, 8, 9, 10, 11, 14, 16]
    backwards = dict(reversed(attributes.items()))
    assert nothing().configure((4, 2), 32, cluster=2, cooperative=True, attributes=backwards).attributes == configured.attributes
    assert "cooperative, priority 3, programmatic_stream_serialization on" in repr(configured)


def test_without_attributes_the_driver_is_told_of_none(driver):
    for attributes in (None, {}):
        configured = nothing().configure(1, 32, attributes=attributes)
        configured()
        assert (configured.attributes, configured) == ({}, nothing()[1, 32])
        assert not kernels.last_launch(driver)["attributes"]


ONES = "priority, programmatic_stream_serialization, cluster_scheduling_policy_preference, mem_sync_domain, mem_sync_domain_map, preferred_cluster_dimension, preferred_shared_memory_carveout, nvlink_util_centric_scheduling"  # fmt: skip
REFUSED = [
    ({"prio": 1}, ValueError, f'there is no launch attribute "prio"; there are {ONES}'),
    ({"cooperative": True}, ValueError, 'the attribute "cooperative" has an option of its own: cooperative=True'),
    ({"cluster_dimension": 2}, ValueError, 'the attribute "cluster_dimension" has an option of its own: cluster='),
    ({1: 1}, TypeError, "a name of an attribute is a string, not int"),
    ([("priority", 1)], TypeError, "attributes is list, and a dictionary is needed"),
    ({"priority": 2**31}, ValueError, 'attributes["priority"] is 2147483648; it must be from -2147483648 to 2147483647'),
    ({"priority": 2**70}, ValueError, 'attributes["priority"] is 1180591620717411303424; it must be from -2147483648 to 2147483647'),
    ({"priority": True}, TypeError, 'attributes["priority"] is bool, and an integer is needed'),
    ({"priority": 1.0}, TypeError, 'attributes["priority"] is float, and an integer is needed'),
    ({"programmatic_stream_serialization": 1}, TypeError, 'attributes["programmatic_stream_serialization"] is int, and a bool is needed'),
    ({"mem_sync_domain": "local"}, ValueError, 'attributes["mem_sync_domain"] is "local"; it must be one of "default", "remote"'),
    ({"mem_sync_domain": 1}, TypeError, 'attributes["mem_sync_domain"] is int, and a string is needed'),
    ({"mem_sync_domain_map": 1}, TypeError, 'attributes["mem_sync_domain_map"] is int, and a pair of integers (default, remote) is needed'),
    ({"mem_sync_domain_map": (0, 256)}, ValueError, 'attributes["mem_sync_domain_map"] is 256; it must be from 0 to 255'),
    ({"preferred_cluster_dimension": 0}, ValueError, "preferred_cluster_dimension.x is 0, and nothing would run; leave the launch out"),
    ({"preferred_shared_memory_carveout": 101}, ValueError, 'attributes["preferred_shared_memory_carveout"] is 101; it must be from 0 to 100'),
    ({"preferred_shared_memory_carveout": None}, TypeError, 'attributes["preferred_shared_memory_carveout"] is NoneType, and an integer is needed'),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "error", "message"), REFUSED)
def test_what_is_no_attribute_is_refused_at_once(attributes, error, message):
    with pytest.raises(error) as raised:
        nothing().configure(1, 1, attributes=attributes)
    assert str(raised.value).removeprefix("argument 'attributes': ") == message


def test_preferred_clusters_are_made_of_clusters(driver):
    kernel = nothing()
    for cluster, why in [(None, "this launch has none: name them too"), (4, "those of this launch are (4, 1, 1)")]:
        with pytest.raises(ValueError) as raised:
            kernel.launch((), grid=16, block=1, cluster=cluster, attributes={"preferred_cluster_dimension": 6})
        assert str(raised.value).startswith("preferred_cluster_dimension is (6, 1, 1), which is for launches with clusters")
        assert str(raised.value).endswith(why)


def test_an_attribute_that_the_driver_does_not_know_is_suspected(driver):
    kernel = nothing()
    kernel[1, 1]()
    with driver.faults("fail=cuLaunchKernelEx:1:INVALID_VALUE"), pytest.raises(cuwheel.CudaError) as raised:
        kernel.launch((), grid=1, block=1, attributes={"nvlink_util_centric_scheduling": True})
    assert 'kernel "nothing" was not launched with grid (1, 1, 1), block (1, 1, 1), nvlink_util_centric_scheduling on: ' in str(raised.value)  # fmt: skip
    assert str(raised.value).endswith("an attribute may be one that the driver or the device does not have")
