"""Takes its names from the native module for the CUDA that is here; choice_of_package says which."""

from importlib import import_module

from choice_of_package import MAJOR as _MAJOR

_module = import_module(f"{__package__}._cu{_MAJOR}.name_of_module")
# What the import system gave to this module stays.
_own = {"__name__", "__package__", "__loader__", "__spec__", "__file__", "__cached__", "__builtins__"}
globals().update((name, value) for name, value in vars(_module).items() if name not in _own)
