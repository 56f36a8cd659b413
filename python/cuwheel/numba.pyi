"""For programs that use numba-cuda in an overlay: how its kernels are launched."""

__all__ = ["launch_stats"]

def launch_stats() -> dict[str, int | dict[str, int]]:
    """Return how many launches of numba-cuda's kernels took which way, for the process.

    Returns:
        A dictionary: "native" is the number of launches that no Python code had a part in, "python" a dictionary with the
        number of the others by their reason. docs/overlay.md says what the reasons mean.

    Raises:
        ImportError: numba-cuda is not installed, or it is no overlay that launches kernels natively.
    """
