"""For programs that use numba-cuda in an overlay: how its kernels are launched."""

__all__ = ["launch_stats"]


def launch_stats():
    """Return how many launches of numba-cuda's kernels took which way, for the process.

    Returns:
        A dictionary: "native" is the number of launches that no Python code had a part in, "python" a dictionary with the
        number of the others by their reason. docs/overlay.md says what the reasons mean.

    Raises:
        ImportError: numba-cuda is not installed, or it is no overlay that launches kernels natively.
    """
    # Of the library inside of numba-cuda, which counts, and not of the one inside of this package.
    from numba.cuda.cext import _dispatcher

    if not hasattr(_dispatcher, "launch_stats"):
        raise ImportError(
            "numba-cuda launches its kernels in Python here: it is no overlay of this project, or one of a release before "
            "0.30; see docs/overlay.md for how to make one",
            name="numba.cuda.cext._dispatcher",
        )
    return _dispatcher.launch_stats()
