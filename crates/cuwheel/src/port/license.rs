//! Licences as projects spell them, and their SPDX expressions.
//!
//! Only spellings that mean one licence: `BSD` alone is none, and stays for a person to decide.

/// Classifiers, after `License :: OSI Approved :: `.
const CLASSIFIERS: &[(&str, &str)] = &[
    ("Apache Software License", "Apache-2.0"),
    ("MIT License", "MIT"),
    ("MIT No Attribution License (MIT-0)", "MIT-0"),
    ("ISC License (ISCL)", "ISC"),
    ("Boost Software License 1.0 (BSL-1.0)", "BSL-1.0"),
    ("Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0"),
    ("GNU General Public License v2 (GPLv2)", "GPL-2.0-only"),
    ("GNU General Public License v2 or later (GPLv2+)", "GPL-2.0-or-later"),
    ("GNU General Public License v3 (GPLv3)", "GPL-3.0-only"),
    ("GNU General Public License v3 or later (GPLv3+)", "GPL-3.0-or-later"),
    ("GNU Lesser General Public License v2 or later (LGPLv2+)", "LGPL-2.0-or-later"),
    ("GNU Lesser General Public License v3 (LGPLv3)", "LGPL-3.0-only"),
    ("GNU Lesser General Public License v3 or later (LGPLv3+)", "LGPL-3.0-or-later"),
    ("GNU Affero General Public License v3", "AGPL-3.0-only"),
    ("Python Software Foundation License", "PSF-2.0"),
    ("The Unlicense (Unlicense)", "Unlicense"),
    ("zlib/libpng License", "Zlib"),
];

/// Spellings in the field `license`, in lower case and without punctuation at the ends.
const SPELLINGS: &[(&str, &str)] = &[
    ("apache 2", "Apache-2.0"),
    ("apache 2.0", "Apache-2.0"),
    ("apache2", "Apache-2.0"),
    ("apache-2", "Apache-2.0"),
    ("apache license 2.0", "Apache-2.0"),
    ("apache license, version 2.0", "Apache-2.0"),
    ("apache license version 2.0", "Apache-2.0"),
    ("apache software license 2.0", "Apache-2.0"),
    ("apache v2", "Apache-2.0"),
    ("apache v2.0", "Apache-2.0"),
    ("apache license v2.0", "Apache-2.0"),
    ("apache-2.0 license", "Apache-2.0"),
    ("asl 2.0", "Apache-2.0"),
    ("mit license", "MIT"),
    ("the mit license", "MIT"),
    ("the mit license (mit)", "MIT"),
    ("expat", "MIT"),
    ("bsd 3-clause", "BSD-3-Clause"),
    ("3-clause bsd", "BSD-3-Clause"),
    ("bsd 3 clause", "BSD-3-Clause"),
    ("bsd-3", "BSD-3-Clause"),
    ("new bsd", "BSD-3-Clause"),
    ("modified bsd", "BSD-3-Clause"),
    ("bsd 3-clause license", "BSD-3-Clause"),
    ("3-clause bsd license", "BSD-3-Clause"),
    ("new bsd license", "BSD-3-Clause"),
    ("bsd (3-clause)", "BSD-3-Clause"),
    ("bsd-3-clause license", "BSD-3-Clause"),
    ("bsd 3-clause \"new\" or \"revised\" license", "BSD-3-Clause"),
    ("bsd 2-clause", "BSD-2-Clause"),
    ("2-clause bsd", "BSD-2-Clause"),
    ("simplified bsd", "BSD-2-Clause"),
    ("bsd-2-clause license", "BSD-2-Clause"),
    ("gpl-2.0", "GPL-2.0-only"),
    ("gplv2", "GPL-2.0-only"),
    ("gplv2+", "GPL-2.0-or-later"),
    ("gpl-3.0", "GPL-3.0-only"),
    ("gplv3", "GPL-3.0-only"),
    ("gplv3+", "GPL-3.0-or-later"),
    ("gpl v3", "GPL-3.0-only"),
    ("gnu gplv3", "GPL-3.0-only"),
    ("lgpl-3.0", "LGPL-3.0-only"),
    ("lgplv3", "LGPL-3.0-only"),
    ("lgplv3+", "LGPL-3.0-or-later"),
    ("agpl-3.0", "AGPL-3.0-only"),
    ("agplv3", "AGPL-3.0-only"),
    ("mpl 2.0", "MPL-2.0"),
    ("mplv2", "MPL-2.0"),
    ("psf", "PSF-2.0"),
    ("python software foundation license", "PSF-2.0"),
    ("isc license", "ISC"),
    ("boost", "BSL-1.0"),
    ("boost software license", "BSL-1.0"),
    ("zlib license", "Zlib"),
    ("unlicense", "Unlicense"),
    ("public domain", "LicenseRef-Public-Domain"),
    ("nvidia proprietary software", "LicenseRef-NVIDIA-Proprietary"),
    ("nvidia proprietary", "LicenseRef-NVIDIA-Proprietary"),
];

/// Identifiers that are taken as they are, whatever their capitals.
const IDENTIFIERS: &[&str] = &[
    "0BSD",
    "AFL-3.0",
    "AGPL-3.0-only",
    "AGPL-3.0-or-later",
    "Apache-2.0",
    "Artistic-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "EPL-2.0",
    "EUPL-1.2",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "GPL-3.0-only",
    "GPL-3.0-or-later",
    "HPND",
    "ISC",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "LGPL-3.0-only",
    "LGPL-3.0-or-later",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "NCSA",
    "OFL-1.1",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "WTFPL",
    "Zlib",
    "ZPL-2.1",
];

/// The expression for a text in the field `license`.
pub(super) fn of_text(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['.', ',']).trim();
    if text.is_empty() || text.contains('\n') {
        return None;
    }
    if let Some(found) = single(text) {
        return Some(found.to_owned());
    }
    // An expression of known identifiers.
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_operator = |word: &str| ["AND", "OR", "WITH"].contains(&word);
    let known = |word: &str| {
        let bare = word.trim_matches(['(', ')']);
        is_operator(bare)
            || bare.starts_with("LicenseRef-")
            || bare.ends_with("-exception")
            || identifier(bare).is_some()
    };
    if words.len() > 2 && words.iter().any(|word| is_operator(word)) && words.iter().all(|word| known(word)) {
        return Some(words.join(" "));
    }
    // `MIT or Apache-2.0`, `MIT/Apache-2.0`.
    for separator in [" OR ", " or ", "/"] {
        let parts: Option<Vec<&str>> = text.split(separator).map(|part| single(part.trim())).collect();
        if let Some(parts) = parts.filter(|parts| parts.len() > 1) {
            return Some(parts.join(" OR "));
        }
    }
    None
}

fn identifier(text: &str) -> Option<&'static str> {
    IDENTIFIERS.iter().copied().find(|known| known.eq_ignore_ascii_case(text))
}

fn single(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    identifier(text).or_else(|| SPELLINGS.iter().find(|(spelling, _)| *spelling == lower).map(|(_, id)| *id))
}

/// The expression for classifiers; several licences are no expression, since whether both or one of them hold is not said.
pub(super) fn of_classifiers<'a>(classifiers: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut found: Vec<&str> = Vec::new();
    for classifier in classifiers {
        let Some(rest) = classifier.strip_prefix("License :: ") else { continue };
        let name = rest.strip_prefix("OSI Approved :: ").unwrap_or(rest);
        if name == "OSI Approved" {
            continue;
        }
        found.push(CLASSIFIERS.iter().find(|(known, _)| *known == name).map(|(_, id)| *id)?);
    }
    found.dedup();
    (found.len() == 1).then(|| found[0].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_become_expressions_where_they_mean_one() {
        let given = [
            "MIT",
            "mit license",
            "Apache 2.0",
            "BSD",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "BSD 3-Clause",
            "see LICENSE",
            "",
        ];
        let found = given.map(of_text);
        let expected = [
            Some("MIT"),
            Some("MIT"),
            Some("Apache-2.0"),
            None,
            Some("MIT OR Apache-2.0"),
            Some("MIT OR Apache-2.0"),
            Some("BSD-3-Clause"),
            None,
            None,
        ];
        assert_eq!(found.each_ref().map(Option::as_deref), expected);
    }

    #[test]
    fn classifiers_that_do_not_say_which_are_none() {
        assert_eq!(of_classifiers(["License :: OSI Approved :: MIT License", "x"]).as_deref(), Some("MIT"));
        assert_eq!(of_classifiers(["License :: OSI Approved :: BSD License"]), None);
        let two = ["License :: OSI Approved :: MIT License", "License :: OSI Approved :: Apache Software License"];
        assert_eq!(of_classifiers(two), None);
    }
}
