//! Which compiler is used, and what is said when it is none or the wrong one. The compilers here are scripts.

use std::fs;
use std::path::{Path, PathBuf};

use cuwheel_build::{Kernels, Unsupported};

use crate::machine::{Machine, PLAY_BUILD_SCRIPT, assert_contains};

const SCRIPT: &str = "toolkits::build_script";

/// Words that the played build script is built of.
const ASKED: &str = "TEST_ASKED";

/// Answers as nvcc does, compiles to a text, and notes when it begins and ends.
const NVCC: &str = r#"
case "$1" in
--version) echo "Cuda compilation tools, release VERSION, V13.9"; exit 0;;
--list-gpu-code) printf 'sm_75\nsm_80\nsm_90\nsm_100\nsm_103\n'; exit 0;;
esac
here=$(cd "$(dirname "$0")" && pwd)
echo "$@" >> "$here/calls"
echo begin >> "$here/log"
while [ $# -gt 0 ]; do
  case "$1" in
  -o) output=$2; shift;;
  -MF) list=$2; shift;;
  --keep-dir) kept=$2; shift;;
  *.cu) source=$1;;
  esac
  shift
done
BODY
sleep 0.05
printf '.visible .entry fake(\n.param .u64 a\n)\n' > "$kept/a.ptx"
cp "$source" "$output"
echo "o: $source" > "$list"
echo end >> "$here/log"
"#;

/// Not a test of its own: what the cases below run in another process.
#[test]
fn build_script() {
    if std::env::var_os(PLAY_BUILD_SCRIPT).is_none() {
        return;
    }
    let mut kernels = Kernels::new().files("kernels/*.cu");
    for word in std::env::var(ASKED).unwrap_or_default().split_whitespace() {
        kernels = match word {
            "strict" => kernels.strict(true),
            "intersect" => kernels.unsupported(Unsupported::Intersect),
            "data" => kernels.package_data("python/pkg/kernels"),
            "any-host" => kernels.flag("-allow-unsupported-compiler"),
            "host" => kernels.host_files("host/*.cu"),
            other => kernels.architectures([other]),
        };
    }
    match kernels.compile("kernels") {
        Ok(()) => println!("compiled everything"),
        Err(error) => println!("failed: {error:?}"),
    }
}

impl Machine {
    fn with_kernels(count: usize) -> Self {
        let machine = Self::new();
        for index in 0..count {
            machine.write(&format!("kernels/k{index}.cu"), "// one");
        }
        machine.interpreter("bin/python3", "");
        machine
    }

    fn nvcc(&self, root: &str, version: &str) -> PathBuf {
        self.nvcc_that(root, version, "")
    }

    fn nvcc_that(&self, root: &str, version: &str, body: &str) -> PathBuf {
        self.program(&format!("{root}/bin/nvcc"), &NVCC.replace("VERSION", version).replace("BODY", body));
        self.path(root)
    }

    /// Packages of Python, as the interpreter finds them.
    fn packages(&self, layout: &str) -> PathBuf {
        let folder = self.path("site packages");
        self.interpreter("bin/python3", folder.to_str().unwrap());
        for file in ["nvvm/bin/cicc", "include/crt/host_config.h", "include/cuda_runtime.h"] {
            self.write(&format!("site packages/nvidia/{layout}/{file}"), "");
        }
        folder.join("nvidia").join(layout)
    }

    fn build(&self, asked: &str, variables: &[(&str, &Path)]) -> String {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut all = vec![("PATH", Path::new(&path)), (ASKED, Path::new(asked))];
        all.extend(variables);
        self.run(SCRIPT, &all)
    }
}

#[test]
fn compilers_are_taken_in_the_documented_order() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "13.1");
    assert_contains(&machine.build("", &[]), &["compiler: CUDA 13.1", "(by PATH)", "compiled everything"]);
    machine.packages("cu13");
    machine.nvcc("site packages/nvidia/cu13", "13.2");
    assert_contains(
        &machine.build("", &[]),
        &["compiler: CUDA 13.2", "(by Python packages)", "also there, and not used: "],
    );
    let home = machine.nvcc("home", "13.3");
    assert_contains(&machine.build("", &[("CUDA_HOME", &home)]), &["compiler: CUDA 13.3", "(by CUDA_HOME)"]);
    let path = machine.nvcc("path", "13.4");
    let output = machine.build("", &[("CUDA_HOME", &home), ("CUDA_PATH", &path)]);
    assert_contains(&output, &["compiler: CUDA 13.4", "(by CUDA_PATH)", "(by CUDA_HOME)", "compiled everything"]);
}

#[test]
fn compilers_of_different_versions_are_a_warning_or_with_strict_an_error() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "12.4");
    let home = machine.nvcc("home", "13.3");
    let output = machine.build("", &[("CUDA_HOME", &home)]);
    assert_contains(&output, &["cargo:warning=kernels are compiled with CUDA 13.3", "and not with CUDA 12.4"]);
    let output = machine.build("strict", &[("CUDA_HOME", &home)]);
    assert_contains(&output, &["failed: there are CUDA compilers of different versions", "CUDA 13.3", "CUDA 12.4"]);
}

#[test]
fn a_build_for_one_major_version_passes_over_compilers_of_others() {
    let machine = Machine::with_kernels(1);
    let major = |major: &'static str| ("CUWHEEL_CUDA_MAJOR", Path::new(major));
    machine.packages("cu13");
    machine.nvcc("site packages/nvidia/cu13", "13.2");
    let output = machine.build("", &[major("12")]);
    let parts =
        ["failed: no compiler of CUDA 12 found, which CUWHEEL_CUDA_MAJOR asks for", "CUDA 13.2", "set CUDA_PATH"];
    assert_contains(&output, &parts);
    let path = machine.nvcc("path", "12.4");
    let output = machine.build("strict", &[major("12"), ("CUDA_PATH", &path)]);
    assert_contains(&output, &["compiler: CUDA 12.4", "(by CUDA_PATH)", "not used: CUDA 13.2", "compiled everything"]);
    let output = machine.build("strict", &[major("13"), ("CUDA_PATH", &path)]);
    assert_contains(&output, &["compiler: CUDA 13.2", "not used: CUDA 12.4", "k0.cu: compiled"]);
    // Each finds its own results again.
    for (version, variable) in [("12", "CUDA_PATH"), ("13", "CUDA_PATH"), ("12", "CUDA_HOME")] {
        assert_contains(&machine.build("", &[major(version), (variable, &path)]), &["k0.cu: unchanged"]);
    }
    let home = machine.nvcc("home", "12.9");
    let output = machine.build("strict", &[major("12"), ("CUDA_PATH", &path), ("CUDA_HOME", &home)]);
    assert_contains(&output, &["failed: there are CUDA compilers of different versions", "CUDA 12.4", "CUDA 12.9"]);
    assert!(!output.contains("13.2 ") && !output.contains("\n    CUDA 13.2"), "{output}");
    assert_contains(&machine.build("", &[major("twelve")]), &["failed: CUWHEEL_CUDA_MAJOR is set to \"twelve\""]);
}

#[test]
fn a_variable_that_leads_to_no_compiler_is_an_error() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "13.1");
    let output = machine.build("", &[("CUDA_HOME", &machine.path("nowhere"))]);
    assert_contains(&output, &["failed: CUDA_HOME is set to ", "no program bin/nvcc in it"]);
}

#[test]
fn pk_16_packages_without_a_compiler_are_named() {
    // Where a toolkit is in a usual place there is a compiler.
    if ["/usr/local/cuda", "/opt/cuda", "/usr/lib/nvidia-cuda-toolkit"].iter().any(|root| Path::new(root).exists()) {
        return;
    }
    let machine = Machine::with_kernels(1);
    let output = machine.build("", &[]);
    assert_contains(
        &output,
        &["failed: no CUDA compiler found", "requires = [\"maturin>=1.16,<2\", \"nvidia-cuda-nvcc>=13\""],
    );
    machine.packages("cu13");
    assert_contains(&machine.build("", &[]), &["but not the one with the compiler, nvidia-cuda-nvcc."]);
    machine.packages("cuda_nvcc");
    assert_contains(&machine.build("", &[]), &["nvidia-cuda-nvcc-cu12 is installed, and has no nvcc"]);
}

#[test]
fn pk_15_pk_17_packages_of_both_layouts_are_used_and_checked() {
    let machine = Machine::with_kernels(1);
    machine.write("host/h.cu", "");
    for (layout, version, package) in
        [("cuda_nvcc", "12.9", "nvidia-cuda-runtime-cu12"), ("cu13", "13.2", "nvidia-cuda-runtime==13.*")]
    {
        let root = machine.packages(layout);
        machine.nvcc(&format!("site packages/nvidia/{layout}"), version);
        assert_contains(&machine.build("", &[]), &[&format!("compiler: CUDA {version}"), "compiled everything"]);
        let output = machine.build("host", &[]);
        assert_contains(&output, &["failed: lib/libcudart_static.a is missing", &format!("Add \"{package}\" to")]);
        fs::remove_file(root.join("include/cuda_runtime.h")).unwrap();
        assert_contains(&machine.build("", &[]), &["failed: include/cuda_runtime.h is missing", package]);
    }
}

#[test]
fn pk_22_host_compilers_that_nvcc_refuses_are_named_before_anything_is_compiled() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "13.1");
    machine.write("include/crt/host_config.h", "#if __GNUC__ > 14\n");
    machine.program("bin/g++", "echo '#define __GNUC__ 99'");
    for version in [12, 14, 15] {
        machine.program(&format!("bin/g++-{version}"), &format!("echo '#define __GNUC__ {version}'"));
    }
    let output = machine.build("", &[]);
    let remedy = format!("Set NVCC_CCBIN={} and build again", machine.path("bin/g++-14").display());
    assert_contains(&output, &["failed: GCC 99 (", "is newer than GCC 14, the newest that CUDA 13.1", &remedy]);
    assert!(!machine.path("bin/log").exists(), "something was compiled");
    assert_contains(
        &machine.build("", &[("NVCC_CCBIN", &machine.path("bin/g++-12"))]),
        &["GCC", "compiled everything"],
    );
    assert_contains(&machine.build("any-host", &[]), &["compiled everything"]);
    let output = machine.build("", &[("NVCC_CCBIN", Path::new("/does/not/exist"))]);
    assert_contains(&output, &["failed: the C++ compiler /does/not/exist cannot be used"]);
}

#[test]
fn pk_23_architectures_are_checked_against_the_compilers_list() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "13.1");
    let output = machine.build("70 sm_130 90", &[]);
    assert_contains(&output, &["failed: CUDA 13.1", "does not compile for: 70, 130.", "It knows: 75 80 90 100 103."]);
    let output = machine.build("70 90 intersect", &[]);
    assert_contains(&output, &["cargo:warning=CUDA 13.1", "does not compile for 70: left out", "compiled everything"]);
    let output = machine.build("70", &[("CUWHEEL_KERNEL_ARCHITECTURES", Path::new("80;90a"))]);
    assert_contains(&output, &["architectures: sm_80 sm_90a and PTX of compute_80", "compiled everything"]);
}

#[test]
fn pk_26_pk_27_a_gpu_is_looked_for_only_where_it_is_asked_for() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "13.1");
    let called = machine.path("called");
    machine.program("bin/nvidia-smi", &format!("touch '{}'; echo 9.0; echo 9.0", called.display()));
    let output = machine.build("", &[]);
    assert_contains(&output, &["architectures: sm_75 sm_80 sm_90 sm_100 and PTX of compute_75", "compiled everything"]);
    assert!(!called.exists(), "nvidia-smi was called");
    assert_contains(
        &machine.build("native", &[]),
        &["architectures: sm_90 and PTX of compute_90", "compiled everything"],
    );
    assert!(called.exists());
    machine.program("bin/nvidia-smi", "echo 'No devices were found'; exit 6");
    let output = machine.build("native", &[]);
    assert_contains(&output, &["failed: the architecture \"native\" needs a GPU", "No devices were found"]);
}

#[test]
fn pk_81_no_more_compilers_run_than_were_asked_for() {
    let machine = Machine::with_kernels(6);
    machine.nvcc(".", "13.1");
    let output = machine.build("", &[("CUWHEEL_KERNEL_JOBS", Path::new("2"))]);
    assert_contains(&output, &["files: 6, at most 2 at once", "compiled everything"]);
    let mut running = 0_i32;
    let mut most = 0;
    for line in fs::read_to_string(machine.path("bin/log")).unwrap().lines() {
        running += if line == "begin" { 1 } else { -1 };
        most = most.max(running);
    }
    assert_eq!((running, most), (0, 2));
    let output = machine.build("", &[("CUWHEEL_KERNEL_JOBS", Path::new("none"))]);
    assert_contains(&output, &["failed: CUWHEEL_KERNEL_JOBS is set to \"none\""]);
}

#[test]
fn pk_81_a_killed_compiler_is_run_again_with_fewer_beside_it() {
    let machine = Machine::with_kernels(2);
    // Like a compiler for which memory is short: killed at the first call, not at the next.
    machine.nvcc_that(".", "13.1", "mkdir \"$here/once\" 2>/dev/null && kill -9 $$");
    let output = machine.build("", &[("CUWHEEL_KERNEL_JOBS", Path::new("2"))]);
    assert_contains(
        &output,
        &["cargo:warning=a CUDA compiler was killed", "again with 1 at once", "compiled everything"],
    );
    machine.write("kernels/k0.cu", "// changed");
    machine.nvcc_that(".", "13.1", "exit 137");
    assert_contains(&machine.build("", &[]), &["failed: a CUDA compiler was killed, even with one at a time"]);
}

#[test]
fn pk_53_data_of_the_package_has_to_be_declared_and_is_kept_in_step() {
    let machine = Machine::with_kernels(2);
    machine.nvcc(".", "13.1");
    machine.write(".gitignore", "*.fatbin\n");
    machine.write("pyproject.toml", "[tool.maturin]\n# include = [\"python/pkg/kernels/*.fatbin\"]\n");
    let output = machine.build("data", &[]);
    let line = "include = [{ path = \"python/pkg/kernels/*.fatbin\", format = \"wheel\" }]";
    assert_contains(&output, &["failed: python/pkg/kernels/k0.fatbin is written as data of the package", line]);
    machine.write("pyproject.toml", &format!("[tool.maturin]\n{line}\n"));
    assert_contains(&machine.build("data", &[]), &["compiled everything"]);
    assert_eq!(fs::read_to_string(machine.path("python/pkg/kernels/k1.fatbin")).unwrap(), "// one");
    let module = fs::read_to_string(machine.path("out/kernels.rs")).unwrap();
    assert_contains(&module, &["pub const FILE: &str = \"k1.fatbin\";", "pub const FAKE: Kernel"]);
    fs::remove_file(machine.path("kernels/k1.cu")).unwrap();
    assert_contains(&machine.build("data", &[]), &["kernels/k0.cu: unchanged", "compiled everything"]);
    assert!(
        machine.path("python/pkg/kernels/k0.fatbin").exists() && !machine.path("python/pkg/kernels/k1.fatbin").exists()
    );
}

#[test]
fn data_of_the_package_is_placed_by_pyproject_and_not_by_the_crate() {
    let machine = Machine::with_kernels(1);
    machine.nvcc(".", "13.1");
    machine.write("crates/one/kernels/k.cu", "// of a crate below");
    machine.write("pyproject.toml", "[tool.maturin]\ninclude = ['python/pkg/kernels/k.fatbin']\n");
    let output = machine.build("data", &[("CARGO_MANIFEST_DIR", &machine.path("crates/one"))]);
    assert_contains(&output, &["compiled everything"]);
    let written = fs::read_to_string(machine.path("python/pkg/kernels/k.fatbin")).unwrap();
    assert_eq!(written, "// of a crate below");
    let stamp = fs::metadata(machine.path("python/pkg/kernels/k.fatbin")).unwrap().modified().unwrap();
    let output_stamp = fs::metadata(machine.path("out/kernels.rs")).unwrap().modified().unwrap();
    assert!(stamp < output_stamp, "Cargo would run the build script each time");
}

#[test]
fn mistakes_in_the_build_script_are_named() {
    let machine = Machine::with_kernels(0);
    machine.nvcc(".", "13.1");
    assert_contains(&machine.build("", &[]), &["failed: no file matches \"kernels/*.cu\""]);
    machine.write("kernels/a-b.cu", "");
    machine.write("kernels/a_b.cu", "");
    assert_contains(&machine.build("", &[]), &["would both be the module `a_b`: rename one of them"]);
    fs::remove_file(machine.path("kernels/a-b.cu")).unwrap();
    assert_contains(&machine.build("hopper", &[]), &["failed: \"hopper\" is no architecture"]);
}
