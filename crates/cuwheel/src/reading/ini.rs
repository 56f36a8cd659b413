//! setup.cfg, tox.ini and pytest.ini: sections, keys and values of several lines.
//!
//! Only what configparser's defaults read, without interpolation.

/// A value with the section, the key and the line that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) section: String,
    pub(crate) key: String,
    /// The key as it is written.
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(crate) struct Ini {
    pub(crate) path: String,
    entries: Vec<Entry>,
}

impl Ini {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let (mut entries, mut section): (Vec<Entry>, String) = (Vec::new(), String::new());
        let mut is_open = false;
        for (index, raw) in text.lines().enumerate() {
            let line = raw.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if raw.starts_with([' ', '\t']) && is_open {
                if let Some(last) = entries.last_mut() {
                    last.value = format!("{}\n{line}", last.value);
                }
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                (section, is_open) = (name.trim().to_owned(), false);
            } else if let Some((key, value)) = line.split_once(['=', ':']) {
                let (name, value) = (key.trim().to_owned(), value.trim().to_owned());
                let key = name.replace('-', "_").to_lowercase();
                entries.push(Entry { section: section.clone(), key, name, value, line: index + 1 });
                is_open = true;
            }
        }
        Self { path: path.to_owned(), entries }
    }

    /// The value of a key, whose dashes and capitals do not count.
    pub(crate) fn get(&self, section: &str, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.section == section && entry.key == key)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_on_in_indented_lines() {
        let ini =
            Ini::parse("setup.cfg", "# c\n[options]\ninstall-requires =\n    numpy\n    # c\n    x>=1\n[b]\nc: d\n");
        let found = ini.get("options", "install_requires").unwrap();
        assert_eq!((found.value.as_str(), found.line), ("\nnumpy\nx>=1", 3));
        assert_eq!(ini.get("b", "c").unwrap().value, "d");
    }
}
