"""The package and its modules, as the import system sees them."""

import importlib.metadata
import importlib.util
import pickle
import pkgutil
import shutil
import sys
from pathlib import Path

import cuwheel
import cuwheel._devicearray
import cuwheel._dispatcher
import cuwheel._helperlib
import cuwheel._kernel
import cuwheel._native
import cuwheel._numpy
import cuwheel._typeconv
import cuwheel.mviewbuf
import fresh_python
import pytest

MODULES = ["mviewbuf", "_devicearray", "_dispatcher", "_helperlib", "_kernel", "_numpy", "_typeconv"]


def test_version_is_that_of_the_distribution():
    assert cuwheel.__version__ == cuwheel._native.__version__ == importlib.metadata.version("cuwheel")


def test_all_names_exist():
    for module in (cuwheel, *(getattr(cuwheel, name) for name in MODULES)):
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_files_made_of_what_the_library_holds(name):
    module, native = getattr(cuwheel, name), getattr(cuwheel._native, name)
    full_name = f"cuwheel.{name}"
    assert sys.modules[full_name] is module
    assert importlib.import_module(full_name) is module
    assert module.__name__ == module.__spec__.name == native.__name__ == full_name
    assert Path(module.__file__) == Path(cuwheel.__path__[0], f"{name}.py")
    assert module.__all__ == sorted(module.__all__)
    assert {member for member in native.__all__ if not member.startswith("_")} <= {*module.__all__}
    assert all(getattr(module, member) is getattr(native, member) for member in native.__all__)
    assert module.__doc__


def test_the_modules_are_found_without_importing_them():
    assert {module.name for module in pkgutil.iter_modules(cuwheel.__path__)} == {*MODULES, "_native", "numba"}


def test_members_are_pickled_by_name():
    modules = [cuwheel.mviewbuf, cuwheel._devicearray, cuwheel._dispatcher, cuwheel._kernel, cuwheel._numpy]
    modules.append(cuwheel._typeconv)
    for module in modules:
        for name in {*module.__all__} - {"asarray", "empty", "from_dlpack", "from_host", "full", "zeros"}:
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
        import cuwheel.mviewbuf, cuwheel._devicearray, cuwheel._dispatcher, cuwheel._helperlib, cuwheel._kernel
        import cuwheel._numpy, cuwheel._typeconv
        print(sorted(set(sys.modules) - before))
        """,
        site=False,
    )
    package, modules = printed.splitlines()
    assert package == str(["cuwheel"])
    assert modules == str(["cuwheel", *sorted(f"cuwheel.{name}" for name in [*MODULES, "_native"])])


def test_modules_are_imported_when_they_are_first_used():
    printed = fresh_python.run(
        """
        import sys
        import cuwheel
        assert {"mviewbuf", "__version__", "__path__"} <= set(dir(cuwheel))
        assert "cuwheel.mviewbuf" not in sys.modules
        assert cuwheel.mviewbuf is sys.modules["cuwheel.mviewbuf"] is vars(cuwheel)["mviewbuf"]
        assert not hasattr(cuwheel, "viewbuf")
        try:
            cuwheel.viewbuf
        except AttributeError as error:
            print(error)
        exec("from cuwheel import *", names := {})
        assert names["mviewbuf"] is cuwheel.mviewbuf
        print(names["__version__"])
        """
    )
    assert printed.splitlines() == ["module 'cuwheel' has no attribute 'viewbuf'", cuwheel.__version__]


CONCURRENT_IMPORTS = """
import importlib, sys, threading
sys.setswitchinterval(1e-6)
statements = [
    "import cuwheel",
    "import cuwheel; cuwheel.mviewbuf.MemAlloc; cuwheel.__version__",
    "import cuwheel.mviewbuf; cuwheel.mviewbuf.MemAlloc",
    "import cuwheel.mviewbuf as module; module.MemAlloc",
    "from cuwheel import mviewbuf; mviewbuf.MemAlloc",
    "from cuwheel import *; mviewbuf.MemAlloc",
    "import cuwheel._numpy; cuwheel._numpy.describe",
    "import cuwheel._native; cuwheel._native.mviewbuf",
]
order = int(sys.argv[1])
codes = [compile(statement, statement, "exec") for statement in statements[order:] + statements[:order]]
start, failures, modules = threading.Barrier(len(codes)), [], set()

def work(code):
    start.wait()
    try:
        exec(code, {})
        modules.add(importlib.import_module("cuwheel.mviewbuf"))
    except BaseException as error:
        failures.append((code.co_filename, repr(error)))

threads = [threading.Thread(target=work, args=[code]) for code in codes]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
assert len(modules) == 1
"""


@pytest.mark.parametrize("order", range(8))
def test_threads_may_import_the_package_and_its_modules_at_once(order):
    """Threads that met while the package was imported got ModuleNotFoundError or a deadlock."""
    for _ in range(4):
        fresh_python.run(CONCURRENT_IMPORTS, order)


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
        assert other.pkg.__version__ and copy.__file__.startswith(sys.argv[1])
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
            assert importlib.reload(cuwheel.mviewbuf) is sys.modules["cuwheel.mviewbuf"]
            for name in [name for name in sys.modules if name.partition(".")[0] == "cuwheel"]:
                del sys.modules[name]
            import cuwheel.mviewbuf
            assert cuwheel.mviewbuf is not first
            assert cuwheel.mviewbuf.memoryview_get_extents_info((3, 4), (-32, 8), 2, 8) == (-64, 32)
            names = {"mviewbuf", "_devicearray", "_devicearray_base", "_dispatcher", "_helperlib", "_kernel", "_numpy"}
            names.add("_typeconv")
            assert {*cuwheel._native.__all__} == {"__version__", *names}
            assert len(cuwheel._native.__all__) == 9
            memoryview(type("C", (first.MemAlloc,), {"_buflen_": 0, "_bufptr_": 1})())
        print("done")
        """
    )
    assert printed == "done\n"


def test_a_module_that_was_deleted_is_imported_again():
    printed = fresh_python.run(
        """
        import pickle, sys
        import cuwheel.mviewbuf
        from cuwheel.mviewbuf import MemAlloc, memoryview_get_extents
        for _ in range(3):
            pickled = pickle.dumps((MemAlloc, memoryview_get_extents))
            del sys.modules["cuwheel.mviewbuf"]
            assert pickle.loads(pickled) == (MemAlloc, memoryview_get_extents)
            del sys.modules["cuwheel.mviewbuf"], cuwheel.mviewbuf
            assert cuwheel.mviewbuf is sys.modules["cuwheel.mviewbuf"]
            assert cuwheel.mviewbuf.MemAlloc is MemAlloc
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
IMPORT = '''
try:
    import cuwheel.mviewbuf
except ImportError as error:
    print(error)
else:
    print("imported")
'''
def run_in_subinterpreter(isolated, code=IMPORT):
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


def test_an_interpreter_that_cannot_have_the_library_leaves_it_to_another():
    printed = fresh_python.run(
        f"""
{SUBINTERPRETERS}
run_in_subinterpreter(False, f'''
import importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("_native", {{sys.argv[1]!r}})
try:
    loader.exec_module(importlib.util.module_from_spec(importlib.util.spec_from_loader("_native", loader)))
except ImportError as error:
    print(error)
''')
import cuwheel.mviewbuf
print("imported")
""",
        cuwheel._native.__file__,
    )
    first, second = printed.splitlines()
    assert "import its package instead" in first
    assert second == "imported"
