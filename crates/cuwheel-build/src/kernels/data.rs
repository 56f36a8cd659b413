//! Images as data of the Python package: written beside its modules, and only if they will be in the wheel (PK-53).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::KernelsError;

/// 1980-01-01, as files in wheels are stamped. A file that is newer than the build script's start would have Cargo run the
/// script again each time.
const STAMP: Duration = Duration::from_hours(3652 * 24);

/// Writes the files, and takes away those that an earlier call wrote and this one does not.
pub(super) fn write(
    crate_folder: &Path,
    folder: &Path,
    files: &[(String, PathBuf)],
    list: &Path,
) -> Result<(), KernelsError> {
    // An sdist keeps the place in the project, and not always where the crate is in it.
    let pyproject = crate_folder.ancestors().map(|above| above.join("pyproject.toml")).find(|path| path.is_file());
    if let Some(pyproject) = &pyproject {
        check_declared(pyproject, folder, files)?;
    }
    let root = pyproject.as_deref().and_then(Path::parent).unwrap_or(crate_folder);
    let folder = root.join(folder);
    fs::create_dir_all(&folder).map_err(KernelsError::file(&folder))?;
    for (name, image) in files {
        write_one(&folder.join(name), image)?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for earlier in fs::read_to_string(list).unwrap_or_default().lines() {
        if !names.contains(&earlier) {
            let _ = fs::remove_file(folder.join(earlier));
        }
    }
    fs::write(list, names.join("\n")).map_err(KernelsError::file(list))
}

fn write_one(path: &Path, image: &Path) -> Result<(), KernelsError> {
    let bytes = fs::read(image).map_err(KernelsError::file(image))?;
    // Cargo runs the script again when the file is gone or was changed.
    println!("cargo:rerun-if-changed={}", path.display());
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    fs::write(&new, bytes)
        .and_then(|()| fs::File::options().write(true).open(&new)?.set_modified(SystemTime::UNIX_EPOCH + STAMP))
        .and_then(|()| fs::rename(&new, path))
        .map_err(KernelsError::file(path))
}

/// Every file has to match something that pyproject.toml names.
fn check_declared(pyproject: &Path, folder: &Path, files: &[(String, PathBuf)]) -> Result<(), KernelsError> {
    println!("cargo:rerun-if-changed={}", pyproject.display());
    let text = fs::read_to_string(pyproject).map_err(KernelsError::file(pyproject))?;
    let patterns: Vec<glob::Pattern> = strings(&text).filter_map(|text| glob::Pattern::new(text).ok()).collect();
    for (name, _) in files {
        let file = folder.join(name);
        if !patterns.iter().any(|pattern| pattern.matches_path(&file)) {
            return Err(KernelsError::DataNotDeclared {
                file: file.display().to_string(),
                pattern: folder.join("*.fatbin").display().to_string(),
                pyproject: pyproject.to_path_buf(),
            });
        }
    }
    Ok(())
}

/// What stands in quotes outside of comments, and has a folder in it.
fn strings(toml: &str) -> impl Iterator<Item = &str> {
    let lines = toml.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2)).filter(|text| text.contains('/'))
}
