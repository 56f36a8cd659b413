//! The wheels that a bundle's tests require, resolved and downloaded for the Python and the platform of its target.
//!
//! uv resolves, since pip evaluates markers for the Python that it runs on; pip downloads, which uv does not do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::target::Target;
use crate::error::{Failure, Result};
use crate::interpreter::Interpreter;
use crate::output::Output;
use crate::requirements::{Lock, requirement_name};
use crate::uv::{self, Uv};

/// The wheels, and what the target is said to have.
#[derive(Clone, Debug, Default)]
pub struct Wheelhouse {
    /// Paths of wheels, in the order of their names.
    pub wheels: Vec<PathBuf>,
    /// Names of requirements that were left out.
    pub expects: Vec<String>,
}

/// Reads `--exclude-present`: a file with a package a line, as `pip freeze` or `pip list` writes them, or names with commas.
pub fn present_packages(list: &str) -> Result<BTreeSet<String>> {
    let path = Path::new(list);
    let text = if path.is_file() { fs::read_to_string(path)? } else { list.replace(',', "\n") };
    let names: BTreeSet<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '-']))
        .map(requirement_name)
        .filter(|name| !name.is_empty() && name != "package")
        .collect();
    if names.is_empty() {
        return Err(Failure::usage(format!("--exclude-present {list} names no packages"))
            .remedy("give names with commas, or a file that `pip freeze` wrote on the target")
            .into());
    }
    Ok(names)
}

/// Resolves the lock for the target and downloads its wheels into `directory`, without those that are `present` and without
/// the one under test, which a requirement of the tests may depend on.
pub fn collect(
    lock: &Lock,
    target: &Target,
    (present, under_test): (&BTreeSet<String>, &str),
    directory: &Path,
    (uv, interpreter): (&Uv, &Interpreter),
    output: &Output,
) -> Result<Wheelhouse> {
    output.step("resolve", &format!("{} for {target}", lock.path.display()));
    let resolved = uv.resolve_for(&lock.path, &target.version_text(), &target.platform_for_uv())?;
    let (wanted, expects) = without_present(&resolved, present, under_test);
    let house = directory.join("wheelhouse");
    fs::create_dir_all(&house)?;
    if !wanted.trim().is_empty() {
        let requirements = directory.join("requirements.txt");
        fs::write(&requirements, &wanted)?;
        output.step("download", &format!("{} wheels", requirement_blocks(&wanted).len()));
        download(&requirements, target, &house, directory, (uv, interpreter))?;
    }
    let mut wheels =
        fs::read_dir(&house)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    wheels.sort();
    Ok(Wheelhouse { wheels, expects })
}

fn download(
    requirements: &Path,
    target: &Target,
    house: &Path,
    scratch: &Path,
    (uv, interpreter): (&Uv, &Interpreter),
) -> Result<()> {
    if uv.is_offline() {
        return Err(Failure::machine("the wheels of a bundle are downloaded, and --offline forbids it")
            .remedy("run the command without --offline")
            .into());
    }
    let mut process = uv::pip(interpreter, scratch)?
        .args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"])
        .args(["--only-binary", ":all:", "--implementation", "cp"])
        .args(["--python-version", &target.version_text(), "--abi", &target.abi()]);
    for tag in target.platform_tags() {
        process = process.args(["--platform", &tag]);
    }
    let finished = process.arg("--dest").arg(house).arg("--requirement").arg(requirements).capture()?;
    if finished.status.success() {
        return Ok(());
    }
    let message = format!("pip could not download the wheels of the tests' requirements for {target}");
    let is_mistake = finished.stderr.contains("No matching distribution");
    let failure = if is_mistake { Failure::usage(message) } else { Failure::machine(message) };
    Err(failure
        .details(finished.tail(8))
        .remedy("a requirement without a wheel for the target cannot be in a bundle: have it installed there, and name it in --exclude-present")
        .into())
}

/// The requirements of a lock, each with its hashes.
fn requirement_blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match blocks.last_mut() {
            Some(block) if line.starts_with(char::is_whitespace) => {
                block.push('\n');
                block.push_str(line);
            }
            _ => blocks.push(line.to_owned()),
        }
    }
    blocks
}

/// The requirements that are not present, and the names of those that are.
fn without_present(resolved: &str, present: &BTreeSet<String>, under_test: &str) -> (String, Vec<String>) {
    let under_test = requirement_name(under_test);
    let mut blocks = requirement_blocks(resolved);
    blocks.retain(|block| requirement_name(block) != under_test);
    let (left_out, wanted): (Vec<String>, Vec<String>) =
        blocks.into_iter().partition(|block| present.contains(&requirement_name(block)));
    let mut expects: Vec<String> = left_out.iter().map(|block| requirement_name(block)).collect();
    expects.sort();
    (wanted.into_iter().map(|block| block + "\n").collect(), expects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_are_present_are_left_out_with_their_hashes() {
        let lock = "# head\na==1 \\\n    --hash=sha256:00\nMy.Pkg==0.1 \\\n    --hash=sha256:04\nNum.Py==2 ; x \\\n    --hash=sha256:01 \\\n    --hash=sha256:02\nc==3\n";
        let present = present_packages("num_py, torch").unwrap();
        let (wanted, expects) = without_present(lock, &present, "my_pkg");
        assert_eq!(wanted, "a==1 \\\n    --hash=sha256:00\nc==3\n");
        assert_eq!(expects, ["num-py"]);
    }

    #[test]
    fn lists_are_names_or_files_of_pip() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("freeze.txt", "# made by pip\nnumpy==2.4.6\ntorch @ file:///x.whl\n"),
            ("list.txt", "Package Version\n------- -------\nnumpy   2.4.6\ntorch   2.9\n"),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            let found: Vec<String> = present_packages(path.to_str().unwrap()).unwrap().into_iter().collect();
            assert_eq!(found, ["numpy", "torch"], "{name}");
        }
        assert!(present_packages(" , ").is_err());
    }
}
