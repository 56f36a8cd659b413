//! Writes broken wheels for other tools to look at: of each rule the first wheel that any installer of CPython 3.11 would
//! take, and a sound one. Prints a line for each: rule, fault, path.

#![expect(dead_code, reason = "the corpus has more than other tools can be shown")]

#[path = "../tests/it/corpus.rs"]
mod corpus;
#[path = "../tests/it/gpu_code.rs"]
mod gpu_code;
#[path = "../tests/it/native.rs"]
mod native;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// Rules on what somebody declared, which no other tool is told.
const OF_SETTINGS: &[&str] =
    &["cuda/architecture-missing", "cuda/architecture-extra", "modules/declared-missing", "size/budget"];

fn main() -> ExitCode {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: broken_wheels DIRECTORY");
        return ExitCode::from(2);
    };
    let sound = corpus::sound();
    write(Path::new(&directory), "sound", "nothing", &sound.file_name(), &sound.build());
    let mut seen = BTreeSet::new();
    for broken in corpus::corpus() {
        let is_taken = ["cp311-abi3-", "cp311-cp311-", "py3-none-"].iter().any(|tags| broken.file_name.contains(tags));
        if is_taken && !OF_SETTINGS.contains(&broken.rule) && seen.insert(broken.rule) {
            write(Path::new(&directory), broken.rule, broken.fault, &broken.file_name, &broken.bytes);
        }
    }
    ExitCode::SUCCESS
}

fn write(directory: &Path, rule: &str, fault: &str, file_name: &str, bytes: &[u8]) {
    let directory = directory.join(rule);
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(file_name);
    std::fs::write(&path, bytes).expect("a wheel");
    println!("{rule}\t{fault}\t{}", path.display());
}
