"""The type stubs say what the native modules do: the same names, parameters and docstrings."""

import ast
import importlib
import inspect
from pathlib import Path

import cuwheel
import pytest

STUBS = sorted(Path(cuwheel.__path__[0]).glob("*.pyi"))


def parse(stub: Path) -> tuple[object, ast.Module]:
    return importlib.import_module(f"cuwheel.{stub.stem}"), ast.parse(stub.read_text())


def public_definitions(tree: ast.Module):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def docstring(node) -> str:
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def test_every_native_module_has_a_stub():
    assert [stub.stem for stub in STUBS] == ["_native", "_numpy", "mviewbuf"]
    assert (STUBS[0].parent / "py.typed").exists()


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_names(stub):
    module, tree = parse(stub)
    assigned = [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]
    assert sorted(module.__all__) == sorted([node.name for node in public_definitions(tree)] + assigned)


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_docstrings(stub):
    module, tree = parse(stub)
    assert inspect.getdoc(module) == docstring(tree)
    for node in public_definitions(tree):
        assert inspect.getdoc(getattr(module, node.name)) == docstring(node), node.name


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_parameters(stub):
    module, tree = parse(stub)
    for node in public_definitions(tree):
        if isinstance(node, ast.FunctionDef):
            parameters = inspect.signature(getattr(module, node.name)).parameters.values()
            assert {parameter.kind for parameter in parameters} == {inspect.Parameter.POSITIONAL_ONLY}
            assert [parameter.name for parameter in parameters] == [argument.arg for argument in node.args.posonlyargs]
            defaults = [parameter.default for parameter in parameters if parameter.default is not parameter.empty]
            assert defaults == [ast.literal_eval(default) for default in node.args.defaults]
