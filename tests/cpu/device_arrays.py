"""What many tests of device arrays do with them."""

import cuwheel

KINDS = ["device", "pinned", "mapped", "managed"]
HOST_VISIBLE = KINDS[1:]


def contents(array: cuwheel.DeviceArray) -> list:
    return array.copy_to_host().tolist()


def raw(array: cuwheel.DeviceArray) -> bytes:
    """The bytes of the elements, whatever they mean."""
    return array.view(f"V{array.itemsize}").copy_to_host().tobytes()


def used_strides(array) -> list:
    """The strides that lead from an element to another; the others can be anything."""
    steps = zip(array.shape, array.strides, strict=True)
    return [stride for size, stride in steps if size > 1 and 0 not in array.shape]


class Described:
    """An array of another library that has nothing but the CUDA array interface."""

    def __init__(self, owner: cuwheel.DeviceArray, **fields: object):
        self.owner = owner
        self.__cuda_array_interface__ = owner.__cuda_array_interface__ | fields


def read_only(shape, dtype="float64", kind="device") -> cuwheel.DeviceArray:
    """A read-only array of zeros."""
    owner = cuwheel.zeros(shape, dtype, kind=kind)
    return cuwheel.from_dlpack(Described(owner, data=(owner.pointer, True)))
