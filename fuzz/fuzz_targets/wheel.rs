//! A wheel of any bytes: opened, and what opens is asked everything.

#![no_main]

use cuwheel_inspect::rules::{self, ExaminedWheel, Policy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let name = "demo-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";
    match ExaminedWheel::from_bytes(name, data.to_vec()) {
        Ok(wheel) => drop(rules::check(&wheel, &Policy::default().with_budget(Some(1)))),
        Err(error) => drop(error.to_string()),
    }
});
