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


def assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """What names are assigned to, without an annotation."""
    return {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}


def other_names(tree: ast.Module):
    """Names that are assigned, or imported under their own name for others to use."""
    yield from assignments(tree).keys() - {"__all__"}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.asname == alias.name)


def docstring(node) -> str:
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def test_every_module_has_a_stub():
    internal = ["_devicearray", "_dispatcher", "_helperlib", "_kernel", "_native", "_numpy", "_typeconv"]
    assert [stub.stem for stub in STUBS] == ["__init__", *internal, "mviewbuf", "numba"]
    assert (STUBS[0].parent / "py.typed").exists()


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_names(stub):
    module, tree = parse(stub)
    defined = [node.name for node in public_definitions(tree)]
    declared = ast.literal_eval(assignments(tree)["__all__"])
    assert sorted(module.__all__) == sorted(declared) == sorted([*defined, *other_names(tree)])


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_other_names_of_the_same(stub):
    module, tree = parse(stub)
    for name, value in assignments(tree).items():
        if name != "__all__":
            assert getattr(module, name) is eval(ast.unparse(value), vars(module)), name


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.name)
def test_docstrings(stub):
    module, tree = parse(stub)
    assert inspect.getdoc(module) == docstring(tree)
    for node in public_definitions(tree):
        assert inspect.getdoc(getattr(module, node.name)) == docstring(node), node.name


def parameters_of(node: ast.FunctionDef) -> list[tuple]:
    """Name, kind and default of each parameter that a stub has."""
    kinds = inspect.Parameter
    arguments, found = node.args, []
    positional = [(argument, kinds.POSITIONAL_ONLY) for argument in arguments.posonlyargs]
    positional += [(argument, kinds.POSITIONAL_OR_KEYWORD) for argument in arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    found += [(argument.arg, kind, default) for (argument, kind), default in zip(positional, defaults, strict=True)]
    if arguments.vararg:
        found.append((arguments.vararg.arg, kinds.VAR_POSITIONAL, None))
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [(argument.arg, kinds.KEYWORD_ONLY, default) for argument, default in keywords]
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, kinds.VAR_KEYWORD, None))
    return [(name, kind, default and ast.literal_eval(default)) for name, kind, default in found]


def parameters_of_function(function) -> list[tuple]:
    """The same, of what is there."""
    parameters = inspect.signature(function).parameters.values()
    default = lambda parameter: None if parameter.default is parameter.empty else parameter.default  # noqa: E731
    return [(parameter.name, parameter.kind, default(parameter)) for parameter in parameters]


def without_self(parameters: list[tuple]) -> list[tuple]:
    return [parameter for parameter in parameters if parameter[0] not in ("self", "cls")]


FUNCTIONS = [
    (stub, node) for stub in STUBS for node in public_definitions(parse(stub)[1]) if isinstance(node, ast.FunctionDef)
]


@pytest.mark.parametrize(("stub", "node"), FUNCTIONS, ids=[node.name for _, node in FUNCTIONS])
def test_parameters(stub, node):
    module, _ = parse(stub)
    assert parameters_of(node) == parameters_of_function(getattr(module, node.name))


CLASSES = [
    (getattr(parse(stub)[0], node.name), node)
    for stub in STUBS
    for node in public_definitions(parse(stub)[1])
    if isinstance(node, ast.ClassDef)
]
each_class = pytest.mark.parametrize(("cls", "node"), CLASSES, ids=[node.name for _, node in CLASSES])
#: Methods that Python calls by a slot of the class: their docstrings and the names of their parameters are Python's.
SLOT = type(object.__repr__)
#: What every class has, with the meaning that it has everywhere.
COMMON = {"__reduce__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__repr__", "__str__"}
COMMON |= {"__doc__", "__module__", "__new__", "__delitem__", "__getattribute__"}


def members(node: ast.ClassDef) -> dict[str, ast.stmt]:
    names = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
    return names | {member.target.id: member for member in node.body if isinstance(member, ast.AnnAssign)}


@each_class
def test_names_of_members(cls, node):
    # Python shows the methods of the buffer protocol from 3.12 on, and exceptions have what classes made by Python have. Where
    # Python finds the function of a call is a member too.
    unshown = {"__buffer__", "__release_buffer__", "__weakref__", "__vectorcalloffset__"}
    assert members(node).keys() - COMMON - unshown == vars(cls).keys() - COMMON - unshown


@each_class
def test_kinds_and_docstrings_of_members(cls, node):
    for name, member in members(node).items():
        if name not in vars(cls) or isinstance(member, ast.AnnAssign):
            continue
        decorators = [ast.unparse(decorator) for decorator in member.decorator_list]
        found = vars(cls)[name]
        assert ("staticmethod" in decorators) == (isinstance(found, staticmethod) and name != "__new__"), name
        assert ("property" in decorators) == inspect.isdatadescriptor(found), name
        if not isinstance(found, SLOT) and name != "__new__":
            assert (inspect.getdoc(getattr(cls, name)) or "") == docstring(member), name


@each_class
def test_parameters_of_members(cls, node):
    for name, member in members(node).items():
        if name == "__new__":
            assert without_self(parameters_of(member)) == parameters_of_function(cls)
        elif (
            name in vars(cls) and isinstance(member, ast.FunctionDef) and not inspect.isdatadescriptor(vars(cls)[name])
        ):
            expected, found = (
                without_self(parameters)
                for parameters in (parameters_of(member), parameters_of_function(getattr(cls, name)))
            )
            if isinstance(vars(cls)[name], SLOT):
                # Of `__init__` Python says no more than that it takes any arguments.
                assert name == "__init__" or [kind for _, kind, _ in expected] == [kind for _, kind, _ in found], name
            else:
                assert expected == found, name
