//! Gives the library the SONAME of a driver, so that the loader takes it for one once it is loaded from any path, and binds
//! its own references to itself, whatever else of that name is in the process.
//!
//! Cargo may leave an older file in one directory than in another, and the loader has its own order: a hash of the sources
//! tells the two apart.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");

    let mut files = Vec::new();
    collect(Path::new("src"), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(&std::fs::read(file)?);
    }
    println!("cargo:rustc-env=CUDA_STUB_BUILD={:016x}", hasher.finish());
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
