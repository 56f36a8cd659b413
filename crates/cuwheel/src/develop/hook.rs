//! The import hook: a module in site-packages, and the state that it compares what the file system says with.
//!
//! The hook only asks whether a file is another one; whether a content changed is decided by the command that it starts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::destination::Destination;
use super::inputs::{Snapshot, Stat};
use crate::error::Result;
use crate::files;
use crate::project::Project;
use crate::sources;

const SOURCE: &str = include_str!("../python/rebuild_on_import.py");

/// Clocks of file systems tick: what was changed this shortly before it was read may change again within one tick.
const TICK: Duration = Duration::from_secs(2);

/// The module, for the names whose import it watches.
pub fn source(project: &Project, gates: &[String], state: &Path) -> Result<String> {
    let literal = |text: &str| json!(text).to_string();
    Ok(SOURCE
        .replace("\"@STATE@\"", &literal(files::utf8(state)?))
        .replace("\"@PROJECT@\"", &literal(&project.name))
        .replace("@GATES@", &json!(gates).to_string())
        .replace("\"@REMEDY@\"", &literal(&format!("run `develop` in {}", project.root.display()))))
}

/// What the hook compares: the command that builds on the first line, then each file as it was before it was read.
pub fn state(project: &Project, destination: &Destination, snapshot: &Snapshot) -> Result<String> {
    let tool = std::env::current_exe()?;
    let mut command = vec![files::utf8(&tool)?.to_owned()];
    command.extend(["develop", "--on-import", "--json", "--project"].map(str::to_owned));
    command.push(files::utf8(&project.root)?.to_owned());
    command.extend(destination.arguments());
    let mut text = format!("{}\n", json!(command));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let trusted_until = i128::try_from((now.saturating_sub(TICK)).as_nanos()).unwrap_or(i128::MAX);
    // A source of C that is new changes no file that was read, but the directory of those that were.
    let directories: BTreeSet<&Path> = snapshot
        .hashes
        .keys()
        .filter(|path| sources::is_native_source(path))
        .filter_map(|path| path.parent())
        .collect();
    let directories = directories.into_iter().map(|directory| (directory.to_path_buf(), Stat::of(directory)));
    for (path, stat) in snapshot.stats.clone().into_iter().chain(directories) {
        let Some(name) = path.to_str().filter(|name| !name.contains(['\n', '\r'])) else { continue };
        let _ = writeln!(text, "{}\t{name}", described(stat, trusted_until));
    }
    Ok(text)
}

fn described(stat: Option<Stat>, trusted_until: i128) -> String {
    match stat {
        None => "absent".to_owned(),
        Some(stat) if stat.changed_ns > trusted_until => "too young".to_owned(),
        Some(stat) => format!("{} {} {} {}", stat.size_bytes, stat.modified_ns, stat.changed_ns, stat.inode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pk_43_what_changed_within_a_tick_of_the_clock_is_not_trusted() {
        let stat = Stat { size_bytes: 3, modified_ns: 1, changed_ns: 100, inode: 7 };
        assert_eq!(described(Some(stat), 99), "too young");
        assert_eq!(described(Some(stat), 100), "3 1 100 7");
        assert_eq!(described(None, 100), "absent");
    }
}
