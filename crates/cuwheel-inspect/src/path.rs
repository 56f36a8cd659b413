//! Which names of archive members are safe to write below a directory.
//!
//! Only the text of a name is judged here; links inside an archive are the concern of [`crate::sdist`].

/// Why the name of an archive member is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name starts at the root of a file system or with a drive letter.
    #[error("the name is absolute")]
    Absolute,
    /// A component is `..`.
    #[error("the name leaves its directory through `..`")]
    Traversal,
    /// A backslash separates components on Windows and is part of a name elsewhere.
    #[error("the name holds a backslash, which is a separator on some systems and not on others")]
    Backslash,
    /// A component is empty or `.`, so that two spellings name one file.
    #[error("the name holds an empty component or `.`")]
    NotCanonical,
    /// A byte below 32, or 127.
    #[error("the name holds a control character")]
    ControlCharacter,
}

/// Accepts the name of a member (a trailing `/` marks a directory and is allowed).
pub fn check_member_name(name: &str) -> Result<(), PathFault> {
    if name.is_empty() {
        return Err(PathFault::Empty);
    }
    if name.contains('\\') {
        return Err(PathFault::Backslash);
    }
    let drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.starts_with('/') || drive {
        return Err(PathFault::Absolute);
    }
    if name.chars().any(char::is_control) {
        return Err(PathFault::ControlCharacter);
    }
    for component in name.strip_suffix('/').unwrap_or(name).split('/') {
        match component {
            ".." => return Err(PathFault::Traversal),
            "" | "." => return Err(PathFault::NotCanonical),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        for (name, fault) in [
            ("", PathFault::Empty),
            ("/etc/passwd", PathFault::Absolute),
            ("C:/windows", PathFault::Absolute),
            ("c:evil", PathFault::Absolute),
            ("../evil.py", PathFault::Traversal),
            ("a/../../evil.py", PathFault::Traversal),
            ("a/..", PathFault::Traversal),
            ("a/../", PathFault::Traversal),
            ("a\\b", PathFault::Backslash),
            ("a//b", PathFault::NotCanonical),
            ("./a", PathFault::NotCanonical),
            ("a/./b", PathFault::NotCanonical),
            ("a\0b", PathFault::ControlCharacter),
            ("a\nb", PathFault::ControlCharacter),
        ] {
            assert_eq!(check_member_name(name), Err(fault), "{name:?}");
        }
    }

    #[test]
    fn ordinary_names_are_accepted() {
        for name in ["a", "a/b.py", "a/", "..a", "a..b/c", "größe/日本.py", "a b", "1:2"] {
            assert_eq!(check_member_name(name), Ok(()), "{name:?}");
        }
    }
}
