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
