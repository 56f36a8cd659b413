//! Gives the library the SONAME of a driver, so that the loader takes it for one once it is loaded from any path, and binds
//! its own references to itself, whatever else of that name is in the process.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
