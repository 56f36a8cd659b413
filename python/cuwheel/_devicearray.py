"""Device arrays, and the data types, devices and streams that go with them."""

from . import _native

__all__ = [
    "CudaError",
    "DType",
    "Device",
    "DeviceArray",
    "Flags",
    "Stream",
    "asarray",
    "current_stream",
    "empty",
    "forget_types",
    "from_dlpack",
    "from_host",
    "full",
    "use_stream",
    "zeros",
]

CudaError = _native._devicearray.CudaError
DeviceArray = _native._devicearray.DeviceArray
DType = _native._devicearray.DType
Device = _native._devicearray.Device
Flags = _native._devicearray.Flags
Stream = _native._devicearray.Stream
current_stream = _native._devicearray.current_stream
use_stream = _native._devicearray.use_stream
forget_types = _native._devicearray.forget_types
_rebuild = _native._devicearray._rebuild
_take_argument = _native._devicearray._take_argument
_time_exchange = _native._devicearray._time_exchange
_DEVICEARRAY_API = _native._devicearray._DEVICEARRAY_API

empty = DeviceArray.empty
zeros = DeviceArray.zeros
full = DeviceArray.full
asarray = DeviceArray.asarray
from_host = DeviceArray.from_host
from_dlpack = DeviceArray.from_dlpack
