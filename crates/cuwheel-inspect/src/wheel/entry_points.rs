//! `entry_points.txt` of a wheel: which scripts installers make, and which plug-ins others find.
//!
//! Source: "Entry points specification". The file is an INI file; only its shape is read here, and nothing is imported.

/// A line of the file, such as `demo = demo.cli:main` under `[console_scripts]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    group: String,
    name: String,
    module: String,
}

impl EntryPoint {
    /// The group, such as `console_scripts`.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The name, such as that of the script.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module that is imported, without the object in it.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }
}

/// The entry points in `text`, and the lines, counted from 1, that are none.
pub(super) fn parse(text: &str) -> (Vec<EntryPoint>, Vec<u64>) {
    let (mut found, mut malformed) = (Vec::new(), Vec::new());
    let mut group: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            group = Some(name.trim());
            continue;
        }
        match group.and_then(|group| parse_line(group, line)) {
            Some(entry_point) => found.push(entry_point),
            None => malformed.push(number),
        }
    }
    (found, malformed)
}

fn parse_line(group: &str, line: &str) -> Option<EntryPoint> {
    let (name, reference) = line.split_once('=')?;
    // What is in brackets asks for extras, as old tools wrote them.
    let reference = reference.split('[').next()?;
    let module = reference.split(':').next()?.trim();
    let is_module = module.split('.').all(|part| !part.is_empty() && !part.contains(char::is_whitespace));
    let text = |text: &str| text.trim().to_owned();
    is_module.then(|| EntryPoint { group: text(group), name: text(name), module: module.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_names_and_modules_are_read() {
        let text =
            "# comment\n[console_scripts]\ndemo = demo.cli:main\n\n[plugins]\n; other\nx=demo . y\nz = demo [cli]\n";
        let (found, malformed) = parse(text);
        let shown: Vec<_> = found.iter().map(|point| (point.group(), point.name(), point.module())).collect();
        assert_eq!(shown, [("console_scripts", "demo", "demo.cli"), ("plugins", "z", "demo")]);
        assert_eq!(malformed, [7]);
        assert_eq!(parse("demo = demo:main\n[a]\ndemo\n = \n").1, [1, 3, 4]);
    }
}
