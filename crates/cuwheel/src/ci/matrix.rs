//! `ci/matrix.yml`: versions, runners and rows of the workflows, read and checked; and the one that a project starts with.
//!
//! The file is its user's. GitHub Actions read it when they run, so only its form is checked here; what is rendered for
//! other systems is made of its rows.

use serde::Serialize;

use super::render::{Limited, Subject};
use super::yaml::{self, Node};
use crate::error::{Failure, Result};

/// Where the file is.
pub const PATH: &str = "ci/matrix.yml";

/// The newest CPython that workflows are made for.
const NEWEST: (u8, u8) = (3, 14);
/// The oldest whose free-threaded build packages are made for.
const FREE_THREADED: &str = "3.14t";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Matrix {
    /// The runner of jobs that are no rows.
    pub runner: String,
    /// Their Python.
    pub python: String,
    /// The Rust toolchain of every job.
    pub rust: String,
    /// Wheels.
    pub build: Vec<Build>,
    /// Tests without a GPU.
    pub test: Vec<Test>,
    /// Tests on GPUs.
    pub gpu: Vec<Gpu>,
}

/// A wheel that is built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Build {
    /// `amd64` or `arm64`.
    pub arch: String,
    /// The label of the runner.
    pub runner: String,
    /// Such as `3.11`, or `3.14t`.
    pub python: String,
    /// Whether it is for newer Pythons as well.
    pub abi3: bool,
    /// Whether the sdist is made as well.
    pub sdist: bool,
}

/// A run of the tests that need no GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Test {
    /// As of [`Build`].
    pub arch: String,
    /// The label of the runner.
    pub runner: String,
    /// The Python.
    pub python: String,
    /// `locked` or `newest`.
    pub dependencies: String,
    /// Whether it waits for the night.
    pub nightly: bool,
}

/// A run of the tests that need a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// As of [`Build`].
    pub arch: String,
    /// The Python.
    pub python: String,
    /// Such as `l4`.
    pub gpu: String,
    /// Such as `latest`.
    pub driver: String,
    /// How many devices.
    pub count: u8,
    /// Whether it waits for the night.
    pub nightly: bool,
}

impl Matrix {
    /// What a project starts with.
    pub fn of(subject: &Subject) -> Self {
        let oldest = subject.python_floor.unwrap_or((3, 11)).min(NEWEST);
        let name = |(major, minor): (u8, u8)| format!("{major}.{minor}");
        let newest = name(NEWEST);
        let has_threaded = subject.limited != Limited::Always;
        let pythons: Vec<String> = match subject.limited {
            Limited::No => (oldest.1..=NEWEST.1).map(|minor| name((3, minor))).collect(),
            Limited::Optional | Limited::Always => vec![name(oldest)],
        };
        let abi3 = subject.limited != Limited::No;
        let mut build = Vec::new();
        for arch in ["amd64", "arm64"] {
            for python in &pythons {
                build.push(Build::new(arch, python, abi3, build.is_empty()));
            }
        }
        if has_threaded {
            build.push(Build::new("amd64", FREE_THREADED, false, false));
        }
        let mut test = vec![
            Test::new("amd64", &newest, "locked", false),
            Test::new("amd64", &newest, "newest", true),
            Test::new("arm64", &newest, "locked", false),
        ];
        if has_threaded {
            test.push(Test::new("amd64", FREE_THREADED, "locked", false));
        }
        let oldest = name(oldest);
        let mut gpu = vec![
            Gpu::new("amd64", &newest, ("l4", "latest", 1), false),
            Gpu::new("amd64", &oldest, ("l4", "earliest", 1), false),
            Gpu::new("amd64", &newest, ("h100", "latest", 2), true),
            Gpu::new("arm64", &newest, ("a100", "latest", 1), false),
        ];
        if has_threaded {
            gpu.push(Gpu::new("amd64", FREE_THREADED, ("l4", "latest", 1), true));
        }
        let runner = runner("amd64").to_owned();
        Self { runner, python: newest, rust: subject.rust.clone(), build, test, gpu }
    }

    /// Reads and checks the text of the file.
    pub fn parse(text: &str, needs_gpu: bool) -> Result<Self> {
        let root = yaml::parse(text).map_err(|error| mistake(error.line, &error.message))?;
        let root = root.ok_or_else(|| mistake(1, "the file is empty"))?;
        known(&root, &["runner", "python", "rust", "build", "test", "gpu"])?;
        let matrix = Self {
            runner: Row(&root).text("runner")?,
            python: Row(&root).python("python")?,
            rust: Row(&root).text("rust")?,
            build: rows(&root, "build", true, Build::read)?,
            test: rows(&root, "test", true, Test::read)?,
            gpu: rows(&root, "gpu", needs_gpu, Gpu::read)?,
        };
        for (arch, python) in matrix.tested() {
            if matrix.wheel_for(arch, python).is_none() {
                return Err(mistake(
                    root.line,
                    &format!("no row of build makes a wheel for {arch} and Python {python}"),
                ));
            }
        }
        Ok(matrix)
    }

    /// Processors and Pythons that tests run on.
    fn tested(&self) -> impl Iterator<Item = (&str, &str)> {
        let test = self.test.iter().map(|row| (row.arch.as_str(), row.python.as_str()));
        test.chain(self.gpu.iter().map(|row| (row.arch.as_str(), row.python.as_str())))
    }

    /// The Python of the row whose wheel a Python gets: its own, or one for newer Pythons as well.
    pub fn wheel_for(&self, arch: &str, python: &str) -> Option<&str> {
        let of_arch = || self.build.iter().filter(|row| row.arch == arch);
        let own = of_arch().find(|row| row.python == python);
        let is_limited = |row: &&Build| row.abi3 && minor(&row.python) <= minor(python);
        let found = own.or_else(|| of_arch().find(is_limited).filter(|_| !python.ends_with('t')));
        found.map(|row| row.python.as_str())
    }

    /// Pythons of GPU tests that a row of `build` has the wheel for.
    pub fn bundles(&self, build: &Build) -> Vec<&str> {
        let is_of =
            |row: &&Gpu| row.arch == build.arch && self.wheel_for(&row.arch, &row.python) == Some(&build.python);
        let mut pythons: Vec<&str> = self.gpu.iter().filter(is_of).map(|row| row.python.as_str()).collect();
        pythons.sort_unstable();
        pythons.dedup();
        pythons
    }
}

/// The minor version of a Python of a row.
fn minor(python: &str) -> u8 {
    python.trim_end_matches('t').split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

/// The runners that GitHub lends for a processor.
fn runner(arch: &str) -> &'static str {
    if arch == "arm64" { "ubuntu-24.04-arm" } else { "ubuntu-24.04" }
}

impl Build {
    fn new(arch: &str, python: &str, abi3: bool, sdist: bool) -> Self {
        Self { arch: arch.to_owned(), runner: runner(arch).to_owned(), python: python.to_owned(), abi3, sdist }
    }

    fn read(row: Row<'_>) -> Result<Self> {
        known(row.0, &["arch", "runner", "python", "abi3", "sdist"])?;
        Ok(Self {
            arch: row.one_of("arch", &["amd64", "arm64"])?,
            runner: row.text("runner")?,
            python: row.python("python")?,
            abi3: row.flag("abi3")?,
            sdist: row.flag("sdist")?,
        })
    }
}

impl Test {
    fn new(arch: &str, python: &str, dependencies: &str, nightly: bool) -> Self {
        let (runner, dependencies) = (runner(arch).to_owned(), dependencies.to_owned());
        Self { arch: arch.to_owned(), runner, python: python.to_owned(), dependencies, nightly }
    }

    fn read(row: Row<'_>) -> Result<Self> {
        known(row.0, &["arch", "runner", "python", "dependencies", "nightly"])?;
        Ok(Self {
            arch: row.one_of("arch", &["amd64", "arm64"])?,
            runner: row.text("runner")?,
            python: row.python("python")?,
            dependencies: row.one_of("dependencies", &["locked", "newest"])?,
            nightly: row.flag("nightly")?,
        })
    }
}

impl Gpu {
    fn new(arch: &str, python: &str, (gpu, driver, count): (&str, &str, u8), nightly: bool) -> Self {
        let (gpu, driver) = (gpu.to_owned(), driver.to_owned());
        Self { arch: arch.to_owned(), python: python.to_owned(), gpu, driver, count, nightly }
    }

    fn read(row: Row<'_>) -> Result<Self> {
        known(row.0, &["arch", "python", "gpu", "driver", "count", "nightly"])?;
        let count = row.text("count")?;
        Ok(Self {
            arch: row.one_of("arch", &["amd64", "arm64"])?,
            python: row.python("python")?,
            gpu: row.text("gpu")?,
            driver: row.text("driver")?,
            count: count.parse().ok().filter(|count| *count > 0).ok_or_else(|| row.wrong("count", &count))?,
            nightly: row.flag("nightly")?,
        })
    }
}

fn mistake(line: usize, what: &str) -> anyhow::Error {
    Failure::usage(format!("{PATH}:{line}: {what}"))
        .remedy("correct the file; without it, `ci render` writes one to start from")
        .into()
}

fn known(node: &Node, keys: &[&str]) -> Result<()> {
    if node.entries().is_empty() {
        return Err(mistake(node.line, "this is not a mapping"));
    }
    for (key, _) in node.entries() {
        let name = key.text().unwrap_or_default();
        if !keys.contains(&name) {
            let near = crate::settings::nearest(name, keys).map(|near| format!(": did you mean {near}?"));
            return Err(mistake(key.line, &format!("`{name}` is not known here{}", near.unwrap_or_default())));
        }
    }
    Ok(())
}

fn rows<T>(root: &Node, key: &str, is_needed: bool, read: fn(Row<'_>) -> Result<T>) -> Result<Vec<T>> {
    let items = root.get(key).map(|list| list.items()).unwrap_or_default();
    if items.is_empty() && is_needed {
        return Err(mistake(root.get(key).map_or(root.line, |list| list.line), &format!("`{key}` has no rows")));
    }
    items.iter().map(|row| read(Row(row))).collect()
}

/// A mapping whose values are asked for by name.
#[derive(Clone, Copy)]
struct Row<'node>(&'node Node);

impl Row<'_> {
    fn text(self, key: &str) -> Result<String> {
        let text = self.0.text_of(key).filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| mistake(self.0.line, &format!("`{key}` is missing")))
    }

    fn wrong(self, key: &str, text: &str) -> anyhow::Error {
        let line = self.0.get(key).map_or(self.0.line, |value| value.line);
        mistake(line, &format!("`{key}` cannot be {text}"))
    }

    fn one_of(self, key: &str, words: &[&str]) -> Result<String> {
        let text = self.text(key)?;
        if words.contains(&text.as_str()) { Ok(text) } else { Err(self.wrong(key, &text)) }
    }

    fn flag(self, key: &str) -> Result<bool> {
        match self.0.text_of(key) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(self.wrong(key, other)),
        }
    }

    /// A version without quotes is a number to others: 3.10 would be 3.1.
    fn python(self, key: &str) -> Result<String> {
        let text = self.text(key)?;
        let is_plain = matches!(self.0.get(key).map(|node| &node.value), Some(yaml::Value::Text(_, true)));
        let parts = text.strip_suffix('t').unwrap_or(&text).split_once('.');
        let is_version = parts.is_some_and(|(major, minor)| major == "3" && minor.parse::<u8>().is_ok());
        if !is_version {
            return Err(self.wrong(key, &text));
        }
        if is_plain {
            return Err(mistake(self.0.line, &format!("`{key}` needs quotes: {text} is a number without them")));
        }
        Ok(text)
    }
}
