"""Device code, its kernels, and their launches."""

import os
from collections.abc import Buffer, Callable
from typing import Any, Literal, Never, SupportsIndex, TypeAlias, TypedDict, final, type_check_only

from ._devicearray import CudaError, DType, _DeviceLike, _DTypeLike, _StreamLike

__all__ = [
    "ArgumentType",
    "CompileError",
    "ConfiguredDispatcher",
    "ConfiguredKernel",
    "Dispatcher",
    "Kernel",
    "Module",
]

_Extent: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex]
_Sizes: TypeAlias = tuple[int, int, int]
_Key: TypeAlias = (
    tuple[_Extent, _Extent]
    | tuple[_Extent, _Extent, _StreamLike | None]
    | tuple[_Extent, _Extent, _StreamLike | None, SupportsIndex]
)
_Texts: TypeAlias = tuple[str, ...] | list[str]
_Paths: TypeAlias = tuple[str | os.PathLike[str], ...] | list[str | os.PathLike[str]]
_Order: TypeAlias = Literal["C", "F", "strided"]

@type_check_only
class _LaunchAttributes(TypedDict, total=False):
    priority: SupportsIndex
    programmatic_stream_serialization: bool
    cluster_scheduling_policy_preference: Literal["default", "spread", "load_balancing"]
    mem_sync_domain: Literal["default", "remote"]
    mem_sync_domain_map: tuple[SupportsIndex, SupportsIndex]
    preferred_cluster_dimension: _Extent
    preferred_shared_memory_carveout: SupportsIndex
    nvlink_util_centric_scheduling: bool

class CompileError(CudaError):
    """NVRTC, the compiler of CUDA C++, is not there, or refuses the source.

    Attributes:
        log: What the compiler says of the source; empty if it did not come to that.
        filename: What the source is called, or None.
        name: The name of the error in NVRTC, such as "NVRTC_ERROR_COMPILATION", or None.
        code: The number of the error, or None.
    """

    log: str
    filename: str | None

@final
class ArgumentType:
    """What an overload is chosen by of an argument: of an array its data type, number of dimensions and order, and the data type
    of a number.

    Written as `float32[2, C]` for an array with two dimensions, and `int64` for a number.

    Args:
        dtype: The data type of the elements, or of the number.
        ndim: The number of dimensions of an array; None for a number.
        order: "C" if the elements lie one beside the other with the last index varying fastest, "F" if the first does, and
            "strided" otherwise. Of arrays only, where "C" is the default.

    Raises:
        TypeError: `dtype` is no data type.
        ValueError: There is no such number of dimensions, or no such order; or a number is given one.
    """

    def __new__(
        cls, dtype: _DTypeLike, ndim: SupportsIndex | None = None, order: _Order | None = None
    ) -> ArgumentType: ...
    @property
    def dtype(self) -> DType:
        """The data type of the elements, or of the number. A Python `int` is int64, a `float` float64, a `complex` complex128."""
    @property
    def ndim(self) -> int | None:
        """The number of dimensions, or None for a number."""
    @property
    def order(self) -> _Order | None:
        """"C", "F" or "strided", or None for a number."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Module:
    """Device code: a cubin, a fatbin or a PTX text, and the kernels in it.

    Nothing is asked of the driver before a kernel is used, or the names of kernels are asked for. The image is loaded once,
    for all devices, and unloaded when neither the module nor a kernel of it is left.
    """

    @staticmethod
    def from_bytes(image: Buffer | str, /) -> Module:
        """Return the module of an image in memory.

        Args:
            image: The bytes of a cubin, a fatbin or a PTX text, or PTX as a string. Which it is is seen from its content.

        Raises:
            ValueError: It is none of these, or not a whole one; the message says what it looks like.
        """
    @staticmethod
    def from_file(path: str | os.PathLike[str], /) -> Module:
        """Return the module of an image in a file.

        Args:
            path: The file: a cubin, a fatbin or a PTX text, whatever its name.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is no image, as for `from_bytes`.
        """
    @staticmethod
    def from_source(
        source: str | os.PathLike[str],
        /,
        *,
        filename: str | None = None,
        names: _Texts = (),
        options: _Texts = (),
        include_dirs: _Paths = (),
        headers: dict[str, str] | None = None,
        architecture: str | None = None,
        cache: bool = True,
    ) -> Module:
        """Return the module of CUDA C++, compiled by NVRTC for the current device, or as `architecture` says.

        What was compiled before is taken from a cache on disk, if neither the source nor a header, an option or the compiler
        has changed.

        Args:
            source: The source as a string, or a path object to read it from. Headers of cuwheel and, where they are
                installed, of CCCL and of the CUDA runtime can be included.
            filename: What the source is called in messages; the path of the file by default.
            names: C++ expressions that name kernels, such as "saxpy<float>", for `kernel` to find them by. Templates are
                instantiated for them. A kernel that is declared `extern "C"` needs none.
            options: Options of NVRTC, such as "--std=c++20" or "--use_fast_math".
            include_dirs: Directories to look for headers in first; that of a file comes before them.
            headers: Headers in memory: texts by the names that they are included by.
            architecture: "sm_90" for machine code, or "compute_90" for PTX; no driver is asked then. By default machine code
                for the current device, or PTX of the newest older architecture if the compiler does not know the device.
            cache: Whether to use the cache.

        Raises:
            CompileError: NVRTC is not there, or refuses the source; its log is in the message and in the attribute `log`.
            CudaError: There is no device, and no architecture was named.
            OSError: The file cannot be read.
            ValueError: The architecture is none, or an option is not for here.
        """
    def kernel(self, name: str, /, signature: _Texts | None = None) -> Kernel:
        """Return a kernel of the module. It is looked for when it is first used.

        Args:
            name: The name in the image: that of the function if it is declared `extern "C"`, else its mangled name. Or one of
                the expressions in `names`.
            signature: The types of the parameters, in their order, each with a name behind it or not: "float32*",
                "const float32* x", "void*", "int32 n", "view[float32, 2]". Without, the driver tells their number and sizes
                (from CUDA 12.4 on).

        Raises:
            ValueError: A type cannot be read.
        """
    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of all kernels in the image, sorted.

        Raises:
            CudaError: The image cannot be loaded, or the driver is for a CUDA older than 12.4 and does not tell.
        """
    @property
    def kind(self) -> str:
        """What the image is: "cubin", "fatbin" or "PTX"."""
    @property
    def architectures(self) -> tuple[str, ...]:
        """What the code inside is for, such as `("sm_90", "compute_90 (PTX)")`."""
    @property
    def names(self) -> dict[str, str]:
        """The expressions that the module was compiled with, each with the name in the image that it stands for."""
    @property
    def log(self) -> str:
        """What the compiler said, if the module was made of source: warnings for the most part."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Kernel:
    """A kernel of a module: `kernel[grid, block](*arguments)` launches it.

    `kernel[grid, block, stream, shared_bytes]` names a stream too, and dynamic shared memory. Kernels are equal if their
    images, names and signatures are, and are pickled with their images.
    """

    def __getitem__(self, key: _Key, /) -> ConfiguredKernel: ...
    def configure(
        self,
        grid: _Extent,
        block: _Extent,
        stream: _StreamLike | None = None,
        shared_bytes: SupportsIndex = 0,
        cluster: _Extent | None = None,
        cooperative: bool = False,
        attributes: _LaunchAttributes | None = None,
        release_gil: bool = True,
    ) -> ConfiguredKernel:
        """Return the kernel with the shape of its launches, to be called with the arguments.

        Args:
            grid: The number of blocks: an integer, or up to three for x, y and z.
            block: The number of threads in each block, in the same way.
            stream: A stream of any library, or an integer handle; by default the one that the producers of the arrays
                work on.
            shared_bytes: Bytes of dynamic shared memory for each block.
            cluster: The number of blocks in each cluster, for launches with clusters.
            cooperative: Whether all blocks run at the same time, and can wait for each other.
            attributes: What else the driver is told, a dictionary of these: "priority" (an integer),
                "programmatic_stream_serialization" (a bool), "cluster_scheduling_policy_preference" ("default", "spread" or
                "load_balancing"), "mem_sync_domain" ("default" or "remote"), "mem_sync_domain_map" (a pair of integers),
                "preferred_cluster_dimension" (as `cluster`), "preferred_shared_memory_carveout" (percent),
                "nvlink_util_centric_scheduling" (a bool). What the kernel itself is like is told by the method of the same
                name.
            release_gil: Whether other threads of Python run while the driver is called. Holding the GIL saves about 0.1 µs of
                a launch, and the process hangs if the driver waits for room in its queue, which some thousand launches fill,
                while a host function in that queue waits for the GIL.

        Raises:
            ValueError: A size is zero, negative or too large; an attribute has another name or value.
            TypeError: `stream` is no stream; an attribute is of another type.
        """
    def launch(
        self,
        args: tuple[Any, ...],
        *,
        grid: _Extent,
        block: _Extent,
        stream: _StreamLike | None = None,
        shared_bytes: SupportsIndex = 0,
        cluster: _Extent | None = None,
        cooperative: bool = False,
        attributes: _LaunchAttributes | None = None,
        release_gil: bool = True,
    ) -> None:
        """Launch the kernel once.

        Args:
            args: The arguments of the kernel, a tuple.
            grid, block, stream, shared_bytes, cluster, cooperative, attributes, release_gil: As for `configure`.

        Raises:
            What calling a configured kernel raises.
        """
    def attributes(self, device: _DeviceLike | None = None, /) -> dict[str, int]:
        """Return what the driver says of the kernel on a device, as a dictionary: "max_threads_per_block", "shared_bytes",
        "const_bytes", "local_bytes", "registers", "ptx_version", "binary_version".

        Args:
            device: The device; that of the thread's current context by default.

        Raises:
            CudaError: The image has no such kernel, or no code for the device; or there is no driver that can be used.
            ValueError: The signature is not the kernel's, or there is no such device.
        """
    @property
    def name(self) -> str:
        """The name in the image."""
    @property
    def module(self) -> Module:
        """The module."""
    @property
    def signature(self) -> tuple[str, ...] | None:
        """The signature that was given, a tuple of texts; or None."""
    @property
    def layout(self) -> tuple[tuple[int, int], ...]:
        """Offset and size in bytes of each parameter, in the order of the parameters.

        Raises:
            CudaError, ValueError: As for `attributes`; or there is no signature, and the driver does not tell.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ConfiguredKernel:
    """A kernel with the shape of its launches. Call it with the arguments of the kernel to launch it.

    It can be kept, compared, and used by several threads at a time.

    Args:
        args: A value for each parameter: arrays of any library, and numbers of Python and NumPy.

    Raises:
        TypeError: There are more or fewer arguments than parameters, or one is of another type than its parameter.
        OverflowError: A number does not fit its parameter.
        ValueError: An array is read-only, or in host memory, or on another device than the others; the grid or the block
            exceeds a limit, which the message names; the signature is not the kernel's.
        BufferError: An array cannot be described.
        CudaError: The driver refuses the launch, or the image.
    """

    def __call__(self, /, *args: Any, **kwargs: Never) -> None: ...
    @property
    def kernel(self) -> Kernel:
        """The kernel."""
    @property
    def grid(self) -> _Sizes:
        """The number of blocks along x, y and z."""
    @property
    def block(self) -> _Sizes:
        """The number of threads in each block along x, y and z."""
    @property
    def stream(self) -> int | None:
        """The handle of the stream that was named, or None."""
    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory for each block."""
    @property
    def cluster(self) -> _Sizes | None:
        """The number of blocks in each cluster along x, y and z, or None."""
    @property
    def cooperative(self) -> bool:
        """Whether all blocks run at the same time."""
    @property
    def attributes(self) -> _LaunchAttributes:
        """What else the driver is told, a dictionary."""
    @property
    def release_gil(self) -> bool:
        """Whether other threads of Python run while the driver is called."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Dispatcher:
    """Kernels that are made for the types of their arguments, when they are first launched with these.

    `dispatcher[grid, block](*arguments)` launches the overload for the arguments. It is compiled if there is none: by one
    thread, while others that need it wait. `dispatcher[grid, block, stream, shared_bytes]` as with kernels.

    Args:
        source: CUDA C++ as a string or as the path object of a file. Or a function that is called with an `ArgumentType` for
            each argument, and returns a `Kernel`, a `Module`, or an image.
        name: A C++ expression that names the kernel, with variables between its angle brackets: "saxpy<T>". With a function
            the name of the kernel in what it returns; it is not needed if there is but one.
        signature: The types of the parameters, as for `Module.kernel`, with these variables: "T* y", "const T* x", "T a". In
            "view[T, N, C]", T is the type of the elements, N the number of dimensions and C whether they lie in C order. A
            number decides what T is only where no array does. With a function it has no variables, and can be left out.
        types: C++ types by the names of data types, for those that have none here, or another: {"complex64": "float2"}.
        filename, options, include_dirs, headers, architecture, cache: As for `Module.from_source`. Code is made for the device
            of the arrays unless an architecture is named.

    Raises:
        TypeError: `source` is neither; a name or a signature is missing; or an option makes no sense with a function.
        ValueError: A type cannot be read.
        OSError: The file cannot be read.
    """

    def __new__(
        cls,
        source: str | os.PathLike[str] | Callable[..., Kernel | Module | Buffer | str],
        /,
        name: str | None = None,
        signature: _Texts | None = None,
        *,
        types: dict[Any, str] | None = None,
        filename: str | None = None,
        options: _Texts = (),
        include_dirs: _Paths = (),
        headers: dict[str, str] | None = None,
        architecture: str | None = None,
        cache: bool = True,
    ) -> Dispatcher: ...
    def __getitem__(self, key: _Key, /) -> ConfiguredDispatcher: ...
    def configure(
        self,
        grid: _Extent,
        block: _Extent,
        stream: _StreamLike | None = None,
        shared_bytes: SupportsIndex = 0,
        cluster: _Extent | None = None,
        cooperative: bool = False,
        attributes: _LaunchAttributes | None = None,
        release_gil: bool = True,
    ) -> ConfiguredDispatcher:
        """Return the dispatcher with the shape of its launches, to be called with the arguments.

        Args:
            grid, block, stream, shared_bytes, cluster, cooperative, attributes, release_gil: As for `Kernel.configure`.

        Raises:
            What `Kernel.configure` raises.
        """
    def launch(
        self,
        args: tuple[Any, ...],
        *,
        grid: _Extent,
        block: _Extent,
        stream: _StreamLike | None = None,
        shared_bytes: SupportsIndex = 0,
        cluster: _Extent | None = None,
        cooperative: bool = False,
        attributes: _LaunchAttributes | None = None,
        release_gil: bool = True,
    ) -> None:
        """Launch the overload for the arguments once.

        Args:
            args: The arguments of the kernel, a tuple.
            grid, block, stream, shared_bytes, cluster, cooperative, attributes, release_gil: As for `Kernel.configure`.

        Raises:
            What calling a configured dispatcher raises.
        """
    def kernel_for(self, /, *args: Any) -> Kernel:
        """Return the overload for the arguments, compiled if there is none. Nothing is launched.

        Args:
            args: The arguments that the kernel would be launched with.

        Raises:
            What calling a configured dispatcher raises before it launches.
        """
    @property
    def overloads(self) -> tuple[tuple[tuple[ArgumentType | None, ...], Kernel], ...]:
        """The overloads so far, in the order in which they were made: the types that each was made for, and its kernel. A type is
        None where the argument decides nothing.
        """
    @property
    def name(self) -> str | None:
        """The expression that names the kernel, or the name that was given with a function; or None."""
    @property
    def signature(self) -> tuple[str, ...] | None:
        """The signature that was given, a tuple of texts; or None."""

@final
class ConfiguredDispatcher:
    """A dispatcher with the shape of its launches. Call it with the arguments of the kernel to launch the overload for them,
    compiled first if there is none.

    It can be kept, compared, and used by several threads at a time.

    Args:
        args: A value for each parameter: arrays of any library, and numbers of Python and NumPy.

    Raises:
        CompileError: The overload cannot be compiled. Every thread that waits for it raises this; the next call tries again.
        TypeError: Arguments do not go together: a variable would be two things; or there is no C++ type for a data type.
        RuntimeError: The function that makes the overload needs that overload.
        What the function raises, and what calling a configured kernel raises.
    """

    def __call__(self, /, *args: Any, **kwargs: Never) -> None: ...
    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher."""
    @property
    def grid(self) -> _Sizes:
        """The number of blocks along x, y and z."""
    @property
    def block(self) -> _Sizes:
        """The number of threads in each block along x, y and z."""
    @property
    def stream(self) -> int | None:
        """The handle of the stream that was named, or None."""
    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory for each block."""
    @property
    def cluster(self) -> _Sizes | None:
        """The number of blocks in each cluster along x, y and z, or None."""
    @property
    def cooperative(self) -> bool:
        """Whether all blocks run at the same time."""
    @property
    def attributes(self) -> _LaunchAttributes:
        """What else the driver is told, a dictionary."""
    @property
    def release_gil(self) -> bool:
        """Whether other threads of Python run while the driver is called."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
