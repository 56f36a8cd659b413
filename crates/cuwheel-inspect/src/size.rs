//! Sizes as people read them.

/// A size for people: `220.1 kB`.
#[must_use]
pub fn human_size(size_bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let size = size_bytes as f64;
    match size_bytes {
        0..1_000 => format!("{size_bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", size / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size / 1e6),
        _ => format!("{:.2} GB", size / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_with_three_digits() {
        let shown: Vec<_> = [0, 999, 1_000, 220_123, 5_300_000, 2_500_000_000].map(human_size).to_vec();
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "220.1 kB", "5.3 MB", "2.50 GB"]);
    }
}
