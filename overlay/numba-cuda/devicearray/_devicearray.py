"""The base class of device arrays."""

from . import _native

__all__ = ["_DEVICEARRAY_API", "DeviceArray"]

DeviceArray = _native._devicearray_base.DeviceArray
_DEVICEARRAY_API = _native._devicearray_base._DEVICEARRAY_API
