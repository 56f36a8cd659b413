"""Takes its names from the native module for the CUDA that is here; @CHOICE@ says which."""

from importlib import import_module

from @CHOICE@ import MAJOR as _MAJOR

_module = import_module(f"{__package__}._cu{_MAJOR}.@NAME@")
__doc__ = _module.__doc__
globals().update((name, value) for name, value in vars(_module).items() if name == "__all__" or not name.startswith("__"))
