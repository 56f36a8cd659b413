//! The Rust module that is generated: the images, and the kernels in them by name.
//!
//! It depends on nothing, and holds no path of the machine. What its user does with the bytes is not decided here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::ptx::{Entry, short_name};

/// Names that a module or a constant cannot have.
const KEYWORDS: &str = " abstract as async await become box break const continue crate do dyn else enum extern false final \
    fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true \
    try type typeof unsafe unsized use virtual where while yield ";

const TYPES: &str = "\
/// A kernel of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// The name by which the driver finds it.
    pub symbol: &'static str,
    /// Its parameters, in order.
    pub parameters: &'static [Parameter],
}

/// Where a parameter lies in the block of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Where it begins.
    pub offset_bytes: usize,
    /// What it takes.
    pub size_bytes: usize,
}

// Which of it is used is up to the crate: all of it counts as used.
const _: fn(&Kernel) -> usize = |kernel| kernel.symbol.len() + kernel.parameters.len();
const _: fn(&Parameter) -> usize = |parameter| parameter.offset_bytes + parameter.size_bytes;

#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);
";

/// An image, for the generated module.
#[derive(Debug, Clone)]
pub(super) struct Image {
    /// The source, relative to the crate.
    pub(super) source: String,
    /// The name of the module, from [`identifier`].
    pub(super) module: String,
    /// The file of the image: beside the generated module, or the package's own.
    pub(super) file: String,
    pub(super) entries: Vec<Entry>,
}

/// The whole text.
pub(super) fn render(images: &[Image], is_embedded: bool) -> String {
    let mut text = String::from("// Written by cuwheel-build; a change is lost.\n\n");
    text.push_str(if is_embedded { TYPES } else { TYPES.split("\n#[repr").next().unwrap_or(TYPES) });
    for image in images {
        render_image(&mut text, image, is_embedded);
    }
    text
}

fn render_image(text: &mut String, image: &Image, is_embedded: bool) {
    let Image { source, module, file, entries } = image;
    // Nothing fails in writing to a string.
    let _ = write!(text, "\n#[doc = {:?}]\npub mod {module} {{\n", format!("Compiled from `{source}`."));
    text.push_str("    use super::*;\n\n");
    if is_embedded {
        let _ = write!(
            text,
            "    static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!({file:?}));\n    \
             /// The fatbin.\n    pub static FATBIN: &[u8] = &ALIGNED.0;\n    \
             const _: fn() -> &'static [u8] = || FATBIN;\n"
        );
    } else {
        let _ = write!(text, "    /// The file name of the fatbin in the package's data.\n    ");
        let _ = writeln!(text, "pub const FILE: &str = {file:?};\n    const _: &str = FILE;");
    }
    let names = constants(entries);
    for (entry, name) in entries.iter().zip(&names) {
        let parameters: Vec<String> = entry
            .parameters
            .iter()
            .map(|parameter| {
                format!(
                    "Parameter {{ offset_bytes: {}, size_bytes: {} }}",
                    parameter.offset_bytes, parameter.size_bytes
                )
            })
            .collect();
        let _ = write!(
            text,
            "    #[doc = {:?}]\n    pub const {name}: Kernel = Kernel {{ symbol: {:?}, parameters: &[{}] }};\n",
            format!("The kernel `{}`.", entry.symbol),
            entry.symbol,
            parameters.join(", ")
        );
    }
    let _ = write!(
        text,
        "    /// All kernels.\n    pub const KERNELS: &[Kernel] = &[{}];\n    const _: &[Kernel] = KERNELS;\n}}\n",
        names.join(", ")
    );
}

/// What a module has beside its kernels.
const OWN_NAMES: [&str; 4] = ["KERNELS", "FATBIN", "FILE", "ALIGNED"];

/// A name for each kernel: the short one where no other has it, or else the symbol.
fn constants(entries: &[Entry]) -> Vec<String> {
    let short: Vec<String> = entries.iter().map(|entry| constant(short_name(&entry.symbol))).collect();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &short {
        *uses.entry(name).or_default() += 1;
    }
    let mut taken: Vec<String> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let is_only = uses[short[index].as_str()] == 1;
        let name = if is_only { short[index].clone() } else { constant(&entry.symbol) };
        // Symbols may differ in case only, or be like a name of the module itself.
        let is_free = !taken.contains(&name) && !OWN_NAMES.contains(&name.as_str());
        taken.push(if is_free { name } else { format!("{name}_{index}") });
    }
    taken
}

fn constant(name: &str) -> String {
    identifier(name).to_uppercase()
}

/// A name of Rust that is like `text`.
pub(super) fn identifier(text: &str) -> String {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut name: String = text.chars().map(|character| if is_allowed(character) { character } else { '_' }).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() || name.chars().all(|c| c == '_') {
        name.insert_str(0, "kernels_");
    }
    if KEYWORDS.contains(&format!(" {name} ")) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(symbols: &[&str]) -> Vec<String> {
        let entry = |symbol: &&str| Entry { symbol: (*symbol).to_owned(), parameters: Vec::new() };
        constants(&symbols.iter().map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn kernels_with_one_short_name_are_told_apart_by_their_symbols() {
        assert_eq!(named(&["_Z4fillPf", "saxpy"]), ["FILL", "SAXPY"]);
        assert_eq!(named(&["_Z4fillPd", "_Z4fillPf"]), ["_Z4FILLPD", "_Z4FILLPF"]);
        assert_eq!(named(&["Saxpy", "saxpy"]), ["SAXPY", "SAXPY_1"]);
        assert_eq!(named(&["kernels"]), ["KERNELS_0"]);
    }

    #[test]
    fn any_file_name_becomes_a_name_of_rust() {
        for (text, expected) in [("saxpy", "saxpy"), ("2d-fft", "kernels_2d_fft"), ("mod", "mod_"), ("größe", "gr__e")]
        {
            assert_eq!(identifier(text), expected);
        }
    }
}
