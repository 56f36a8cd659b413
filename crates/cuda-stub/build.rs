//! Gives the library the SONAME of a driver, so that the loader takes it for one once it is loaded from any path.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
