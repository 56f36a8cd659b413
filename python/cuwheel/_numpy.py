"""What the native code of this package sees of NumPy objects.

Internal: for bug reports and tests. It may change in any release.
"""

from . import _native

__all__ = ["describe"]

describe = _native._numpy.describe
