"""The package and its native modules, as the import system sees them."""

import importlib.metadata
import importlib.util
import pickle
import shutil
import sys

import cuwheel
import cuwheel._native
import cuwheel._numpy
import cuwheel.mviewbuf
import fresh_python
import pytest

NATIVE_MODULES = ["mviewbuf", "_numpy"]


def test_version_is_that_of_the_distribution():
    assert cuwheel.__version__ == cuwheel._native.__version__ == importlib.metadata.version("cuwheel")


def test_all_names_exist():
    for module in (cuwheel, cuwheel.mviewbuf, cuwheel._numpy):
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", NATIVE_MODULES)
def test_native_modules_know_what_and_where_they_are(name):
    module = getattr(cuwheel, name)
    full_name = f"cuwheel.{name}"
    assert sys.modules[full_name] is module
    assert importlib.import_module(full_name) is module
    assert module.__name__ == module.__spec__.name == full_name
    assert module.__package__ == module.__spec__.parent == "cuwheel"
    assert module.__file__ == module.__spec__.origin == cuwheel._native.__file__
    assert module.__loader__ is module.__spec__.loader
    assert importlib.util.find_spec(full_name) is module.__spec__
    assert module.__doc__


def test_members_are_pickled_by_name():
    for module in (cuwheel.mviewbuf, cuwheel._numpy):
        for name in module.__all__:
            member = getattr(module, name)
            assert member.__module__ == module.__name__
            assert member.__doc__
            assert pickle.loads(pickle.dumps(member)) is member


def test_importing_imports_nothing_else():
    printed = fresh_python.run(
        """
        import sys
        sys.path.append(sys.argv[1])
        before = set(sys.modules)
        import cuwheel
        print(sorted(set(sys.modules) - before))
        """,
        site=False,
    )
    assert printed.strip() == str(["cuwheel", "cuwheel._native", "cuwheel._numpy", "cuwheel.mviewbuf"])


@pytest.mark.parametrize("with_original", [False, True])
def test_a_copy_elsewhere_takes_its_name_from_there(tmp_path, with_original):
    target = tmp_path / "other" / "pkg"
    shutil.copytree(cuwheel.__path__[0], target, ignore=shutil.ignore_patterns("__pycache__"))
    printed = fresh_python.run(
        """
        import sys
        if sys.argv[2] == "True":
            import cuwheel.mviewbuf as original
        sys.path.append(sys.argv[1])
        import other.pkg.mviewbuf
        import other.pkg.mviewbuf as copy
        import pickle
        assert sys.modules["other.pkg.mviewbuf"] is copy is other.pkg.mviewbuf
        assert copy.__name__ == "other.pkg.mviewbuf"
        assert copy.MemAlloc.__module__ == copy.memoryview_get_buffer.__module__ == copy.__name__
        assert pickle.loads(pickle.dumps(copy.MemAlloc)) is copy.MemAlloc
        if sys.argv[2] == "True":
            assert original.MemAlloc is not copy.MemAlloc
            assert original.MemAlloc.__module__ == "cuwheel.mviewbuf"
        else:
            assert not any(name.partition(".")[0] == "cuwheel" for name in sys.modules)
        print("done")
        """,
        tmp_path,
        with_original,
    )
    assert printed == "done\n"


def test_a_second_name_for_the_same_file_leaves_the_first_alone(tmp_path):
    (tmp_path / "alias").symlink_to(cuwheel.__path__[0], target_is_directory=True)
    printed = fresh_python.run(
        """
        import sys
        sys.path.append(sys.argv[1])
        import cuwheel.mviewbuf, alias.mviewbuf
        assert alias.mviewbuf is not cuwheel.mviewbuf
        assert alias.mviewbuf.MemAlloc.__module__ == "cuwheel.mviewbuf"
        print(alias.mviewbuf.__name__)
        """,
        tmp_path,
    )
    assert printed == "alias.mviewbuf\n"


def test_reload_and_import_after_deletion():
    printed = fresh_python.run(
        """
        import importlib, sys
        import cuwheel.mviewbuf
        first = cuwheel.mviewbuf
        for _ in range(3):
            importlib.reload(cuwheel)
            importlib.reload(cuwheel._native)
            for name in [name for name in sys.modules if name.partition(".")[0] == "cuwheel"]:
                del sys.modules[name]
            import cuwheel.mviewbuf
            assert cuwheel.mviewbuf is not first
            assert cuwheel.mviewbuf.memoryview_get_extents_info((3, 4), (-32, 8), 2, 8) == (-64, 32)
            memoryview(type("C", (first.MemAlloc,), {"_buflen_": 0, "_bufptr_": 1})())
        try:
            importlib.reload(cuwheel.mviewbuf)
        except ModuleNotFoundError:
            print("done")
        """
    )
    assert printed == "done\n"


def test_outside_a_package_the_library_says_what_to_import():
    printed = fresh_python.run(
        """
        import importlib.machinery, importlib.util, sys
        loader = importlib.machinery.ExtensionFileLoader("_native", sys.argv[1])
        spec = importlib.util.spec_from_loader("_native", loader)
        try:
            loader.exec_module(importlib.util.module_from_spec(spec))
        except ImportError as error:
            print(error)
        """,
        cuwheel._native.__file__,
    )
    assert "import its package instead" in printed


SUBINTERPRETERS = """
import sys
code = '''
try:
    import cuwheel.mviewbuf
except ImportError as error:
    print(error)
else:
    print("imported")
'''
def run_in_subinterpreter(isolated):
    if sys.version_info >= (3, 13):
        import _interpreters
        interpreter = _interpreters.create("isolated" if isolated else "legacy")
        failure = _interpreters.run_string(interpreter, code)
        assert failure is None, failure
        _interpreters.destroy(interpreter)
    else:
        import _xxsubinterpreters as interpreters
        interpreter = interpreters.create(isolated=isolated)
        interpreters.run_string(interpreter, code)
        interpreters.destroy(interpreter)
    sys.stdout.flush()
"""


@pytest.mark.parametrize("isolated", [False, True])
def test_a_second_interpreter_gets_an_import_error(isolated):
    printed = fresh_python.run(
        f"""
import cuwheel.mviewbuf
{SUBINTERPRETERS}
for _ in range(2):
    run_in_subinterpreter({isolated})
assert cuwheel.mviewbuf.memoryview_get_extents_info((), (), 0, 8) == (0, 8)
"""
    )
    assert len(printed.splitlines()) == 2
    assert all("interpreter" in line for line in printed.splitlines())


def test_the_main_interpreter_may_come_second():
    printed = fresh_python.run(
        f"""
{SUBINTERPRETERS}
run_in_subinterpreter(False)
try:
    import cuwheel.mviewbuf
except ImportError as error:
    print(error)
"""
    )
    first, second = printed.splitlines()
    assert first == "imported"
    assert "already loaded in another interpreter" in second
