"""The shared library of this package. It holds the package's other native modules and creates them when it is
imported; import those by their own names.
"""

__all__ = ["__version__"]

__version__: str
