"""numba-cuda with this project's modules in place of its C++ ones, and kernels for it that need no compiler.

`overlay` lays numba-cuda out; the rest is for the process that imports it, on the stand-in driver. A kernel there is a real
`_Kernel` of numba-cuda, out of PTX whose body does nothing: what counts is which parameters a launch has.
"""

import importlib.metadata
import shutil
import textwrap
from pathlib import Path

#: What the files of the overlay take from the native library.
FILES = {
    "_dispatcher": ("_dispatcher", {"Dispatcher": "LaunchingDispatcher"}),
    "_typeconv": ("_typeconv", {}),
    "_helperlib": ("_helperlib", {}),
    "mviewbuf": ("mviewbuf", {}),
}


def overlay(folder: Path) -> Path:
    """Lay numba-cuda out in `folder` with our modules; returns what goes on `sys.path`."""
    import cuwheel

    package = Path(importlib.metadata.distribution("numba-cuda").locate_file("numba_cuda"))
    skip = shutil.ignore_patterns("tests", "*.so", "__pycache__")
    shutil.copytree(package, folder / "numba_cuda", ignore=skip)
    modules = folder / "numba_cuda/numba/cuda/cext"
    for library in Path(cuwheel.__file__).parent.glob("_native*.so"):
        shutil.copy(library, modules)
    for name, (module, renamed) in FILES.items():
        code = f"from . import _native\nglobals().update(vars(_native.{module}))\n"
        code += "".join(f"{new} = _native.{module}.{old}\n" for new, old in renamed.items())
        (modules / f"{name}.py").write_text(code)
    return folder


#: PTX types of the parameters that an argument of a type becomes.
PTX = {
    "int8": [".s8"],
    "int16": [".s16"],
    "int32": [".s32"],
    "int64": [".s64"],
    "uint8": [".u8"],
    "uint16": [".u16"],
    "uint32": [".u32"],
    "uint64": [".u64"],
    "bool": [".u8"],
    "float16": [".b16"],
    "float32": [".f32"],
    "float64": [".f64"],
    "complex64": [".f32", ".f32"],
    "complex128": [".f64", ".f64"],
}


def ptx_types(kind) -> list[str]:
    """The types of the parameters that numba-cuda compiles an argument to."""
    from numba.cuda import types

    if isinstance(kind, types.Array):
        return [".u64"] * (5 + 2 * kind.ndim)
    if isinstance(kind, types.BaseTuple):
        return [ptx for item in kind for ptx in ptx_types(item)]
    return PTX.get(str(kind), [".u64"])


class Library:
    """Stands in for numba-cuda's code library: the image is there, and nothing has to be linked."""

    def __init__(self, name, argument_types):
        declared = [ptx for kind in argument_types for ptx in ptx_types(kind)]
        parameters = ", ".join(f".param {ptx} {name}_{position}" for position, ptx in enumerate(declared))
        head = ".version 7.8\n.target sm_80\n.address_size 64\n"
        self.name, self.image = name, f"{head}.visible .entry {name}({parameters}) {{ ret; }}\n"
        self._cufunc_cache = {}

    def get_cufunc(self):
        """As `CUDACodeLibrary.get_cufunc` does it."""
        from cuda.core import ObjectCode
        from numba.cuda.cudadrv import devices

        context = devices.get_context()
        function = self._cufunc_cache.get(context.device.id)
        if not function:
            module = context.create_module_image(ObjectCode.from_ptx(self.image.encode()), [], [])
            function = self._cufunc_cache[context.device.id] = module.get_function(self.name)
        return function


def kernel(*argument_types, name="kernel", **options):
    """A dispatcher with one overload, for arguments of these types, and the overload."""
    from numba import cuda
    from numba.cuda import types
    from numba.cuda.dispatcher import _Kernel

    names = ", ".join(f"a{position}" for position in range(len(argument_types)))
    namespace = {}
    exec(textwrap.dedent(f"def {name}({names}): pass"), namespace)
    dispatcher = cuda.jit(namespace[name])
    state = {"cooperative": False, "debug": False, "lineinfo": False, "extensions": [], "call_helper": None} | options
    signature = types.void(*argument_types)
    overload = _Kernel._rebuild(
        name=name, signature=signature, codelibrary=Library(name, argument_types), **state
    )
    dispatcher.add_overload(overload, tuple(argument_types))
    return dispatcher, overload


#: What each process begins with.
HEAD = """
import ctypes, gc, os, sys, warnings
sys.path[:0] = sys.argv[1:3]
warnings.simplefilter("ignore")
import numpy as np
import stand_in
driver = stand_in.load()
# numba-cuda leaves what it has to the end of the process.
driver.configure("at_exit=nothing")
from numba import cuda
from numba.cuda import types
from numba.cuda.cext import _dispatcher
from numba.cuda.dispatcher import _Kernel
from numba_kernels import Library, kernel

array = types.Array(types.float32, 1, "C")

def stats():
    counts = _dispatcher.launch_stats()
    return counts["native"], counts["python"]

def outcome(launch, *args):
    \"\"\"What the driver got, and what was raised; and whether no Python code had a part in it.\"\"\"
    driver.reset()
    native, _ = stats()
    raised = None
    try:
        launch(*args)
    except Exception as error:
        raised = type(error), str(error)
    launches = [{**launch, "context": None} for launch in driver.report()["launches"]]
    return launches, raised, stats()[0] > native

def both(overload, args, config=((2, 1, 1), (32, 1, 1)), stream=None, shared_bytes=0):
    \"\"\"The outcome here, which is the same as in Python, and whether it was native.\"\"\"
    stream = stream or cuda.dispatcher.driver._to_core_stream(0)
    arguments = (args, *config, stream, shared_bytes)
    theirs = outcome(_Kernel.launch, overload, *arguments)
    ours = outcome(overload.launch, *arguments)
    if not ours[2]:
        # Python may have copied something to a place of its own.
        for launch in ours[0] + theirs[0]:
            launch["parameters"] = len(launch["parameters"])
    assert ours[:2] == theirs[:2], (args, ours, theirs)
    assert not theirs[2]
    return ours
"""
