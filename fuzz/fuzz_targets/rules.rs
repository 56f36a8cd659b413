//! A sound wheel whose module is any bytes: every rule is asked.

#![no_main]

use cuwheel_inspect::rules::{self, Breakdown, ExaminedWheel, InstalledLibraries, Policy};
use cuwheel_inspect::testing::WheelBuilder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let name = "demo-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";
    let bytes = WheelBuilder::new(name).file("demo/_native.abi3.so", data).file("demo/code.ptx", data).build();
    let wheel = ExaminedWheel::from_bytes(name, bytes).expect("a sound archive");
    let declared = ["90+PTX".parse().expect("an architecture")];
    let policy = Policy::default()
        .with_budget(Some(1))
        .with_architectures(&declared)
        .with_dependencies(vec![InstalledLibraries::of(&wheel)]);
    for finding in rules::check(&wheel, &policy) {
        assert!(!finding.to_string().is_empty());
    }
    drop(Breakdown::of(&wheel));
});
