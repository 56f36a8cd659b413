//! Treemaps: sizes as areas of nested rectangles, drawn as SVG.
//!
//! Rectangles are laid out by the squarified algorithm (Bruls, Huizing and van Wijk, 2000), which keeps them near to
//! squares. Not for anything but sizes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cuwheel_inspect::size::human_size;

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 560.0;
/// The height of the name above what a directory holds.
const HEADING: f64 = 16.0;
/// Smaller sides cannot be seen.
const SMALLEST_SIDE: f64 = 2.0;
/// Levels of directories that are told apart.
const DEEPEST: usize = 8;
/// The width of a letter, roughly.
const LETTER: f64 = 7.0;

/// Something with a size: a leaf, or a directory with what is in it.
#[derive(Debug, Default)]
pub struct Node {
    size_bytes: u64,
    children: BTreeMap<String, Node>,
}

impl Node {
    /// Adds a leaf at a path whose parts are separated by `/`. What lies deeper than is drawn is one part.
    pub fn add(&mut self, path: &str, size_bytes: u64) {
        let mut node = self;
        node.size_bytes = node.size_bytes.saturating_add(size_bytes);
        for part in path.splitn(DEEPEST, '/') {
            node = node.children.entry(part.to_owned()).or_default();
            node.size_bytes = node.size_bytes.saturating_add(size_bytes);
        }
    }

    /// The drawing. Each rectangle has its path and its size as a tooltip.
    pub fn to_svg(&self) -> String {
        let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
        self.draw_children("", Area { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT }, &mut svg);
        svg + "</svg>\n"
    }

    fn draw_children(&self, path: &str, area: Area, svg: &mut String) {
        let mut children: Vec<(&String, &Self)> =
            self.children.iter().filter(|(_, child)| child.size_bytes > 0).collect();
        children.sort_by_key(|(_, child)| std::cmp::Reverse(child.size_bytes));
        let sizes: Vec<f64> = children.iter().map(|(_, child)| as_float(child.size_bytes)).collect();
        for ((name, child), area) in children.into_iter().zip(squarify(&sizes, area)) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            child.draw(name, &path, area, svg);
        }
    }

    fn draw(&self, name: &str, path: &str, area: Area, svg: &mut String) {
        if area.width < SMALLEST_SIDE || area.height < SMALLEST_SIDE {
            return;
        }
        let kind = if self.children.is_empty() { format!("leaf k{}", kind_of(name)) } else { "directory".to_owned() };
        let Area { x, y, width, height } = area;
        let title = format!("{path}: {}", human_size(self.size_bytes));
        let _ = write!(
            svg,
            "<g><title>{}</title><rect class=\"{kind}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>",
            escape(&title)
        );
        let label = fitting(name, width);
        if height >= HEADING && !label.is_empty() {
            let _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 3.0, y + 12.0, escape(&label));
        }
        svg.push_str("</g>\n");
        let inner = Area { x: x + 2.0, y: y + HEADING, width: width - 4.0, height: height - HEADING - 2.0 };
        if inner.width > SMALLEST_SIDE && inner.height > SMALLEST_SIDE {
            self.draw_children(path, inner, svg);
        }
    }
}

/// As much of a name as fits; nothing where that would say nothing.
fn fitting(name: &str, width: f64) -> String {
    const FEWEST: usize = 4;
    let fits = |count: usize| as_float(count as u64) * LETTER < width;
    let length = name.chars().count();
    if fits(length) {
        return name.to_owned();
    }
    let kept = (FEWEST..length).rev().find(|kept| fits(kept + 1)).unwrap_or(0);
    if kept == 0 { String::new() } else { name.chars().take(kept).chain(['…']).collect() }
}

/// Colours of leaves: native files, Python, GPU code, and the rest.
fn kind_of(name: &str) -> u32 {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        _ if name.contains(".so") || name == ".text" => 0,
        "py" | "pyi" => 1,
        "cubin" | "fatbin" | "ptx" | "cu" | "cuh" | "nv_fatbin" => 2,
        _ if name.starts_with("sm_") || name.starts_with("compute_") => 2,
        _ => 3,
    }
}

#[expect(clippy::cast_precision_loss, reason = "areas are drawn with four digits")]
fn as_float(size: u64) -> f64 {
    size as f64
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Divides `area` among `sizes`, the largest first, in order.
fn squarify(sizes: &[f64], area: Area) -> Vec<Area> {
    let whole: f64 = sizes.iter().sum();
    let scale = area.width * area.height / whole.max(1.0);
    let (mut rest, mut placed) = (area, Vec::with_capacity(sizes.len()));
    let mut start = 0;
    while start < sizes.len() {
        let side = rest.width.min(rest.height);
        let mut end = start + 1;
        while end < sizes.len() && worst(&sizes[start..=end], scale, side) <= worst(&sizes[start..end], scale, side) {
            end += 1;
        }
        rest = place(&sizes[start..end], scale, rest, &mut placed);
        start = end;
    }
    placed
}

/// How far the rectangles of a row along a side are from squares.
fn worst(row: &[f64], scale: f64, side: f64) -> f64 {
    let sum: f64 = row.iter().sum::<f64>() * scale;
    let ratio = |size: &f64| {
        let (square, area) = (side * side * size * scale, sum * sum);
        (square / area).max(area / square)
    };
    row.iter().map(ratio).fold(0.0, f64::max)
}

/// Lays a row along the shorter side, and gives what is left.
fn place(row: &[f64], scale: f64, area: Area, placed: &mut Vec<Area>) -> Area {
    let sum: f64 = row.iter().sum::<f64>() * scale;
    let is_wide = area.width >= area.height;
    let thickness = sum / if is_wide { area.height } else { area.width }.max(f64::MIN_POSITIVE);
    let mut along = 0.0;
    for size in row {
        let length = size * scale / thickness.max(f64::MIN_POSITIVE);
        placed.push(if is_wide {
            Area { x: area.x, y: area.y + along, width: thickness, height: length }
        } else {
            Area { x: area.x + along, y: area.y, width: length, height: thickness }
        });
        along += length;
    }
    if is_wide {
        Area { x: area.x + thickness, width: (area.width - thickness).max(0.0), ..area }
    } else {
        Area { y: area.y + thickness, height: (area.height - thickness).max(0.0), ..area }
    }
}

/// The text as it stands in HTML and in attributes, without control characters.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ if character.is_control() => escaped.extend(character.escape_default()),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_proportional_to_sizes_and_fill_the_whole() {
        let area = Area { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };
        let sizes = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let placed = squarify(&sizes, area);
        for (size, placed) in sizes.iter().zip(&placed) {
            assert!((placed.width * placed.height - size * 10_000.0).abs() < 1e-6, "{placed:?}");
            assert!(placed.x >= 0.0 && placed.x + placed.width <= 600.0 + 1e-6, "{placed:?}");
            assert!(placed.y >= 0.0 && placed.y + placed.height <= 400.0 + 1e-6, "{placed:?}");
        }
        for (position, left) in placed.iter().enumerate() {
            for right in &placed[position + 1..] {
                let apart = |start: f64, length: f64, other: f64, other_length: f64| {
                    start + length <= other + 1e-6 || other + other_length <= start + 1e-6
                };
                assert!(
                    apart(left.x, left.width, right.x, right.width)
                        || apart(left.y, left.height, right.y, right.height)
                );
            }
        }
        assert_eq!(squarify(&[], area), []);
    }

    #[test]
    fn names_of_strangers_are_text() {
        let mut node = Node::default();
        node.add("a/<script>alert('x')</script>", 10);
        node.add("a/\u{1b}[31m", 10);
        let svg = node.to_svg();
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
        assert!(svg.contains("<title>a: 20 B</title>"), "{svg}");
    }

    #[test]
    fn names_that_do_not_fit_are_cut() {
        let shown = [10.0, 40.0, 60.0, 200.0].map(|width| fitting("_native.abi3.so", width));
        assert_eq!(shown, ["", "_nat…", "_native…", "_native.abi3.so"]);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(Node::default().to_svg(), "<svg viewBox=\"0 0 1200 560\" role=\"img\">\n</svg>\n");
    }
}
