"""What depends on the process: its end, its children, and its other devices."""

import os
import subprocess
import sys
import textwrap

import cuwheel
import numpy as np
import pytest


def run(code):
    """Run code in a new interpreter, and return what it prints."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "import atexit; atexit.register(lambda: kept.clear())",
        "import atexit; atexit.register(lambda: print(kept[0].copy_to_host().sum()))",
        "import sys; sys.modules['keeps.arrays.alive'] = kept",
        "import threading; threading.Thread(target=kept.clear).start()",
        "class Late:\n    def __del__(self): self.kept.clear()\nlate = Late(); late.kept = kept",
    ],
)
def test_a_process_ends_well_whatever_is_still_alive(ending):
    setup = """
        import cuwheel
        kept = [cuwheel.full(1000, 1, "int32", kind=kind) for kind in ("device", "pinned", "mapped", "managed")]
        kept.append(cuwheel.Stream())
    """
    run(textwrap.dedent(setup) + ending)


def test_a_tensor_of_torch_outlives_the_modules_that_made_it(torch):
    run("""
        import torch, cuwheel
        shared = torch.from_dlpack(cuwheel.full(1000, 1, "int32"))
        ours = cuwheel.from_dlpack(torch.ones(1000, device="cuda"))
        del cuwheel
    """)


def test_a_child_of_fork_is_told_that_it_cannot_use_the_arrays():
    output = run("""
        import os, cuwheel
        array = cuwheel.full(10, 1, "int32")
        child = os.fork()
        if child == 0:
            try:
                array.copy_to_host()
            except RuntimeError as error:
                print("refused:", "fork" in str(error), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(array.copy_to_host().sum())
    """)
    assert output == "refused: True\n10\n"


@pytest.mark.multi_gpu(2)
class TestSecondDevice:
    """An array on the second device while the first is current."""

    def test_arrays_are_where_they_are_asked_for(self):
        values = np.arange(1000, dtype="int32")
        array = cuwheel.asarray(values, device=1)
        assert array.device == cuwheel.Device(1)
        np.testing.assert_array_equal(array[::3].copy_to_host(), values[::3])
        array[10:20] = -1
        assert (array[10:20].copy_to_host() == -1).all()

    def test_the_current_device_stays_current(self, torch):
        torch.cuda.set_device(0)
        array = cuwheel.zeros(1000, "float32", device="cuda:1")
        array[...] = 2
        copy = array.copy_to_device(0)
        assert torch.cuda.current_device() == 0
        assert (copy.device, array.device) == (cuwheel.Device(0), cuwheel.Device(1))
        assert (copy.copy_to_host() == 2).all()
        del array
        assert cuwheel.empty(1, "int8").device == cuwheel.Device(0)

    def test_imports_find_the_device(self, torch):
        tensor = torch.full((1000,), 3.0, device="cuda:1")
        array = cuwheel.from_dlpack(tensor)
        assert (array.device, array.pointer) == (cuwheel.Device(1), tensor.data_ptr())
        assert (array.copy_to_host() == 3).all()
        with pytest.raises(ValueError, match="copy=False"):
            cuwheel.from_dlpack(tensor, device=0, copy=False)
        moved = cuwheel.from_dlpack(tensor, device=0)
        assert (moved.device, float(moved.copy_to_host()[0])) == (cuwheel.Device(0), 3.0)

    def test_exports_say_the_device(self, torch):
        array = cuwheel.full(1000, 5, "float32", device=1)
        assert array.__dlpack_device__() == (2, 1)
        tensor = torch.from_dlpack(array)
        assert tensor.device == torch.device("cuda:1")
        assert bool((tensor == 5).all())

    @pytest.mark.parametrize("kind", ["pinned", "managed"])
    def test_memory_that_the_host_sees_keeps_its_device(self, kind):
        array = cuwheel.zeros(1000, "int32", kind=kind, device=1)
        again = cuwheel.from_dlpack(cuwheel.DeviceArray.from_dlpack(array))
        assert again.device == cuwheel.Device(1)

    def test_the_streams_of_torch_on_the_second_device_are_waited_for(self, torch):
        side = torch.cuda.Stream(device=1)
        with torch.cuda.device(1), torch.cuda.stream(side):
            tensor = torch.zeros(1000, device="cuda:1")
            torch.cuda._sleep(200_000_000)
            tensor.fill_(7)
        with torch.cuda.stream(side):
            array = cuwheel.from_dlpack(tensor)
        assert (array.copy_to_host() == 7).all()
