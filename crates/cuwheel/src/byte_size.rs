//! Sizes as people write them: `100 MB`, `750kB`, `1 GiB`.
//!
//! Not for writing them: [`crate::files::human_size`] does.

/// Reads a size in bytes. A number without a unit is refused: it might be of anything.
pub fn parse(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("b", 1),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let parsed = UNITS.iter().find_map(|(unit, factor)| {
        let number: u64 = lower.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    });
    parsed
        .filter(|size| *size > 0)
        .ok_or_else(|| format!("`{text}` is no size: write a whole number and a unit, such as 100MB, 750 kB or 1 GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_number_and_a_unit() {
        for (text, bytes) in
            [("100MB", 100_000_000), ("750 kB", 750_000), ("1 GiB", 1 << 30), ("7b", 7), (" 2 mib ", 2 << 20)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "100", "MB", "0 MB", "-1 MB", "1.5 MB", "1 TB", "99999999999999999999 B", "99999999999 GB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
