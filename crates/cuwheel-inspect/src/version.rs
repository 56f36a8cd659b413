//! Versions of Python projects, enough of them to tell whether two spellings mean the same release.
//!
//! Not a resolver's version: there are no specifiers here and no order between versions.

use std::fmt;
use std::str::FromStr;

/// A version as the "Version specifiers" specification defines it. Shown in its normal form; trailing zeros of the
/// release do not matter for equality.
#[derive(Debug, Clone)]
pub struct Version {
    epoch: u64,
    release: Vec<u64>,
    pre: Option<(&'static str, u64)>,
    post: Option<u64>,
    dev: Option<u64>,
    local: Vec<String>,
}

/// The text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version: write it as `1.2`, `1.2.3rc1` or `1.2.3+local`")]
pub struct InvalidVersion(String);

impl Version {
    fn key(&self) -> impl PartialEq + '_ {
        let significant = self.release.iter().rposition(|part| *part != 0).map_or(0, |last| last + 1);
        (self.epoch, &self.release[..significant], self.pre, self.post, self.dev, &self.local)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epoch != 0 {
            write!(formatter, "{}!", self.epoch)?;
        }
        let release: Vec<_> = self.release.iter().map(u64::to_string).collect();
        formatter.write_str(&release.join("."))?;
        if let Some((label, number)) = self.pre {
            write!(formatter, "{label}{number}")?;
        }
        if let Some(number) = self.post {
            write!(formatter, ".post{number}")?;
        }
        if let Some(number) = self.dev {
            write!(formatter, ".dev{number}")?;
        }
        if !self.local.is_empty() {
            write!(formatter, "+{}", self.local.join("."))?;
        }
        Ok(())
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        parse(lower.strip_prefix('v').unwrap_or(&lower)).ok_or_else(|| InvalidVersion(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Version> {
    let (public, local) = match text.split_once('+') {
        Some((public, local)) => (public, parse_local(local)?),
        None => (text, Vec::new()),
    };
    let (epoch, public) = match public.split_once('!') {
        Some((epoch, rest)) => (number(epoch)?, rest),
        None => (0, public),
    };
    let mut rest = Rest(public);
    let mut release = vec![rest.number()?];
    while let Some(part) = rest.after(".").and_then(|mut after| after.number().map(|part| (part, after))) {
        release.push(part.0);
        rest = part.1;
    }
    let pre = rest.labelled(&[
        ("alpha", "a"),
        ("a", "a"),
        ("beta", "b"),
        ("b", "b"),
        ("preview", "rc"),
        ("pre", "rc"),
        ("rc", "rc"),
        ("c", "rc"),
    ]);
    let post = match rest.after("-").and_then(|mut after| after.number().map(|number| (number, after))) {
        Some((number, after)) => {
            rest = after;
            Some(number)
        }
        None => rest.labelled(&[("post", ""), ("rev", ""), ("r", "")]).map(|(_, number)| number),
    };
    let dev = rest.labelled(&[("dev", "")]).map(|(_, number)| number);
    rest.0.is_empty().then_some(Version { epoch, release, pre, post, dev, local })
}

fn parse_local(text: &str) -> Option<Vec<String>> {
    text.split(['.', '-', '_'])
        .map(|part| {
            let valid = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
            // A numeric part is a number: leading zeros do not tell two versions apart.
            valid.then(|| number(part).map_or_else(|| part.to_owned(), |value| value.to_string()))
        })
        .collect()
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The text that is still to be read.
#[derive(Clone, Copy)]
struct Rest<'text>(&'text str);

impl<'text> Rest<'text> {
    fn after(self, prefix: &str) -> Option<Rest<'text>> {
        self.0.strip_prefix(prefix).map(Rest)
    }

    fn number(&mut self) -> Option<u64> {
        let length = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(length);
        let value = number(digits)?;
        self.0 = rest;
        Some(value)
    }

    fn without_separator(self) -> Rest<'text> {
        Rest(self.0.strip_prefix(['.', '-', '_']).unwrap_or(self.0))
    }

    /// Reads `[-_.]? label [-_.]? number?` for the first label that fits; a missing number is 0.
    fn labelled(&mut self, labels: &[(&str, &'static str)]) -> Option<(&'static str, u64)> {
        let start = self.without_separator();
        let (after, normal) =
            labels.iter().find_map(|(label, normal)| start.after(label).map(|after| (after, *normal)))?;
        let mut numbered = after.without_separator();
        let value = numbered.number();
        *self = if value.is_some() { numbered } else { after };
        Some((normal, value.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shown_in_their_normal_form() {
        for (text, normal) in [
            ("1.0", "1.0"),
            (" V1.0 ", "1.0"),
            ("1.01", "1.1"),
            ("1!2.0", "1!2.0"),
            ("1.0-ALPHA.1", "1.0a1"),
            ("1.0c2", "1.0rc2"),
            ("1.0preview", "1.0rc0"),
            ("1.0.b.3", "1.0b3"),
            ("1.0-1", "1.0.post1"),
            ("1.0r4", "1.0.post4"),
            ("1.0_post", "1.0.post0"),
            ("1.0dev", "1.0.dev0"),
            ("1.0a1.post2.dev3+CU12-1.08", "1.0a1.post2.dev3+cu12.1.8"),
            ("2024.10.01", "2024.10.1"),
        ] {
            assert_eq!(text.parse::<Version>().map(|version| version.to_string()), Ok(normal.to_owned()), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_version_are_refused() {
        for text in
            ["", "a", "1.0x", "1..0", "1.0+", "1.0+a..b", "1.0.", "!1", "1.0 1", "99999999999999999999999", "1é"]
        {
            assert_eq!(text.parse::<Version>(), Err(InvalidVersion(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn trailing_zeros_do_not_tell_versions_apart() {
        let same = |left: &str, right: &str| left.parse::<Version>() == right.parse::<Version>();
        assert!(same("1.0", "1.0.0"));
        assert!(same("1", "1.0.0"));
        assert!(!same("1.0", "1.0.1"));
        assert!(!same("1.0", "1.0+cu12"));
        assert!(!same("1.0", "1!1.0"));
    }
}
