//! Every rule: its name, how bad a breach is by default, why it matters and what to do about it.
//!
//! The page of rules in the documentation is made from this list. How breaches are found is in the files beside.

use super::{Rule, Severity};
use Severity::{Error, Note, Warning};

macro_rules! catalog {
    ($($name:ident = $id:literal, $severity:ident, $title:literal, $why:literal, $remedy:literal;)*) => {
        $(pub(super) static $name: Rule = Rule::new($id, $severity, $title, $why, $remedy);)*

        /// Every rule, in the order of the documentation.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

catalog! {
    UNREADABLE = "archive/unreadable", Error,
        "the archive can be read",
        "A damaged archive, or one whose parts contradict each other, is installed differently by each installer.",
        "build or download the wheel again";
    UNSAFE_PATH = "archive/unsafe-path", Error,
        "no name leads out of the archive",
        "Installers stop half-way at such a name, or skip the file without a word.",
        "name files relative to site-packages, in UTF-8, without `..`";
    METADATA = "archive/metadata", Error,
        "the .dist-info directory is whole",
        "Without one .dist-info with readable METADATA, WHEEL and RECORD, an archive is no wheel.",
        "build the wheel again, and let nothing but the build backend write .dist-info";
    DUPLICATE_ENTRY = "archive/duplicate-entry", Error,
        "each path occurs once",
        "Installers differ in which of two entries they keep, and indexes refuse the upload.",
        "find what adds the file a second time: often a package directory that is listed twice";
    SYMLINK = "archive/symlink", Error,
        "no entry is a symbolic link",
        "Wheels have no links: installers write a text file with the target's name instead.",
        "put a copy of the target in its place, or load it by its real name";
    RECORD_MISSING = "archive/record-missing", Error,
        "RECORD lists every file",
        "An uninstall leaves the file behind, and some installers refuse the wheel.",
        "write RECORD after the last file was added: `wheel unpack` and `wheel pack` do";
    RECORD_EXTRA = "archive/record-extra", Error,
        "RECORD lists no file that is absent",
        "The wheel installs without a word and fails at import.",
        "build the wheel again; if the file was removed on purpose, `wheel unpack` and `wheel pack` it";
    RECORD_HASH = "archive/record-hash", Error,
        "files have the hashes that RECORD says",
        "The file was changed after the wheel was made. pip and uv install it all the same.",
        "change files before the wheel is packed, or `wheel unpack` and `wheel pack` it";
    RECORD_SIZE = "archive/record-size", Error,
        "files have the sizes that RECORD says",
        "The file was changed after the wheel was made. pip and uv install it all the same.",
        "change files before the wheel is packed, or `wheel unpack` and `wheel pack` it";
    RECORD_DUPLICATE_ROW = "archive/record-duplicate-row", Error,
        "RECORD lists each file once",
        "Installers that check RECORD stop at the second row.",
        "write RECORD once, after the last file was added";
    RECORD_WITHOUT_HASH = "archive/record-without-hash", Error,
        "every row of RECORD has a hash",
        "Nobody can tell whether the file is the one that was built.",
        "let the build backend write RECORD";
    RECORD_UNSUPPORTED_HASH = "archive/record-unsupported-hash", Error,
        "hashes are sha256, sha384 or sha512",
        "The format forbids weaker hashes, and installers that check RECORD stop.",
        "let the build backend write RECORD";
    NAME_MISMATCH = "archive/name-mismatch", Error,
        "file name, METADATA and .dist-info name one project",
        "pip installs under one name what was asked for under another; uv refuses.",
        "rename the project, and not the file";
    VERSION_MISMATCH = "archive/version-mismatch", Error,
        "file name, METADATA and .dist-info name one version",
        "pip installs it as another version than was asked for; uv refuses.",
        "change the version of the project and build again: the file is not renamed by hand";
    WORLD_WRITABLE = "archive/world-writable", Warning,
        "no file is writable for everyone",
        "Installed for all users of a machine, anyone could change the code that the others run.",
        "pack the wheel from files with mode 644 or 755";
    NOT_EXECUTABLE = "archive/not-executable", Warning,
        "programs may be executed",
        "Installers keep the mode, so that the program cannot be started.",
        "pack the wheel from files with mode 755, or declare the program as a script";
    STRAY_FILE = "archive/stray-file", Warning,
        "no leftovers of builds are inside",
        "Caches, build directories, environments and earlier wheels make the wheel larger and may hold secrets.",
        "exclude them in the settings of the build backend";
    DIRECTORY_ENTRY = "archive/directory-entry", Note,
        "directories have no entries",
        "No installer needs them, and RECORD cannot list them.",
        "pack files only";

    TAGS_MISMATCH = "tags/mismatch", Error,
        "WHEEL and the file name have the same tags",
        "Installers choose by the file name and record what WHEEL says: the installation seems broken.",
        "use `wheel tags`, which changes both, and do not rename the file";
    PURE_WITH_NATIVE = "tags/pure-with-native", Error,
        "a wheel with native code is for a platform",
        "A wheel for any platform installs everywhere and fails at import.",
        "tell the build backend that the package has extension modules";
    PURELIB_FLAG = "tags/purelib-flag", Warning,
        "Root-Is-Purelib fits the contents",
        "Where pure and native packages are installed in different directories, the package is split in two.",
        "let the build backend write WHEEL";
    ABI_SUFFIX = "tags/abi-suffix", Error,
        "suffixes of extension modules fit the tags",
        "The wheel installs for interpreters that do not find the module, or load one built for another interpreter.",
        "build with the interpreter that the tag names, or correct the tag";
    LIMITED_API = "tags/limited-api", Error,
        "abi3 modules use the limited API of their oldest Python",
        "The module installs on that Python and fails at import, or crashes, because the symbol is not there.",
        "define Py_LIMITED_API (or the abi3 feature of PyO3) as the tag says, or raise the tag";
    MACHINE = "tags/machine", Error,
        "libraries are for the processor of the tag",
        "The loader refuses a library for another processor.",
        "cross-compile with the tag's target, or correct the tag";
    GLIBC_FLOOR = "tags/glibc-floor", Error,
        "libraries load with the glibc that the tag promises",
        "On the older systems that the tag names, the import fails with `version GLIBC_… not found`.",
        "link against an older glibc (zig, or a manylinux image), replace what uses the symbol, or promise less";
    CXX_FLOOR = "tags/cxx-floor", Error,
        "libraries load with the C++ and GCC runtime that the tag promises",
        "On the older systems that the tag names, the import fails with `version GLIBCXX_… not found`.",
        "build in a manylinux image, link with -static-libstdc++ -static-libgcc, or promise less";

    MISSING_INIT = "modules/missing-init", Error,
        "extension modules export their init function",
        "The import fails with `dynamic module does not define module export function`.",
        "name the library as its module, and export PyInit_NAME";
    NO_EXTENSION = "modules/no-extension", Error,
        "a wheel for one Python ABI has an extension module",
        "The extension was left out; tests from the source tree do not notice.",
        "find why the build left it out, or build a wheel for any Python";
    NO_NATIVE = "modules/no-native", Warning,
        "a wheel for a platform has native files",
        "The native part may have been left out; if there is none, one wheel for all platforms is enough.",
        "find why the build left it out, or build a wheel for any platform";
    DECLARED_MISSING = "modules/declared-missing", Error,
        "modules that the settings name are inside",
        "The module was left out of the wheel, and nothing else notices.",
        "add it to the packages of the build backend, or take it out of tool.cuwheel.modules";
    ENTRY_POINT = "modules/entry-point", Error,
        "entry points name modules that are inside",
        "Installers make the script all the same, and it fails when it is started.",
        "correct the name in the project's metadata, or add the module to the packages of the build backend";
    IMPORT = "modules/import", Error,
        "the wheel can be imported (checked with --import)",
        "Whoever installs the wheel sees the same failure.",
        "read the last line of the traceback; a wheel must import on a machine without a GPU";

    LIBRARY_UNREADABLE = "libraries/unreadable", Warning,
        "libraries can be inspected",
        "What cannot be read cannot be checked, and may not load.",
        "build the library again; strip it with `strip` only";
    DRIVER_INSIDE = "libraries/driver-inside", Error,
        "no library of the driver is inside",
        "Driver and GL libraries belong to the user's kernel module: a copy fails or crashes on every other machine.",
        "exclude the library when the wheel is repaired, and load it at run time";
    DRIVER_NEEDED = "libraries/driver-needed", Error,
        "nothing is linked to the driver",
        "The import fails on machines without a GPU: build servers, login nodes, laptops.",
        "load the driver at run time with dlopen(\"libcuda.so.1\") or cuGetProcAddress";
    PYTHON_NEEDED = "libraries/python-needed", Warning,
        "nothing is linked to libpython",
        "Most interpreters have no such file; where there is one, a second interpreter is loaded.",
        "leave symbols of Python undefined: the interpreter provides them";
    ABSOLUTE_RPATH = "libraries/absolute-rpath", Error,
        "RPATH holds no path of the build machine",
        "On the user's machine the path is absent, or holds other libraries, which are then loaded.",
        "link without -rpath, or give it relative to $ORIGIN";
    WORKING_DIRECTORY_RPATH = "libraries/working-directory-rpath", Error,
        "RPATH does not name the working directory",
        "Whoever can write to the directory that Python is started in decides which library is loaded.",
        "start every entry with $ORIGIN and leave no empty one";
    ESCAPING_RPATH = "libraries/escaping-rpath", Error,
        "RPATH stays in site-packages",
        "What lies above site-packages differs from machine to machine.",
        "name directories in site-packages, such as $ORIGIN/../nvidia/cu13/lib";
    STUBS_RPATH = "libraries/stubs-rpath", Error,
        "RPATH names no directory of stubs",
        "The toolkit's stub of the driver is loaded: every call fails with CUDA_ERROR_STUB_LIBRARY.",
        "give stubs to the linker with -L only";
    UNRESOLVED = "libraries/unresolved", Warning,
        "the loader finds every needed library",
        "Unless the package loads the library itself before, the import fails with `cannot open shared object file`.",
        "lead there with an RPATH relative to $ORIGIN, put the library inside, or require the project that has it";
    UNKNOWN_DEPENDENCY = "libraries/unknown-dependency", Note,
        "needed libraries are in wheels that are known",
        "Whether the loader finds them depends on wheels that this one requires, and they were not looked into.",
        "give the wheels of the dependencies with --with";
    VERSION_NEEDS = "libraries/version-needs", Error,
        "symbol versions are of libraries that are needed",
        "A tool renamed a needed library and not its versions: the loader stops the process.",
        "repair the wheel with patchelf 0.14.5 or newer";
    SEGMENTS = "libraries/segments", Error,
        "segments are aligned and inside the file",
        "The loader refuses the file, or maps the wrong bytes: patchelf and strip, in the wrong order, leave such files.",
        "strip before patching, never after, with a current patchelf";
    HEADERS_UNMAPPED = "libraries/headers-unmapped", Error,
        "the table of segments is mapped",
        "The loader reads the table where no segment puts it, and crashes.",
        "strip before patching, never after, with a current patchelf";
    EXECUTABLE_STACK = "libraries/executable-stack", Warning,
        "no executable stack is asked for",
        "glibc 2.41 and newer refuse to load such a library, and hardened systems always did.",
        "add `.section .note.GNU-stack,\"\",%progbits` to assembler files, or link with -z noexecstack";
    DEBUG_INFO = "libraries/debug-info", Note,
        "no debugging information is inside",
        "Nobody who installs the wheel uses it, and it is often the larger part of the file.",
        "strip the library, or keep the information in a separate file";

    FATBIN_DAMAGED = "cuda/fatbin-damaged", Error,
        "fatbins can be read to their ends",
        "The driver refuses the container, or finds no kernels in it: tools that patch libraries can damage them.",
        "build the library again, and patch it with a current patchelf only";
    ARCHITECTURE_MISSING = "cuda/architecture-missing", Error,
        "GPU code is there for every declared architecture",
        "On GPUs of the missing architecture, launches fail with `no kernel image is available for execution`.",
        "give the compiler all of tool.cuwheel.check.architectures, or declare what is built";
    ARCHITECTURE_EXTRA = "cuda/architecture-extra", Warning,
        "GPU code is there for declared architectures only",
        "Code for GPUs that nobody asked for makes the wheel larger.",
        "leave the architecture out, or declare it in tool.cuwheel.check.architectures";
    NO_PTX = "cuda/no-ptx", Warning,
        "GPU code has PTX for GPUs that are newer than it",
        "Machine code runs on GPUs of its major version; a newer GPU needs PTX, which its driver compiles.",
        "add PTX of one architecture without `a` or `f`: -gencode arch=compute_90,code=compute_90";
    TOOLKIT_MISMATCH = "cuda/toolkit-mismatch", Error,
        "one major version of CUDA is in names, libraries and GPU code",
        "Two runtimes in one process do not share their state, and code of a newer toolkit needs a newer driver.",
        "build everything with the toolkit that the wheel is named after";
    DEPENDENCY_MISSING = "cuda/dependency-missing", Warning,
        "linked libraries of CUDA are inside or required",
        "Where no toolkit is installed the import fails, and where one is, its version is a matter of luck.",
        "require the project that has the library, and lead there with an RPATH such as $ORIGIN/../nvidia/cu13/lib";
    DEPENDENCY_TOOLKIT = "cuda/dependency-toolkit", Error,
        "required projects are of the CUDA that is linked",
        "The project that is installed has the library under another number, and the loader does not find it.",
        "require the project of the same major version: -cu12 for CUDA 12, no suffix from CUDA 13 on";

    BUDGET = "size/budget", Error,
        "the wheel is within its budget",
        "Indexes refuse large files: PyPI those over 100 MB, unless more was granted.",
        "strip, compress fatbins (nvcc --compress-mode=size), build for fewer architectures, or raise the budget";

    COLLISION = "sets/collision", Error,
        "wheels that go together do not overwrite each other",
        "The file that is installed last wins, and an uninstall takes it from both.",
        "give each wheel its own paths";
    ALTERNATIVES = "sets/alternatives", Note,
        "wheels for several versions of CUDA do not overwrite each other",
        "They are made to be installed one at a time. Whoever installs two of them gets files of both.",
        "say in the documentation that only one is to be installed, or merge them into one wheel";
    NOT_FOUND = "sets/not-found", Error,
        "every wheel of the manifest is there",
        "A release would lack the wheel.",
        "build again, or find what removed the file";
    NOT_EXPECTED = "sets/not-expected", Error,
        "every wheel is in the manifest",
        "A release would hold a wheel that this build did not make.",
        "remove what an earlier build left, or build again";
    CHANGED = "sets/changed", Error,
        "wheels are those that the manifest lists",
        "The file is not the one that was built and proven.",
        "build again, and change nothing afterwards";
}
