//! A directory as one compressed archive, whose bytes depend on nothing but names and contents.

use std::io::{BufReader, BufWriter, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fs_err as fs;
use ruzstd::encoding::{CompressionLevel, compress};

use crate::error::{Failure, Result};
use crate::files;

/// 1980-01-01, the oldest time that every archive format can hold.
const MODIFIED: u64 = 315_532_800;

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.tar.zst`
    Zstandard,
    /// `.tar.gz`, which any machine unpacks.
    Gzip,
}

impl Format {
    /// The format that a file's name asks for.
    pub fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".tar.zst") {
            Ok(Self::Zstandard)
        } else if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
            Ok(Self::Gzip)
        } else {
            Err(Failure::usage(format!("{name} is no name of a bundle"))
                .remedy("let it end in .tar.zst, or in .tar.gz for a machine without zstd")
                .into())
        }
    }
}

/// Writes everything under `directory` into the archive at `path`, below the directory `top`.
pub fn write(directory: &Path, top: &str, path: &Path) -> Result<()> {
    let format = Format::of(path)?;
    let parent = path.parent().context("a file has a parent directory")?;
    fs::create_dir_all(parent)?;
    let mut plain = tempfile::tempfile_in(parent).with_context(|| format!("writing in {}", parent.display()))?;
    write_tar(directory, top, BufWriter::new(&mut plain))?;
    plain.seek(SeekFrom::Start(0))?;
    let mut target = tempfile::Builder::new()
        .prefix(".tmp-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(parent)
        .with_context(|| format!("writing in {}", parent.display()))?;
    match format {
        Format::Zstandard => compress(BufReader::new(plain), BufWriter::new(&mut target), CompressionLevel::Fastest),
        Format::Gzip => {
            // The header's time stays zero.
            let mut encoder = flate2::GzBuilder::new().write(BufWriter::new(&mut target), flate2::Compression::fast());
            std::io::copy(&mut BufReader::new(plain), &mut encoder)?;
            encoder.finish()?.flush()?;
        }
    }
    target.as_file().sync_all().with_context(|| format!("writing {}", path.display()))?;
    target.persist(path).with_context(|| format!("writing {}", path.display()))?;
    Ok(())
}

fn write_tar<W: Write>(directory: &Path, top: &str, writer: W) -> Result<()> {
    let mut archive = tar::Builder::new(writer);
    for path in files_below(directory)? {
        let inside = path.strip_prefix(directory).context("a file below its directory")?;
        let content = fs::read(&path)?;
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(if files::is_executable(&path) { 0o755 } else { 0o644 });
        header.set_mtime(MODIFIED);
        archive.append_data(&mut header, Path::new(top).join(inside), content.as_slice())?;
    }
    archive.into_inner()?.flush()?;
    Ok(())
}

/// Every file, in the order of the names.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
