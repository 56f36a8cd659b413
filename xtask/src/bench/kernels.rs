//! `bench kernels`: how long a build script takes for ten files of kernels and five architectures, beside nvcc itself.
//!
//! The compiler is that of NVIDIA's packages, and the build script an example of `cuwheel-build`, run as Cargo runs one. The
//! peer calls the same nvcc for each file with the same options, as many at once as there are processors, and knows nothing of
//! what it did before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cuwheel::cache::Cache;
use cuwheel::cli::Outcome;
use cuwheel::environment::FreshEnvironment;
use cuwheel::error::{Failure, Result};
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::project::Project;
use cuwheel::uv::Uv;

use super::contender::{self, Contender};
use super::succeed;

const PACKAGES: [&str; 4] =
    ["nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-crt==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-runtime==13.5.37"];
const FILES: usize = 10;
const TOUCHED: &str = "kernels/k0.cu";

/// A sum and an update of two element types: as much as a file of kernels has that someone wrote by hand.
const SOURCE: &str = r#"
template <class T> __device__ T transformed(T value, int power) {
    T result = 1;
    for (int i = 0; i < power; i++) result *= value + T(INDEX);
    return result;
}

template <class T> __global__ void update(T *out, const T *x, const T *y, T a, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
        out[i] = a * transformed(x[i], 3) + sqrt(transformed(y[i], 2));
    }
}

template <class T> __global__ void total(T *out, const T *x, long long n) {
    T sum = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
        sum += x[i];
    }
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

template __global__ void update<float>(float *, const float *, const float *, float, long long);
template __global__ void update<double>(double *, const double *, const double *, double, long long);
template __global__ void total<float>(float *, const float *, long long);
template __global__ void total<double>(double *, const double *, long long);
"#;

/// Measures, and makes a table of it.
pub(super) fn execute(output: &Output) -> Result<Outcome> {
    let project = Project::find(Path::new("."))?;
    let scratch = contender::empty_directory(&project)?;
    let interpreter = interpreter::find(None, output)?;
    let cache = Cache::locate()?;
    let uv = Uv::find(&interpreter, &cache, &project.root, false, output)?;
    let environment = FreshEnvironment::create(&cache, &interpreter, &uv)?;
    output.step("install", PACKAGES[0]);
    let install = Process::new(uv.program()).args(["pip", "install", "--quiet", "--no-deps", "--python"]);
    succeed(&install.arg(environment.python()).args(PACKAGES))?;
    succeed(&Process::new("cargo").args(["build", "--quiet", "--package", "cuwheel-build", "--example", "kernels"]))?;
    let script = project.target_directory.join("debug/examples/kernels");

    let python = environment.python();
    let nvcc = nvcc(&environment)?;
    let mut rows = Vec::new();
    for contender in [ours(&scratch, &script, &python)?, peer(&scratch, &nvcc)?] {
        rows.push(contender.measure(output)?);
    }
    std::fs::remove_dir_all(&scratch)?;
    Ok(contender::outcome(&rows, "one file"))
}

fn nvcc(environment: &FreshEnvironment) -> Result<PathBuf> {
    let nvcc = environment.site_packages()?.join("nvidia/cu13/bin/nvcc");
    if nvcc.is_file() { Ok(nvcc) } else { Err(Failure::failed(format!("{} was not installed", nvcc.display())).into()) }
}

fn sources(scratch: &Path, name: &str) -> Result<PathBuf> {
    let directory = scratch.join(name);
    std::fs::create_dir_all(directory.join("kernels"))?;
    for index in 0..FILES {
        let text = SOURCE.replace("INDEX", &index.to_string());
        std::fs::write(directory.join(format!("kernels/k{index}.cu")), text)?;
    }
    Ok(directory)
}

fn ours(scratch: &Path, script: &Path, python: &Path) -> Result<Contender> {
    let directory = sources(scratch, "cuwheel")?;
    let out = directory.join("out");
    std::fs::create_dir_all(&out)?;
    let target: OsString = format!("{}-unknown-linux-gnu", std::env::consts::ARCH).into();
    let process = Process::new(script)
        .directory(&directory)
        .env("CARGO_MANIFEST_DIR", &directory)
        .env("OUT_DIR", &out)
        .env("TARGET", &target)
        .env("HOST", &target)
        .env("OPT_LEVEL", "3")
        .env("CUWHEEL_PYTHON", python)
        .env_remove("CUDA_PATH")
        .env_remove("CUDA_HOME");
    Ok(Contender {
        name: "cuwheel_build::Kernels",
        checkout: directory,
        touched: TOUCHED,
        fresh: process.clone(),
        again: process,
        remembers: true,
    })
}

fn peer(scratch: &Path, nvcc: &Path) -> Result<Contender> {
    let directory = sources(scratch, "nvcc")?;
    let script = "printf '%s\\n' kernels/*.cu | xargs -P \"$(nproc)\" -I{} \"$NVCC\" -fatbin --compress-mode=size \
                  -gencode arch=compute_75,code=[sm_75,compute_75] -gencode arch=compute_80,code=sm_80 \
                  -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89 \
                  -gencode arch=compute_90a,code=sm_90a -o {}.fatbin {}";
    let process = Process::new("sh").args(["-c", script]).directory(&directory).env("NVCC", nvcc);
    Ok(Contender {
        name: "nvcc for each file",
        checkout: directory,
        touched: TOUCHED,
        fresh: process.clone(),
        again: process,
        remembers: true,
    })
}
