//! Source distributions: what they hold, how they unpack, and what is refused.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::digest::Sha256Digest;
use cuwheel_inspect::sdist::{Sdist, SdistEntryKind, SdistFault};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use tempfile::TempDir;

/// A tar archive whose names are not checked while it is written.
#[derive(Default)]
struct Tar(Vec<u8>);

impl Tar {
    fn entry(mut self, kind: EntryType, name: &[u8], link: &[u8], contents: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(if name.ends_with(b".sh") || kind == EntryType::Directory { 0o755 } else { 0o644 });
        header.set_size(contents.len() as u64);
        let fields = header.as_old_mut();
        fields.name[..name.len()].copy_from_slice(name);
        fields.linkname[..link.len()].copy_from_slice(link);
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self.0.extend(contents);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, contents: &str) -> Self {
        self.entry(EntryType::Regular, name.as_bytes(), b"", contents.as_bytes())
    }

    fn link(self, kind: EntryType, name: &str, target: &str) -> Self {
        self.entry(kind, name.as_bytes(), target.as_bytes(), b"")
    }

    /// Writes `demo-1.0.tar.gz` into a new directory.
    fn write(mut self) -> (TempDir, PathBuf) {
        self.0.resize(self.0.len() + 1024, 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("demo-1.0.tar.gz");
        std::fs::write(&path, gzip(&self.0)).unwrap();
        (directory, path)
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn sound() -> Tar {
    Tar::default()
        .entry(EntryType::XGlobalHeader, b"pax_global_header", b"", b"20 comment=deadbeef\n")
        .entry(EntryType::Directory, b"demo-1.0/", b"", b"")
        .file("demo-1.0/PKG-INFO", "Name: demo\n")
        .file("demo-1.0/tools/build.sh", "echo\n")
        .entry(EntryType::Directory, b"demo-1.0/tools/", b"", b"")
        .link(EntryType::Symlink, "demo-1.0/tools/info", "../PKG-INFO")
        .link(EntryType::Link, "demo-1.0/COPY", "demo-1.0/PKG-INFO")
}

#[test]
fn a_source_distribution_shows_its_entries() {
    let (_directory, path) = sound().write();
    let sdist = Sdist::open(&path).unwrap();
    assert_eq!((sdist.name(), sdist.version(), sdist.top()), ("demo", "1.0", "demo-1.0"));
    let paths: Vec<_> = sdist.entries().iter().map(|entry| (entry.path(), entry.mode(), entry.size_bytes())).collect();
    assert_eq!(
        paths,
        [
            ("PKG-INFO", 0o644, 11),
            ("tools/build.sh", 0o755, 5),
            ("tools", 0o755, 0),
            ("tools/info", 0o644, 0),
            ("COPY", 0o644, 11)
        ]
    );
    let hash = Some(Sha256Digest::of(b"Name: demo\n"));
    assert_eq!(sdist.entry("PKG-INFO").unwrap().sha256(), hash);
    assert_eq!(sdist.entry("COPY").unwrap().sha256(), hash, "a hard link is the file");
    assert_eq!(sdist.entry("tools").unwrap().sha256(), None);
    let link = SdistEntryKind::Symlink { target: "../PKG-INFO".to_owned() };
    assert_eq!(*sdist.entry("tools/info").unwrap().kind(), link);
}

#[test]
fn unpacking_gives_files_modes_and_links() {
    let (directory, path) = sound().write();
    let sdist = Sdist::open(&path).unwrap();
    let top = sdist.unpack_to(&directory.path().join("new/größe x")).unwrap();
    assert_eq!(top, directory.path().join("new/größe x/demo-1.0"));
    let mode = |file: &str| std::fs::metadata(top.join(file)).unwrap().permissions().mode() & 0o111;
    assert_eq!(std::fs::read(top.join("COPY")).unwrap(), b"Name: demo\n");
    assert_eq!(std::fs::read(top.join("tools/info")).unwrap(), b"Name: demo\n");
    assert_ne!(mode("tools/build.sh"), 0);
    assert_eq!(mode("PKG-INFO"), 0);

    let again = sdist.unpack_to(&directory.path().join("new/größe x")).unwrap_err();
    assert!(matches!(again.fault(), SdistFault::Write { .. }), "{again}");
    assert!(top.join("COPY").exists(), "what was there is left alone");
}

#[test]
fn long_names_are_read_in_both_forms() {
    let long = format!("demo-1.0/{}/x.py", "d".repeat(200));
    let pax = format!("{} path={long}\n", long.len() + 10);
    let (directory, path) = Tar::default()
        .entry(EntryType::GNULongName, b"././@LongLink", b"", format!("{long}\0").as_bytes())
        .file("demo-1.0/short", "gnu")
        .entry(EntryType::XHeader, b"pax", b"", pax.replace("x.py", "y.py").as_bytes())
        .file("demo-1.0/short", "pax")
        .write();
    let sdist = Sdist::open(&path).unwrap();
    let below = long.strip_prefix("demo-1.0/").unwrap();
    assert!(sdist.entry(below).is_some() && sdist.entry(&below.replace("x.py", "y.py")).is_some());
    let top = sdist.unpack_to(directory.path()).unwrap();
    assert_eq!(std::fs::read(top.join(below)).unwrap(), b"gnu");
}

#[track_caller]
fn refusal(tar: Tar) -> String {
    let (directory, path) = tar.write();
    let text = Sdist::open(&path).expect_err("a refusal").to_string();
    assert!(text.starts_with(&path.display().to_string()), "{text}");
    drop(directory);
    text
}

#[test]
fn unsafe_names_are_refused() {
    for (name, reason) in [
        (&b"demo-1.0/../evil"[..], "through `..`"),
        (b"../evil", "through `..`"),
        (b"/etc/evil", "the name is absolute"),
        (b"C:/evil", "the name is absolute"),
        (b"demo-1.0\\evil", "a backslash"),
        (b"demo-1.0//evil", "an empty component"),
        (b"./demo-1.0/evil", "an empty component or `.`"),
        (b"demo-1.0/\xff", "is not UTF-8"),
        (b"other/file", "\"other/file\" lies outside the top folder \"demo-1.0\""),
        (b"demo-1.0", "lies outside the top folder"),
        (b"demo-1.0/PKG-INFO", "\"PKG-INFO\" is in the archive twice"),
        (b"demo-1.0/PKG-INFO/below", "or below something that is no directory"),
        (b"demo-1.0/tools", "\"tools\" is in the archive twice"),
        (b"demo-1.0/tools/info/x", "or below something that is no directory"),
    ] {
        let text = refusal(sound().entry(EntryType::Regular, name, b"", b""));
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn links_that_lead_out_are_refused() {
    for (name, target) in [
        ("demo-1.0/link", "../evil"),
        ("demo-1.0/link", ".."),
        ("demo-1.0/tools/link", "../../evil"),
        ("demo-1.0/link", "/etc/passwd"),
        ("demo-1.0/link", ""),
        ("demo-1.0/link", "tools/../../evil"),
        // Through a link, `..` leads elsewhere than the text says.
        ("demo-1.0/link", "tools/info/.."),
    ] {
        let text = refusal(sound().link(EntryType::Symlink, name, target));
        assert!(text.contains("leads out of the top folder or to nothing before it"), "{target}: {text}");
    }
    for target in ["/etc/passwd", "demo-1.0/../x", "demo-1.0/none", "demo-1.0/tools", "PKG-INFO", "demo-1.0/tools/info"]
    {
        let text = refusal(sound().link(EntryType::Link, "demo-1.0/link", target));
        assert!(text.contains("leads out of the top folder or to nothing before it"), "{target}: {text}");
    }
}

#[test]
fn links_within_the_top_folder_are_kept() {
    for target in ["PKG-INFO", "tools/info", "none", "..name"] {
        let (directory, path) = sound().link(EntryType::Symlink, "demo-1.0/link", target).write();
        let top = Sdist::open(&path).unwrap().unpack_to(directory.path()).unwrap();
        assert_eq!(std::fs::read_link(top.join("link")).unwrap(), Path::new(target));
    }
}

#[test]
fn entries_that_no_source_needs_are_refused() {
    let huge_name = vec![b'a'; (1 << 20) + 1];
    for (kind, contents, reason) in [
        (EntryType::Char, &b""[..], "a device"),
        (EntryType::Block, b"", "a device"),
        (EntryType::Fifo, b"", "a pipe"),
        (EntryType::GNUSparse, b"", "a sparse file"),
        (EntryType::new(b'?'), b"", "an entry of an unknown kind"),
        (EntryType::XGlobalHeader, b"10 path=a\n", "a header that renames every entry"),
        (EntryType::GNULongName, &huge_name, "more than 1048576 bytes in a name"),
    ] {
        let text = refusal(sound().entry(kind, b"demo-1.0/odd", b"", contents));
        assert!(text.contains(reason), "{text}");
    }
    for record in ["22 GNU.sparse.major=1\n", "15 size=99999\n"] {
        let record = format!("{} {}", record.len(), record.split_once(' ').unwrap().1);
        let tar = sound().entry(EntryType::XHeader, b"pax", b"", record.as_bytes()).file("demo-1.0/odd", "");
        let text = refusal(tar);
        assert!(text.contains("a sparse file or one of 8 GiB and more"), "{text}");
    }
    assert!(refusal(Tar::default()).contains("the archive is empty"));
}

#[test]
fn file_names_must_name_project_and_version() {
    let directory = tempfile::tempdir().unwrap();
    for (name, reason) in [
        ("demo-1.0.zip", "does not have the form name-version.tar.gz"),
        ("demo.tar.gz", "does not have the form"),
        ("-1.0.tar.gz", "does not have the form"),
        ("demo-latest.tar.gz", "`latest` is not a version"),
        ("demo-1.0.tar.gz", "cannot be read: "),
    ] {
        let text = Sdist::open(&directory.path().join(name)).unwrap_err().to_string();
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn a_damaged_archive_is_refused_and_leaves_nothing_behind() {
    let (directory, path) = sound().file("demo-1.0/last", &"x".repeat(100_000)).write();
    let sdist = Sdist::open(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 20);
    std::fs::write(&path, &bytes).unwrap();
    let error = Sdist::open(&path).unwrap_err();
    assert!(matches!(error.fault(), SdistFault::Read(_)), "{error}");
    let target = directory.path().join("target");
    sdist.unpack_to(&target).unwrap_err();
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);

    // The checksum at the very end is compared too.
    let (_directory, path) = sound().write();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 8;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(Sdist::open(&path).is_err());
}
