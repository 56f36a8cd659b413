"""Objects that export buffers, well behaved and otherwise."""

import ctypes

#: Memory for as long as the process lives.
MEMORY = ctypes.create_string_buffer(bytes(range(64)), 64)
ADDRESS = ctypes.addressof(MEMORY)


def mem_alloc(module, pointer=ADDRESS, size=len(MEMORY), log=None):
    """An object over bare memory; `log` receives the names of the attributes that are read."""

    class Allocation(module.MemAlloc):
        def __getattribute__(self, name):
            if log is not None and name in ("_bufptr_", "_buflen_"):
                log.append(name)
            return super().__getattribute__(name)

    allocation = Allocation()
    allocation._bufptr_ = pointer
    allocation._buflen_ = size
    return allocation


class _Buffer(ctypes.Structure):
    """`Py_buffer`."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


class _Slot(ctypes.Structure):
    """`PyType_Slot`."""

    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    """`PyType_Spec`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_GetBuffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int)
_BF_GETBUFFER, _TPFLAGS_DEFAULT = 1, 1 << 18
#: What the classes made by `raw_exporter` use, for as long as the process lives.
_keep = []


def raw_exporter(ndim, shape=None, strides=None, itemsize=1, address=ADDRESS):
    """An object whose buffer says exactly this, whether it makes sense or not. None stands for a null pointer."""

    def pointer(values):
        return None if values is None else (ctypes.c_ssize_t * max(len(values), 1))(*values)

    arrays = pointer(shape), pointer(strides)

    @_GetBuffer
    def get_buffer(exporter, view, flags):
        view[0] = _Buffer(address, id(exporter), 0, itemsize, 0, ndim, b"B", *arrays, None, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(exporter))
        return 0

    slots = (_Slot * 2)(_Slot(_BF_GETBUFFER, ctypes.cast(get_buffer, ctypes.c_void_p)))
    spec = _Spec(b"exporters.Raw", 0, 0, _TPFLAGS_DEFAULT, slots)
    _keep.append((get_buffer, arrays, slots, spec))
    from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))(("PyType_FromSpec", ctypes.pythonapi))
    return from_spec(spec)()


class Number:
    """Something that converts to an integer, or fails to, and says when it is asked."""

    def __init__(self, value, log=None):
        self.value = value
        self.log = [] if log is None else log

    def _convert(self, how):
        self.log.append(how)
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    def __index__(self):
        return self._convert("index")

    def __int__(self):
        return self._convert("int")


class LoggingExporter:
    """Exports the buffer of another object and keeps the flags of each request (Python 3.12 or newer)."""

    def __init__(self, obj, refuse_writable=None):
        self.obj = obj
        self.refuse_writable = refuse_writable
        self.flags = []
        self.released = 0

    def __buffer__(self, flags):
        self.flags.append(flags)
        if self.refuse_writable is not None and flags & 1:
            raise self.refuse_writable
        return memoryview(self.obj)

    def __release_buffer__(self, view):
        self.released += 1
        view.release()
