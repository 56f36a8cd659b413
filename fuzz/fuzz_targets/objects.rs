//! An object file, or an archive of such, of any bytes.

#![no_main]

use cuwheel_inspect::objects::find_references;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("objects.a");
    std::fs::write(&path, data).expect("a file");
    drop(find_references(&path, &["memcpy", "f"]));
});
