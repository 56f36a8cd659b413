//! A source distribution of any bytes: what is read can be unpacked, and stays below its directory.

#![no_main]

use cuwheel_inspect::sdist::Sdist;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("demo-0.1.0.tar.gz");
    std::fs::write(&path, data).expect("a file");
    if let Ok(sdist) = Sdist::open(&path) {
        let target = directory.path().join("target");
        std::fs::create_dir(&target).expect("a directory");
        drop(sdist.unpack_to(&target));
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 2);
    }
});
