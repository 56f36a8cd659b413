//! Every rule of `doctor`: its name, how bad a breach is by default, why it matters and what to do about it.
//!
//! The pages of rules in the documentation are made from this list. How breaches are found is in the files beside.

use cuwheel_inspect::rules::{Rule, Severity};

macro_rules! catalog {
    ($($name:ident = $id:literal, $severity:ident, $title:literal, $why:literal, $remedy:literal;)*) => {
        $(pub(super) static $name: Rule = Rule::new($id, Severity::$severity, $title, $why, $remedy);)*

        /// Every rule, in the order of the documentation.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

catalog! {
    UNREADABLE = "build/unreadable", Warning,
        "files of the build can be read",
        "What cannot be read cannot be checked, and the build may fall over it as well.",
        "mend the file, or build with the Python whose syntax it has";
    REQUIREMENT_UNDECLARED = "build/requirement-undeclared", Error,
        "what the build uses is declared",
        "pip and uv build in an empty environment: the build ends with `ModuleNotFoundError` or a missing header, and users \
         are told to switch isolation off.",
        "add it to build-system.requires in pyproject.toml";
    REQUIREMENT_CONDITIONAL = "build/requirement-conditional", Note,
        "what the build uses under a condition is declared",
        "Where the condition holds, the build in an empty environment ends with `ModuleNotFoundError`.",
        "add it to build-system.requires in pyproject.toml, or catch the ImportError";
    EDITABLE_COMMAND = "build/editable-command", Error,
        "setup.py knows the command editable_wheel",
        "`pip install -e .` calls editable_wheel, and neither develop nor build_ext by name: the extension is left out \
         without a word.",
        "add editable_wheel where commands are listed, or better, do not look at sys.argv and cmdclass for what to build";
    NUMPY_FLOOR = "build/numpy-floor", Warning,
        "the oldest NumPy that extensions load with is required",
        "Without a floor, an older NumPy stays installed, and the import fails with `module compiled against API version`.",
        "require numpy with a lower bound in project.dependencies";
    NUMPY_MAJOR = "build/numpy-major", Error,
        "extensions are built with a NumPy whose successors they load with",
        "What is compiled with the headers of NumPy 1 does not load with NumPy 2, which users get.",
        "build with numpy>=2.0, whose extensions load with NumPy 1 as well, or require numpy<2 at run time";
    ABI3_PYTHON = "build/abi3-python", Error,
        "the limited API fits the Pythons that are promised",
        "For the Pythons in between there is no wheel and no build that works, or a wheel that crashes.",
        "give the limited API, the tag and requires-python the same oldest Python";
    REDIRECTOR = "build/redirector", Warning,
        "files of site-packages are in the wheel and in editable installs",
        "A .pth file, or the module that it imports, that is left out of one of them makes that installation behave otherwise.",
        "have the build put the file into the wheel, and into what editable_wheel installs";

    IMPORT_HACK = "import/hack", Warning,
        "packages do not rearrange the import system",
        "It hides an extension that was not built or lies elsewhere; copies of modules, circular imports and broken pickles \
         follow.",
        "put the module where its name says, and import it by that name";

    IMPORTS_TREE = "test/imports-tree", Warning,
        "tests import the installed package",
        "The tree comes first on sys.path, where the extension is missing or old: what is tested is not what is shipped.",
        "use `cuwheel test`, a src layout, or --import-mode=importlib without pythonpath, and run `pytest`, not `python -m pytest`";

    CAPSULE_NAME = "native/capsule-name", Error,
        "a capsule is named after its module",
        "PyCapsule_Import imports what the name says before its last dot: another module, a circle, or none.",
        "name it as the full name of the module that has it as an attribute, a dot, and the attribute";

    STALE_ARCHITECTURE = "gpu/stale-architecture", Warning,
        "current compilers know every architecture that is asked for",
        "nvcc ends with `Unsupported gpu architecture`: CUDA 13 knows nothing older than sm_75.",
        "take the architecture out, or ask for it only where the compiler's version knows it";
    NO_PTX = "gpu/no-ptx", Warning,
        "newer GPUs than those listed find PTX",
        "Machine code runs on GPUs of its major version; on a newer GPU, launches fail with `no kernel image`.",
        "add PTX of the newest architecture: -gencode arch=compute_90,code=compute_90, 9.0+PTX, or CMake's 90-virtual";
    ARCHITECTURE_OF_MACHINE = "gpu/architecture-of-machine", Warning,
        "what is built does not depend on the GPU of the machine",
        "On a machine without a GPU the build fails, or leaves the CUDA part out; elsewhere the wheel runs on GPUs such as \
         that one only.",
        "build for a list of architectures, with PTX, wherever there is a toolkit";
    BARE_LIBCUDA = "gpu/bare-libcuda", Warning,
        "the driver is loaded as libcuda.so.1",
        "libcuda.so without a number belongs to the development files: on users' machines it is absent, or the toolkit's \
         stub, with which every call fails.",
        "load libcuda.so.1 first";
    LINKS_DRIVER = "gpu/links-driver", Warning,
        "nothing is linked to the driver",
        "Where there is no driver, the build fails with `cannot find -lcuda`, and the import with `libcuda.so.1: cannot open`.",
        "load libcuda.so.1 at run time with dlopen, or take functions from cudaGetDriverEntryPoint";

    CACHE_KEYS = "uv/cache-keys", Warning,
        "uv knows the sources that a build reads",
        "Unless told otherwise, uv looks at pyproject.toml, setup.py and setup.cfg: after a change of native sources `uv sync` keeps \
         the old extension.",
        "list them in tool.uv.cache-keys";

    UNKNOWN_SETTING = "settings/unknown-key", Error,
        "keys of [tool.cuwheel] are settings",
        "Every command refuses the table.",
        "correct the name: docs/settings.md lists the settings";
    INVALID_SETTING = "settings/invalid-value", Error,
        "values in [tool.cuwheel] are what the settings take",
        "Every command refuses the table.",
        "write what docs/settings.md says";

    PYTHON = "machine/python", Warning,
        "there is a CPython with headers",
        "Without it nothing is built, and `doctor` reads no Python files.",
        "install one of 3.11 or newer with its headers, or name one with --python";
    NO_TOOLKIT = "machine/no-toolkit", Warning,
        "there is a CUDA compiler for CUDA sources",
        "The build ends at the first .cu file, often with a traceback that does not say so.",
        "set CUDA_HOME, put nvcc on PATH, or add nvidia-cuda-nvcc to the requirements of the build";
    TOOLKITS = "machine/toolkits", Warning,
        "one version of the CUDA toolkit is found, whoever looks",
        "Tools differ in where they look first: headers of one version and the compiler of another are mixed.",
        "set CUDA_HOME to the toolkit whose nvcc is first on PATH";
    COMPILER = "machine/compiler", Error,
        "nvcc takes the host compiler",
        "nvcc ends with `unsupported GNU version` deep in the build.",
        "name an older compiler with NVCC_CCBIN or CUDAHOSTCXX, or use a newer toolkit";
    ARCHITECTURE = "machine/architecture", Error,
        "nvcc knows the architectures that the project lists",
        "nvcc ends with `Unsupported gpu architecture`, often because an older one is first on PATH.",
        "use another toolkit, or take the architectures out";
    DRIVER = "machine/driver", Warning,
        "a driver that is there works",
        "GPU tests do not run, or every call of the driver fails.",
        "see what `cuwheel test-gpu` says of it, or ask the machine's administrator";
    DRIVER_OLD = "machine/driver-old", Warning,
        "the driver is as new as the toolkit",
        "Code of a newer major version needs a newer driver, and PTX a driver of its own version.",
        "update the driver, or build with an older toolkit";
    DISK = "machine/disk", Warning,
        "there is room for a build",
        "Compilers end with messages about anything but the full disk.",
        "free some, or set TMPDIR, CARGO_TARGET_DIR and CUWHEEL_CACHE_DIR to where there is more";
    MEMORY = "machine/memory", Warning,
        "memory is enough for as many jobs as will run",
        "Each nvcc takes gigabytes: compilers are killed, or the machine stands still.",
        "set MAX_JOBS, or what the build takes instead";
    UV = "machine/uv", Warning,
        "uv is there and recent",
        "The toolkit then fetches one of its own, which takes a network.",
        "install or update uv";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_are_unique_and_texts_are_sentences() {
        cuwheel_inspect::testing::check_catalog(RULES);
    }

    #[test]
    fn no_rule_is_named_as_one_of_check_wheel() {
        for rule in RULES {
            assert!(Rule::find(rule.id()).is_none(), "{}", rule.id());
        }
    }
}
