//! Images that were compiled before, as files under the hashes of what they were made from.
//!
//! A file appears by rename and carries a hash of its content, so processes and threads share a directory without locks, and
//! what a crash or a full disk left is as good as absent. Nothing here can fail: what cannot be kept is compiled again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::Compiled;
use super::find::variable;
use crate::launch::Image;

/// The directory of all that cuwheel keeps.
const DIRECTORY_VARIABLE: &str = "CUWHEEL_CACHE_DIR";
/// The most MiB of images; with 0 nothing is kept or looked for.
const SIZE_VARIABLE: &str = "CUWHEEL_KERNEL_CACHE_MIB";
const USUAL_MIB: u64 = 1024;
const MIB: u64 = 1024 * 1024;

const MAGIC: &[u8] = b"cuwheel kernel 1\n";
const SUFFIX: &str = "kernel";
const UNFINISHED_SUFFIX: &str = "part";

/// Uses are noted no more often than this.
const NOTED_EVERY: Duration = Duration::from_hours(1);
/// What is unfinished for so long is nobody's work any more.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// A directory of images, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    directory: Option<PathBuf>,
    most_bytes: u64,
}

impl Cache {
    /// Nothing is kept, nor looked for.
    pub const fn off() -> Self {
        Self { directory: None, most_bytes: 0 }
    }

    /// Images in a directory, of so many bytes together. It is made when it is needed.
    pub fn at(directory: &Path, most_bytes: u64) -> Self {
        Self { directory: Some(directory.to_path_buf()), most_bytes }
    }

    /// The directory `kernels` in `CUWHEEL_CACHE_DIR`, `$XDG_CACHE_HOME/cuwheel` or `~/.cache/cuwheel`, of at most
    /// `CUWHEEL_KERNEL_CACHE_MIB` MiB. Off without a home, and where the size is 0 or no number.
    pub fn from_environment() -> Self {
        let size = match variable(SIZE_VARIABLE) {
            Some(text) => text.to_str().and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0),
            None => USUAL_MIB,
        };
        // Both say "absolute", and what is meant by another path would depend on the current directory.
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = variable(DIRECTORY_VARIABLE)
            .map(PathBuf::from)
            .or_else(|| absolute("XDG_CACHE_HOME").map(|base| base.join("cuwheel")))
            .or_else(|| absolute("HOME").map(|home| home.join(".cache/cuwheel")));
        match root {
            Some(root) if size > 0 => Self::at(&root.join("kernels"), size.saturating_mul(MIB)),
            _ => Self::off(),
        }
    }

    /// Whether anything is kept.
    pub fn is_on(&self) -> bool {
        self.directory.is_some()
    }

    /// What is kept under a key.
    pub(super) fn get(&self, key: &[u8; 32]) -> Option<Compiled> {
        let path = self.path(key)?;
        let mut compiled = None;
        if let Ok(bytes) = fs::read(&path) {
            compiled = decode(&bytes);
            if compiled.is_none() {
                // Broken: it would be read again and again.
                let _ = fs::remove_file(&path);
            }
        }
        if compiled.is_some() {
            let _ = note_use(&path);
        }
        compiled
    }

    /// Keeps something, if that can be done.
    pub(super) fn put(&self, key: &[u8; 32], compiled: &Compiled) {
        let (Some(directory), Some(path)) = (&self.directory, self.path(key)) else { return };
        let bytes = encode(compiled);
        if bytes.len() as u64 > self.most_bytes
            || DirBuilder::new().recursive(true).mode(0o700).create(directory).is_err()
        {
            return;
        }
        let unfinished = directory.join(unfinished_name());
        let written = write(&unfinished, &bytes).and_then(|()| fs::rename(&unfinished, &path));
        match written {
            Ok(()) => self.prune(directory),
            Err(_) => {
                let _ = fs::remove_file(&unfinished);
            }
        }
    }

    fn path(&self, key: &[u8; 32]) -> Option<PathBuf> {
        let name: String = key.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hexadecimal).collect();
        self.directory.as_ref().map(|directory| directory.join(name).with_extension(SUFFIX))
    }

    /// Removes what was not used for the longest time, until there is some room again.
    fn prune(&self, directory: &Path) {
        let now = SystemTime::now();
        let Ok(entries) = fs::read_dir(directory) else { return };
        let mut kept = Vec::new();
        let mut total = 0;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let suffix = path.extension().and_then(|suffix| suffix.to_str()).map(str::to_owned);
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let Ok(used) = metadata.modified() else { continue };
            match suffix.as_deref() {
                Some(SUFFIX) => {
                    total += metadata.len();
                    kept.push((used, metadata.len(), path));
                }
                Some(UNFINISHED_SUFFIX) if now.duration_since(used).is_ok_and(|age| age > ABANDONED_AFTER) => {
                    let _ = fs::remove_file(&path);
                }
                _ => {}
            }
        }
        if total <= self.most_bytes {
            return;
        }
        kept.sort();
        for (_, size, path) in kept {
            if total <= self.most_bytes / 4 * 3 {
                break;
            }
            // Another process may have been first.
            let _ = fs::remove_file(&path);
            total -= size;
        }
    }
}

fn hexadecimal(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or('0')
}

/// A name that no other thread or process uses.
fn unfinished_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Processes of other machines or containers may have the same number.
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{}-{count}-{time}.{UNFINISHED_SUFFIX}", std::process::id())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Sets the time of the file, which tells what was not used for long.
fn note_use(path: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    let used = fs::metadata(path)?.modified()?;
    if now.duration_since(used).is_ok_and(|age| age > NOTED_EVERY) {
        File::options().append(true).open(path)?.set_modified(now)?;
    }
    Ok(())
}

/// The magic, the hash of the rest, and the fields, each after its length.
fn encode(compiled: &Compiled) -> Vec<u8> {
    let mut body = Vec::new();
    let mut add = |field: &[u8]| {
        body.extend((field.len() as u64).to_le_bytes());
        body.extend(field);
    };
    add(compiled.image.bytes());
    add(compiled.log.as_bytes());
    for (name, lowered) in &compiled.names {
        add(name.as_bytes());
        add(lowered.as_bytes());
    }
    let hash: [u8; 32] = Sha256::digest(&body).into();
    [MAGIC, &hash, &body].concat()
}

fn decode(bytes: &[u8]) -> Option<Compiled> {
    let (hash, mut body) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
    if <[u8; 32]>::from(Sha256::digest(body)) != *hash {
        return None;
    }
    let mut fields = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<8>() {
        let (field, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        fields.push(field);
        body = rest;
    }
    let text = |field: &[u8]| Some(std::str::from_utf8(field).ok()?.to_owned());
    let [image, log, names @ ..] = fields.as_slice() else { return None };
    let names = names.chunks(2).map(|pair| Some((text(pair.first()?)?, text(pair.get(1)?)?)));
    Some(Compiled { image: Image::new(image).ok()?, names: names.collect::<Option<_>>()?, log: text(log)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(comment: &str) -> Compiled {
        let image = Image::new(format!("// {comment}\n.version 8.0\n").as_bytes()).unwrap();
        let names = vec![("k<float>".to_owned(), "_Z1kIfEvv".to_owned())];
        Compiled { image, names, log: "warning: ä".to_owned() }
    }

    fn files(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn what_is_put_is_got_and_what_is_broken_is_as_good_as_absent() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("not yet there");
        let cache = Cache::at(&directory, MIB);
        let key = [7; 32];
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &compiled("a"));
        assert_eq!(cache.get(&key), Some(compiled("a")));
        assert_eq!((cache.get(&[8; 32]), files(&directory)), (None, 1));
        let path = cache.path(&key).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(cache.get(&key), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert_eq!(cache.get(&key), None, "{at}");
        }
        assert_eq!(files(&directory), 0);
        cache.put(&key, &compiled("b"));
        assert_eq!(cache.get(&key), Some(compiled("b")));
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let root = tempfile::tempdir().unwrap();
        let size = encode(&compiled("a")).len() as u64;
        let cache = Cache::at(root.path(), 4 * size);
        let age = |key: u8, hours: u64| {
            let file = File::options().append(true).open(cache.path(&[key; 32]).unwrap()).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        };
        for key in 1..=4 {
            cache.put(&[key; 32], &compiled("a"));
            age(key, 10 - u64::from(key));
        }
        // A use counts, however old the file is.
        assert!(cache.get(&[1; 32]).is_some());
        fs::write(root.path().join("1-2-3.part"), "left by a process that was killed").unwrap();
        cache.put(&[5; 32], &compiled("a"));
        let left: Vec<u8> = (1..=5).filter(|key| cache.get(&[*key; 32]).is_some()).collect();
        assert_eq!(left, [1, 4, 5]);
        let too_large = compiled(&"a".repeat(4 * usize::try_from(size).unwrap()));
        cache.put(&[6; 32], &too_large);
        assert!(cache.get(&[6; 32]).is_none());
    }

    #[test]
    fn nothing_fails_where_nothing_can_be_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for directory in [file.path(), Path::new("/proc/cuwheel"), Path::new("/dev/full/x")] {
            let cache = Cache::at(directory, MIB);
            cache.put(&[1; 32], &compiled("a"));
            assert_eq!(cache.get(&[1; 32]), None);
        }
        assert_eq!(Cache::off().get(&[1; 32]), None);
    }

    #[test]
    fn threads_share_a_directory() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path(), MIB);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..50_u8 {
                        cache.put(&[round % 3; 32], &compiled(if thread % 2 == 0 { "a" } else { "b" }));
                        let found = cache.get(&[round % 3; 32]).expect("it was put, and a rename replaces it at once");
                        assert!([compiled("a"), compiled("b")].contains(&found));
                    }
                });
            }
        });
        assert_eq!(files(root.path()), 3);
    }
}
