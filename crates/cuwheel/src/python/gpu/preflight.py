"""Whether this machine can run the wheel's GPU code, known in seconds and before any test starts.

The driver is asked by `driver` in a process with a deadline. Each thing that may be wrong is one `Problem`.
"""

import json
import os
import re
import subprocess
import sys
import time

from . import Problem, driver

DEADLINE_S = 60
"""The driver of a healthy machine answers within this time, initialisation of many devices included."""

PROHIBITED = 2
"""CU_COMPUTEMODE_PROHIBITED."""


def ask(python, probed=None, deadline_s=DEADLINE_S, environment=None):
    """What the driver says, as `driver.main` describes it.

    `probed` are the indices of the devices on which a context is made, None for all. Raises a `Problem` when it does not
    answer.
    """
    command = [python, "-I", os.path.realpath(driver.__file__)]
    if probed is not None:
        command.append(",".join(map(str, sorted(probed))))
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        stdout, stderr = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        stdout = _output_of_hung(process)
        raise Problem(
            "driver-hangs",
            f"the CUDA driver did not answer within {deadline_s:g} s when it was asked {_last_question(stdout)}",
            "look at dmesg for Xid errors; restart the machine, or reset the device as its administrator",
        ) from None
    if process.returncode != 0:
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        raise Problem(
            "driver-crashes",
            f"the CUDA driver ended the process ({how}) when it was asked {_last_question(stdout)}",
            "the driver's installation is damaged: install it again, or take the directory that it was found in off "
            "LD_LIBRARY_PATH",
            stderr.splitlines()[-8:],
        )
    return json.loads(stdout.splitlines()[-1])


def _output_of_hung(process):
    """What a process wrote that is ended now. One that waits in the kernel does not end, and is not waited for."""
    process.kill()
    try:
        return process.communicate(timeout=2)[0]
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode(errors="replace")


def _last_question(stdout):
    try:
        return json.loads(stdout.splitlines()[-1])["asking"]
    except (IndexError, KeyError, ValueError):
        return "anything"


def check_driver(answer):
    """Raises the `Problem` of a driver that is missing, is none or has no device."""
    path = answer["library"]
    details = [f"{driver.LIBRARY} was loaded from {path}"] if path else []
    if answer["load_error"]:
        raise Problem(
            "no-libcuda",
            f"there is no CUDA driver: {driver.LIBRARY} cannot be loaded",
            "install the NVIDIA driver; in a container, start it with the GPUs (docker run --gpus all, or the NVIDIA "
            "Container Toolkit's runtime)",
            [answer["load_error"]],
        )
    error = answer["error"]
    name = error["name"] if error else None
    stub = path is not None and "stubs" in path.split(os.sep)
    if name == "CUDA_ERROR_STUB_LIBRARY" or (stub and error):
        raise Problem(
            "stub-library",
            f"{path or driver.LIBRARY} is the stub that programs are linked with, not the driver",
            "take the toolkit's directory `stubs` off LD_LIBRARY_PATH and out of ld.so.conf",
            details,
        )
    if name == "CUDA_ERROR_NO_DEVICE" or (error is None and not answer["devices"]):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible is not None:
            details.append(f"CUDA_VISIBLE_DEVICES is {visible!r}")
        raise Problem(
            "no-device",
            "the CUDA driver is present, but it has no device",
            "use a machine with an NVIDIA GPU, or hand one to this container or job; check CUDA_VISIBLE_DEVICES",
            details,
        )
    if error:
        raise Problem(
            "driver-fails",
            f"the CUDA driver does not work: {error['function']} gives {name}",
            _remedy_of(name),
            details,
        )


def _remedy_of(name):
    return {
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the kernel module and libcuda.so.1 are of different versions: restart the "
        "machine after the driver's update, or use a container image without a driver of its own",
        "CUDA_ERROR_SYSTEM_NOT_READY": "start the service nvidia-fabricmanager, which machines with NVSwitch need",
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "take the package cuda-compat off LD_LIBRARY_PATH: this device does "
        "not support it",
    }.get(name, "look at dmesg and nvidia-smi: the driver and the device have to work before tests can")


def select(answer, gpus):
    """The devices that `--gpus` names: `all`, a number of them, or a list of indices with commas (`0,2` or `1,`)."""
    devices = answer["devices"]
    if gpus == "all":
        return devices
    wanted = [part for part in gpus.split(",") if part]
    if not wanted or not all(part.isdecimal() for part in wanted):
        raise Problem("usage", f"--gpus {gpus} names no devices", "give all, a number, or indices such as 0,2", [], 2)
    indices = [int(part) for part in wanted] if "," in gpus else list(range(int(gpus)))
    missing = [index for index in indices if index >= len(devices)]
    if missing or not indices:
        raise Problem(
            "too-few-devices",
            f"--gpus {gpus} asks for more devices than the {len(devices)} that this machine has",
            "ask for fewer, or use a machine with more",
            [f"device {device['index']}: {device['name']}" for device in devices],
        )
    return [devices[index] for index in dict.fromkeys(indices)]


def check_device(device):
    """Raises the `Problem` of a device on which no context can be made."""
    place = f"device {device['index']} ({device['name']})"
    error = device["error"]
    if device["compute_mode"] == PROHIBITED:
        raise Problem(
            "device-prohibited",
            f"{place} is in the compute mode that prohibits contexts",
            f"have its administrator run: nvidia-smi -i {device['index']} -c DEFAULT",
        )
    if error is None:
        return
    if error["name"] == "CUDA_ERROR_OUT_OF_MEMORY":
        raise Problem(
            "device-out-of-memory",
            f"{place} has not enough free memory for a context",
            "find who holds it with nvidia-smi, wait, or choose another device with --gpus",
        )
    if error["name"] in ("CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_DEVICE_ALREADY_IN_USE"):
        raise Problem(
            "device-busy",
            f"{place} is busy: another process holds it for itself",
            "find who holds it with nvidia-smi, wait, or choose another device with --gpus",
        )
    raise Problem(
        "device-fails",
        f"no context can be made on {place}: {error['function']} gives {error['name']}",
        "look at dmesg for Xid errors; the device may have to be reset",
    )


def check_wheel(wheel, device, cuda_version):
    """Raises the `Problem` of a wheel whose GPU code does not run on a device under a driver.

    `wheel` has a `file` and a `gpu`: `sass` and `ptx` are lists of architectures such as `sm_90a` and `compute_80`, and
    `toolkit` is the CUDA version that compiled them, such as `12.4`, or None. Without GPU code there is nothing to judge,
    and a wheel whose code is not known (`gpu` is None) is not judged.
    """
    gpu = wheel["gpu"]
    if not gpu or not (gpu["sass"] or gpu["ptx"]):
        return
    capability = device["compute_capability"]
    place = f"device {device['index']} ({device['name']}, compute capability {capability[0]}.{capability[1]})"
    has = "the wheel has " + (", ".join(gpu["sass"] + gpu["ptx"]))
    toolkit = _version(gpu["toolkit"])
    driver_version = f"{cuda_version[0]}.{cuda_version[1]}"
    if any(_runs(architecture, capability, exact_major=True) for architecture in gpu["sass"]):
        # Within a major version of CUDA, compiled code runs on every driver.
        if toolkit and toolkit[0] > cuda_version[0]:
            raise _too_old(wheel, gpu, driver_version, f"{toolkit[0]}.0", "its compiled code", has)
        return
    if any(_runs(architecture, capability, exact_major=False) for architecture in gpu["ptx"]):
        if toolkit and toolkit > tuple(cuda_version):
            what = f"its PTX, which is all that it has for {place},"
            raise _too_old(wheel, gpu, driver_version, gpu["toolkit"], what, has)
        return
    raise Problem(
        "no-kernel-image",
        f"{wheel['file']} has no kernel image for {place}",
        f"build it for sm_{capability[0]}{capability[1]} too, and with PTX of the oldest architecture for those to come",
        [has],
    )


def _too_old(wheel, gpu, driver_version, needed, what, has):
    return Problem(
        "driver-too-old",
        f"the driver is too old for {wheel['file']}: {what} is of CUDA {gpu['toolkit']}, the driver's is {driver_version}",
        f"update the driver to one for CUDA {needed} or newer, or build the wheel with a toolkit of CUDA {driver_version}",
        [has],
    )


def _version(text):
    return tuple(int(part) for part in text.split(".")[:2]) if text else None


def _runs(architecture, capability, exact_major):
    """Whether code of an architecture runs on a device: `sm_90a` on its own only, `sm_100f` within the family."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([af]?)", architecture)
    if not match:
        return False
    code = [int(match[1]), int(match[2])]
    if match[3] == "a":
        return code == capability
    if exact_major or match[3] == "f":
        return code[0] == capability[0] and code[1] <= capability[1]
    return code <= capability


def examine(python, wheels, gpus, deadline_s=DEADLINE_S, environment=None):
    """The machine as it stands in the report: the driver's answer with the selected devices.

    Raises the first `Problem` that would spoil the run.
    """
    began = time.monotonic()
    answer = ask(python or sys.executable, _probed(gpus), deadline_s, environment)
    check_driver(answer)
    answer["devices"] = select(answer, gpus)
    for device in answer["devices"]:
        check_device(device)
        for wheel in wheels:
            check_wheel(wheel, device, answer["cuda_version"])
    answer["seconds"] = round(time.monotonic() - began, 3)
    return answer


def _probed(gpus):
    """The indices that `select` will choose, as far as they are known before the devices are."""
    if gpus == "all" or not all(part.isdecimal() for part in gpus.split(",") if part):
        return None
    indices = [int(part) for part in gpus.split(",") if part]
    return set(indices if "," in gpus else range(indices[0] if indices else 0))


def visible_devices(indices):
    """The value of CUDA_VISIBLE_DEVICES that shows these devices only, of those that it shows now."""
    present = os.environ.get("CUDA_VISIBLE_DEVICES")
    tokens = [token.strip() for token in present.split(",")] if present else None
    return ",".join(str(index) if tokens is None else tokens[index] for index in indices)
