"""The type stubs say what the modules do: the same names, parameters and docstrings."""

import ast
import importlib
import inspect
from pathlib import Path

import cuwheel
import pytest

STUBS = sorted(Path(cuwheel.__path__[0]).glob("*.pyi"))


def parse(stub: Path) -> tuple[object, ast.Module]:
    name = "cuwheel" if stub.stem == "__init__" else f"cuwheel.{stub.stem}"
    return importlib.import_module(name), ast.parse(stub.read_text())


def public_definitions(tree: ast.Module):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def other_names(tree: ast.Module):
    """Names that are assigned, or imported under their own name for others to use."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.asname == alias.name)


def docstring(node) -> str:
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def test_every_module_has_a_stub():
    modules = ["__init__", "_dispatcher", "_helperlib", "_kernel", "_native", "_numpy", "_typeconv", "mviewbuf"]
    assert [stub.stem for stub in STUBS] == modules
    assert (STUBS[0].parent / "py.typed").exists()


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_names(stub):
    module, tree = parse(stub)
    defined = [node.name for node in public_definitions(tree)]
    [declared] = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    assert sorted(module.__all__) == sorted(declared) == sorted([*defined, *other_names(tree)])


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_docstrings(stub):
    module, tree = parse(stub)
    assert inspect.getdoc(module) == docstring(tree)
    for node in public_definitions(tree):
        assert inspect.getdoc(getattr(module, node.name)) == docstring(node), node.name


FUNCTIONS = [
    (stub, node) for stub in STUBS for node in public_definitions(parse(stub)[1]) if isinstance(node, ast.FunctionDef)
]


@pytest.mark.parametrize(("stub", "node"), FUNCTIONS, ids=[node.name for _, node in FUNCTIONS])
def test_parameters(stub, node):
    module, _ = parse(stub)
    parameters = list(inspect.signature(getattr(module, node.name)).parameters.values())
    declared = [(argument.arg, inspect.Parameter.POSITIONAL_ONLY) for argument in node.args.posonlyargs]
    if node.args.vararg:
        declared.append((node.args.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    assert [(parameter.name, parameter.kind) for parameter in parameters] == declared
    defaults = [parameter.default for parameter in parameters if parameter.default is not parameter.empty]
    assert defaults == [ast.literal_eval(default) for default in node.args.defaults]
