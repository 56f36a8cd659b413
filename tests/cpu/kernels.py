"""Kernels for tests without a GPU: PTX whose bodies do nothing, and what the stand-in records of their launches."""

import tracemalloc

import cuwheel

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"

#: PTX types of parameters by the types of a signature.
PTX_TYPES = {
    "bool": ".u8",
    "int8": ".s8",
    "int16": ".s16",
    "int32": ".s32",
    "int64": ".s64",
    "uint8": ".u8",
    "uint16": ".u16",
    "uint32": ".u32",
    "uint64": ".u64",
    "float16": ".b16",
    "bfloat16": ".b16",
    "float32": ".f32",
    "float64": ".f64",
    "complex64": ".align 8 .b8 {name}[8]",
    "complex128": ".align 16 .b8 {name}[16]",
}


def entry(name: str, *types: str) -> str:
    """The PTX of a kernel with parameters of these types, as a signature names them or as PTX does."""

    def parameter(kind, position):
        if kind.endswith("*"):
            kind = ".u64"
        elif kind.startswith("view["):
            kind = f".align 8 .b8 {{name}}[{8 + 16 * int(kind[:-1].split(',')[1])}]"
        declared = PTX_TYPES.get(kind, kind)
        own = f"{name}_{position}"
        return f".param {declared.format(name=own)}" if "{name}" in declared else f".param {declared} {own}"

    parameters = ", ".join(parameter(kind, position) for position, kind in enumerate(types))
    return f".visible .entry {name}({parameters}) {{ ret; }}\n"


#: Whether kernels are known to the library when a test gets them, as after a launch.
ARE_KNOWN = False


def module(*entries: str) -> cuwheel.Module:
    return cuwheel.Module.from_bytes(HEAD + "".join(entries))


def typed(*types: str, name: str = "k") -> cuwheel.Kernel:
    """A kernel whose signature and whose PTX have these types."""
    return _known(module(entry(name, *types)).kernel(name, types))


def untyped(*types: str, name: str = "k") -> cuwheel.Kernel:
    """The same without a signature."""
    return _known(module(entry(name, *types)).kernel(name))


def _known(kernel: cuwheel.Kernel) -> cuwheel.Kernel:
    if ARE_KNOWN:
        kernel.attributes()
    return kernel


def last_launch(driver) -> dict:
    return driver.report()["launches"][-1]


def parameters(driver) -> list[bytes]:
    """The bytes of each parameter of the last launch."""
    return [bytes.fromhex(parameter) for parameter in last_launch(driver)["parameters"]]


def check_makes_no_python_objects(launch, arguments) -> None:
    """Calls `launch` once for what is new then, and checks that later calls leave nothing in Python's memory."""
    launch(*arguments)
    tracemalloc.start()
    try:
        for _ in range(3):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            launch(*arguments)
            after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The two numbers that are kept of the measurement are all there is.
    assert peak - before <= 200
    assert after - before <= 100
