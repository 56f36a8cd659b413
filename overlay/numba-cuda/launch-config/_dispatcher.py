"""From the arguments of a call to the overload that is for them."""

from . import _native

__all__ = [
    "Dispatcher",
    "compute_fingerprint",
    "get_current_launch_args",
    "get_current_launch_config",
    "launch_stats",
    "swap_current_launch_args",
    "typeof_init",
]

# Kernels of these releases can be launched without Python code in between.
Dispatcher = _native._dispatcher.LaunchingDispatcher
compute_fingerprint = _native._dispatcher.compute_fingerprint
get_current_launch_args = _native._dispatcher.get_current_launch_args
get_current_launch_config = _native._dispatcher.get_current_launch_config
launch_stats = _native._dispatcher.launch_stats
swap_current_launch_args = _native._dispatcher.swap_current_launch_args
typeof_init = _native._dispatcher.typeof_init
