"""From the arguments of a call to the overload that is for them."""

from . import _native

__all__ = ["Dispatcher", "compute_fingerprint", "typeof_init"]

# These releases have no keyword for the launch configuration.
Dispatcher = _native._dispatcher.PlainDispatcher
compute_fingerprint = _native._dispatcher.compute_fingerprint
typeof_init = _native._dispatcher.typeof_init
