"""Device code, its kernels, and their launches."""

import os
from collections.abc import Buffer
from typing import Any, Never, SupportsIndex, TypeAlias, final

from ._devicearray import _DeviceLike, _StreamLike

__all__ = ["ConfiguredKernel", "Kernel", "Module"]

_Extent: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex]
_Sizes: TypeAlias = tuple[int, int, int]
_Key: TypeAlias = (
    tuple[_Extent, _Extent]
    | tuple[_Extent, _Extent, _StreamLike | None]
    | tuple[_Extent, _Extent, _StreamLike | None, SupportsIndex]
)

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
    def kernel(self, name: str, /, signature: tuple[str, ...] | list[str] | None = None) -> Kernel:
        """Return a kernel of the module. It is looked for when it is first used.

        Args:
            name: The name in the image: that of the function if it is declared `extern "C"`, else its mangled name.
            signature: The types of the parameters, in their order, each with a name behind it or not: "float32*",
                "const float32* x", "void*", "int32 n", "view[float32, 2]". Without, the driver tells their number and sizes
                (from CUDA 12.4 on).

        Raises:
            ValueError: A type cannot be read.
        """
    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of all kernels, sorted.

        Raises:
            CudaError: The image cannot be loaded, or the driver is for a CUDA older than 12.4 and does not tell.
        """
    @property
    def kind(self) -> str:
        """What the image is: "cubin", "fatbin" or "PTX"."""
    @property
    def architectures(self) -> tuple[str, ...]:
        """What the code inside is for, such as `("sm_90", "compute_90 (PTX)")`."""
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

        Raises:
            ValueError: A size is zero, negative or too large.
            TypeError: `stream` is no stream.
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
    ) -> None:
        """Launch the kernel once.

        Args:
            args: The arguments of the kernel, a tuple.
            grid, block, stream, shared_bytes, cluster, cooperative: As for `configure`.

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
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
