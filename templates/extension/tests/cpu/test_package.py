"""The package without a GPU: it can be imported, says what is wrong with arguments, and is what its stubs say."""

import ast
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

import {= package =}
from {= package =} import _native


def in_new_process(code, **environment):
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.split()


{% if is_merged %}
def test_the_import_loads_no_other_package():
    # The driver is asked, where there is one, for the CUDA that it runs.
    assert in_new_process("import sys, {= package =}; print('numpy' in sys.modules)") == ["False"]
{% else %}
def test_the_import_loads_neither_a_driver_nor_another_package():
    code = "import sys, {= package =}; print('libcuda' in open('/proc/self/maps').read(), 'numpy' in sys.modules)"
    assert in_new_process(code) == ["False", "False"]
{% endif %}


@pytest.mark.parametrize("value", [None, 1.0, "text", [1.0, 2.0]])
def test_what_is_no_array_is_a_type_error(value):
    with pytest.raises(TypeError):
        {= package =}.saxpy(2.0, value, value, value)
    with pytest.raises(TypeError):
        {= package =}.sum(value, value)


WITHOUT_A_DEVICE = """
import {= package =}

class OnDevice:
    __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (256, False), "version": 3}

try:
    {= package =}.saxpy(2.0, OnDevice(), OnDevice(), OnDevice())
except {= package =}.CudaError as error:
    print(type(error).__name__)
"""


def test_without_a_device_a_call_says_so():
    # A driver, where there is one, shows no device.
    assert in_new_process(WITHOUT_A_DEVICE, CUDA_VISIBLE_DEVICES="") == ["CudaError"]


def stubs():
    path = pathlib.Path(_native.__file__).with_name("_native.pyi")
    return ast.parse(path.read_text(encoding="utf-8")).body


def test_the_stubs_name_what_the_module_has():
    declared = {node.name for node in stubs() if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    declared |= {node.target.id for node in stubs() if isinstance(node, ast.AnnAssign)}
    public = {name for name in declared if not name.startswith("_") or name == "__version__"}
    assert public == set(_native.__all__) == set({= package =}.__all__)


@pytest.mark.parametrize("node", [node for node in stubs() if isinstance(node, ast.FunctionDef)], ids=lambda node: node.name)
def test_the_parameters_in_the_stubs_are_those_of_the_functions(node):
    function = getattr(_native, node.name)
    assert list(inspect.signature(function).parameters) == [argument.arg for argument in node.args.args]
    assert function.__doc__
