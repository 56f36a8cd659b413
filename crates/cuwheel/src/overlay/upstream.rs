//! The released wheel that an overlay starts from: named by version or by path, fetched once, held to its hash.
//!
//! Not for judging what is in it: see [`super::compose`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cuwheel_inspect::wheel::{Tag, WheelName, normalize_distribution};
use fs_err as fs;
use pep440_rs::Version;
use serde::{Deserialize, Serialize};
use toml_edit::DocumentMut;

use crate::cache::Cache;
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::Interpreter;
use crate::lock_file::FileLock;
use crate::output::Output;
use crate::uv::{self, Uv};

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `numba-cuda==0.30.4`: one release, from the index.
    Release {
        /// The distribution, in normal form.
        distribution: String,
        /// The version.
        version: Version,
    },
    /// A wheel that is already here.
    File {
        /// Where it is.
        path: PathBuf,
        /// The distribution in its name, in normal form.
        distribution: String,
        /// The version in its name.
        version: Version,
    },
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        let is_wheel = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("whl"));
        if is_wheel {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let name: WheelName = file.parse().map_err(|error| format!("{error}"))?;
            let version = name.version().parse().map_err(|error| format!("{error}"))?;
            let distribution = normalize_distribution(name.distribution());
            return Ok(Self::File { path: path.to_path_buf(), distribution, version });
        }
        let Some((distribution, version)) = text.split_once("==") else {
            return Err("give one release, such as numba-cuda==0.30.4, or the path of a wheel".to_owned());
        };
        let (distribution, version) = (distribution.trim(), version.trim());
        let is_name = !distribution.is_empty()
            && distribution.chars().all(|character| character.is_ascii_alphanumeric() || "._-".contains(character));
        if !is_name {
            return Err(format!("`{distribution}` is no name of a distribution: give it without extras and markers"));
        }
        let version = version
            .parse()
            .map_err(|_| format!("`{version}` is no exact version: give one, such as numba-cuda==0.30.4"))?;
        Ok(Self::Release { distribution: normalize_distribution(distribution), version })
    }
}

impl Wanted {
    /// The distribution, in normal form.
    pub fn distribution(&self) -> &str {
        match self {
            Self::Release { distribution, .. } | Self::File { distribution, .. } => distribution,
        }
    }

    /// The version.
    pub const fn version(&self) -> &Version {
        match self {
            Self::Release { version, .. } | Self::File { version, .. } => version,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release { version, .. } => write!(formatter, "{}=={version}", self.distribution()),
            Self::File { path, .. } => path.display().fmt(formatter),
        }
    }
}

/// A released wheel on this machine.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Where it is.
    pub path: PathBuf,
    /// The SHA-256 that it has, and that its index gave.
    pub sha256: String,
}

/// What is remembered of a wheel in the cache.
#[derive(Deserialize, Serialize)]
struct Note {
    url: String,
    sha256: String,
}

/// A wheel that an index offers.
struct Offered {
    file: String,
    url: String,
    sha256: String,
}

/// Where releases are kept in the cache, for an interpreter that can load them.
#[derive(Debug)]
pub struct Store<'a> {
    cache: &'a Cache,
    interpreter: &'a Interpreter,
}

impl<'a> Store<'a> {
    /// The store for an interpreter.
    pub const fn new(cache: &'a Cache, interpreter: &'a Interpreter) -> Self {
        Self { cache, interpreter }
    }

    fn directory(&self, wanted: &Wanted) -> PathBuf {
        self.cache.path("upstream").join(format!("{}-{}", wanted.distribution(), wanted.version()))
    }

    /// The wheel in the cache, if it is there and still the one that was fetched.
    pub fn find(&self, wanted: &Wanted) -> Option<Upstream> {
        let entries = std::fs::read_dir(self.directory(wanted)).ok()?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.into_iter().find_map(|path| {
            let name: WheelName = path.file_name()?.to_str()?.parse().ok()?;
            let note: Note = serde_json::from_slice(&std::fs::read(note_of(&path)).ok()?).ok()?;
            let is_it = fits(&name, self.interpreter) && files::sha256_of_file(&path).ok()? == note.sha256;
            is_it.then_some(Upstream { path, sha256: note.sha256 })
        })
    }

    /// The wheel, fetched unless it is here. With `expected` it has to have that SHA-256.
    pub fn get(
        &self,
        wanted: &Wanted,
        expected: Option<&str>,
        uv: &dyn Fn() -> Result<Uv>,
        offline: bool,
        output: &Output,
    ) -> Result<Upstream> {
        let upstream = match wanted {
            Wanted::File { path, .. } => local(path)?,
            Wanted::Release { .. } => match self.find(wanted) {
                Some(found) => found,
                None if offline => return Err(self.not_in_cache(wanted)),
                None => self.fetch(wanted, &uv()?, output)?,
            },
        };
        match expected {
            Some(expected) if !expected.eq_ignore_ascii_case(&upstream.sha256) => Err(wrong_hash(
                &upstream.path,
                expected,
                &upstream.sha256,
                "the command line asks for another wheel: give the hash of this one, or the wheel of that hash",
            )),
            _ => Ok(upstream),
        }
    }

    fn not_in_cache(&self, wanted: &Wanted) -> anyhow::Error {
        Failure::machine(format!(
            "{wanted} for {} is not in the cache, and --offline forbids to fetch it",
            self.interpreter
        ))
        .remedy("run the command once without --offline, or give the path of the wheel")
        .into()
    }

    fn fetch(&self, wanted: &Wanted, uv: &Uv, output: &Output) -> Result<Upstream> {
        let directory = self.directory(wanted);
        fs::create_dir_all(&directory)?;
        let _lock = FileLock::acquire(&directory.join("lock"), "fetching a wheel", output)?;
        if let Some(found) = self.find(wanted) {
            return Ok(found);
        }
        output.step("fetch", &wanted.to_string());
        let offered = self.resolve(wanted, uv)?;
        let scratch = self.cache.scratch("upstream")?;
        let fetched = uv::download_wheel(self.interpreter, &offered.url, scratch.path())?;
        let found = files::sha256_of_file(&fetched)?;
        if found != offered.sha256 {
            return Err(wrong_hash(&fetched, &offered.sha256, &found, "fetch it again; if it stays so, do not use it"));
        }
        let path = directory.join(&offered.file);
        let note = Note { url: offered.url, sha256: offered.sha256 };
        files::copy_atomically(&fetched, &path)?;
        files::write_atomically(&note_of(&path), serde_json::to_string_pretty(&note)?.as_bytes())?;
        Ok(Upstream { path, sha256: note.sha256 })
    }

    /// Asks the index, through uv, which wheel of the release this interpreter loads.
    fn resolve(&self, wanted: &Wanted, uv: &Uv) -> Result<Offered> {
        let lock = uv.wheels_of(&wanted.to_string()).map_err(|error| self.no_wheel(wanted, &error))?;
        let offered = offered(&lock)?;
        let fitting = offered.into_iter().find(|offered| {
            offered.file.parse().is_ok_and(|name| fits(&name, self.interpreter)) && !offered.sha256.is_empty()
        });
        fitting.ok_or_else(|| {
            let failure = Failure::usage(format!("the index gives no wheel of {wanted} with a SHA-256"));
            failure.detail(lock.trim()).remedy("use an index that gives hashes, or the path of a wheel").into()
        })
    }

    fn no_wheel(&self, wanted: &Wanted, error: &anyhow::Error) -> anyhow::Error {
        let Some(failure) = error.downcast_ref::<Failure>() else {
            return Failure::machine(format!("{error:#}")).into();
        };
        if failure.kind() != crate::error::FailureKind::Usage {
            return failure.clone().into();
        }
        let machine = self.interpreter.machine();
        let message = format!("there is no wheel of {wanted} for {} on {machine}", self.interpreter);
        Failure::usage(message)
            .details(failure.evidence().iter().cloned())
            .remedy("name a release that exists, or with --python an interpreter that it has a wheel for")
            .into()
    }
}

fn note_of(wheel: &Path) -> PathBuf {
    wheel.with_extension("json")
}

fn local(path: &Path) -> Result<Upstream> {
    if !path.is_file() {
        return Err(Failure::usage(format!("{} does not exist", path.display()))
            .remedy("give the path of a wheel, or a release such as numba-cuda==0.30.4")
            .into());
    }
    Ok(Upstream { path: files::absolute(path)?, sha256: files::sha256_of_file(path)? })
}

fn wrong_hash(path: &Path, expected: &str, found: &str, remedy: &str) -> anyhow::Error {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Failure::failed(format!("{file} is not the wheel that was asked for"))
        .detail(format!("expected sha256 {expected}"))
        .detail(format!("found    sha256 {found}"))
        .remedy(remedy)
        .into()
}

/// The wheels in a lock of the form pylock.toml (PEP 751).
fn offered(lock: &str) -> Result<Vec<Offered>> {
    let unreadable = |detail: String| {
        Failure::machine("uv wrote a lock that cannot be read")
            .detail(detail)
            .remedy("use a newer uv, or the path of a wheel")
    };
    let document: DocumentMut = lock.parse().map_err(|error| unreadable(format!("{error}")))?;
    let packages = document.get("packages").and_then(|packages| packages.as_array_of_tables());
    let wheels = packages
        .into_iter()
        .flatten()
        .filter_map(|package| package.get("wheels")?.as_array())
        .flatten()
        .filter_map(|wheel| wheel.as_inline_table());
    Ok(wheels
        .filter_map(|wheel| {
            let text = |key: &str| wheel.get(key).and_then(|value| value.as_str());
            let url = text("url")?;
            let file = text("name").unwrap_or_else(|| url.rsplit('/').next().unwrap_or(url));
            let hashes = wheel.get("hashes").and_then(|hashes| hashes.as_inline_table());
            let sha256 = hashes.and_then(|hashes| hashes.get("sha256")?.as_str()).unwrap_or_default();
            // A URL has the plus sign of a local version in its own spelling.
            Some(Offered { file: file.replace("%2B", "+"), url: url.to_owned(), sha256: sha256.to_owned() })
        })
        .collect())
}

/// Whether an interpreter on Linux loads the wheel, whatever its glibc: the files that need one are replaced.
pub fn fits(name: &WheelName, interpreter: &Interpreter) -> bool {
    let (major, minor) = interpreter.minor_version();
    let specific = interpreter.specific_tag();
    let is_python = |tag: &Tag| {
        let floor = tag.python().strip_prefix(&format!("cp{major}")).and_then(|minor| minor.parse::<u8>().ok());
        format!("{}-{}", tag.python(), tag.abi()) == specific
            || (tag.abi() == "abi3" && !interpreter.gil_disabled && floor.is_some_and(|floor| floor <= minor))
            || (tag.abi() == "none" && tag.python() == format!("py{major}"))
    };
    name.tags().iter().any(|tag| is_python(tag) && is_for_machine(tag.platform(), interpreter.machine()))
}

/// Whether a platform tag is for Linux with glibc on a processor, or for any machine.
pub fn is_for_machine(platform: &str, machine: &str) -> bool {
    platform == "any"
        || (["linux", "manylinux"].iter().any(|prefix| platform.starts_with(prefix)) && platform.ends_with(machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_or_a_path_is_named() {
        let shown = |text: &str| {
            let parts = |wanted: Wanted| (wanted.distribution().to_owned(), wanted.version().to_string());
            text.parse().map(parts)
        };
        let parts = |name: &str, version: &str| Ok((name.to_owned(), version.to_owned()));
        assert_eq!(shown("Numba_CUDA == 0.30.4"), parts("numba-cuda", "0.30.4"));
        assert_eq!(shown("/a b/numba_cuda-0.22.2-cp311-cp311-linux_x86_64.whl"), parts("numba-cuda", "0.22.2"));
        for (text, message) in [
            ("numba-cuda", "give one release, such as numba-cuda==0.30.4, or the path of a wheel"),
            ("numba-cuda>=0.30", "give one release, such as numba-cuda==0.30.4, or the path of a wheel"),
            ("numba-cuda==0.30.*", "`0.30.*` is no exact version: give one, such as numba-cuda==0.30.4"),
            (
                "numba-cuda[cu13]==1",
                "`numba-cuda[cu13]` is no name of a distribution: give it without extras and markers",
            ),
        ] {
            assert_eq!(shown(text), Err(message.to_owned()), "{text}");
        }
        assert!(shown("x.whl").unwrap_err().contains("has 1 parts"));
    }

    #[test]
    fn offers_are_read_from_a_lock() {
        let lock = "lock-version = '1.0'\n[[packages]]\nname = 'p'\nversion = '1'\nwheels = [\n\
            { url = 'https://h/p-1%2Bcu-py3-none-any.whl', size = 3, hashes = { sha256 = 'ab' } },\n\
            { name = 'p-1-py3-none-any.whl', url = 'https://h/x?y', hashes = { md5 = 'cd' } },\n]\n";
        let found = offered(lock).unwrap();
        let shown: Vec<_> = found.iter().map(|offered| (&*offered.file, &*offered.sha256)).collect();
        assert_eq!(shown, [("p-1+cu-py3-none-any.whl", "ab"), ("p-1-py3-none-any.whl", "")]);
        assert!(offered("no lock").is_err());
    }

    #[test]
    fn a_wheel_fits_the_interpreters_of_its_tags() {
        let interpreter = |minor: u8, gil_disabled: bool| Interpreter {
            implementation: "cpython".into(),
            version: (3, minor, 1),
            release_level: "final".into(),
            abi: String::new(),
            gil_disabled,
            platform: "linux-x86_64".into(),
            base_executable: PathBuf::new(),
            base_prefix: PathBuf::new(),
            include: PathBuf::new(),
            has_headers: false,
        };
        for (tags, minor, free_threaded, expected) in [
            ("cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64", 11, false, true),
            ("cp311-cp311-manylinux_2_24_aarch64", 11, false, false),
            ("cp311-cp311-win_amd64", 11, false, false),
            ("cp311-cp311-musllinux_1_2_x86_64", 11, false, false),
            ("cp312-cp312-linux_x86_64", 11, false, false),
            ("cp311-abi3-linux_x86_64", 14, false, true),
            ("cp311-abi3-linux_x86_64", 14, true, false),
            ("cp312-abi3-linux_x86_64", 11, false, false),
            ("cp314-cp314t-linux_x86_64", 14, true, true),
            ("cp314-cp314-linux_x86_64", 14, true, false),
            ("py3-none-any", 12, false, true),
        ] {
            let name = format!("p-1-{tags}.whl").parse().unwrap();
            assert_eq!(fits(&name, &interpreter(minor, free_threaded)), expected, "{tags} on 3.{minor}");
        }
    }
}
