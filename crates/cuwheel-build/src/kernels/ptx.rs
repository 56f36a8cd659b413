//! Kernels and their parameters, read from the PTX that the compiler made on its way.
//!
//! PTX has the size and the alignment of each parameter, and no more of its type: a pointer is eight bytes.

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) symbol: String,
    pub(super) parameters: Vec<Parameter>,
}

/// Where a parameter lies in the block of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) offset_bytes: usize,
    pub(super) size_bytes: usize,
}

/// The kernels that a driver finds by name, in the order of their names.
pub(super) fn entries(ptx: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for line_and_rest in starts(ptx) {
        let Some((symbol, rest)) = line_and_rest.split_once(['(', '{', '\n', ' ', '\t']) else { continue };
        // Without parameters, the name is the whole line.
        let opens = line_and_rest[symbol.len()..].trim_start().starts_with('(');
        let list = if opens { rest.trim_start().trim_start_matches('(').split(')').next() } else { None };
        entries.push(Entry { symbol: symbol.to_owned(), parameters: parameters(list.unwrap_or_default())? });
    }
    entries.sort_by(|one, other| one.symbol.cmp(&other.symbol));
    Ok(entries)
}

/// What follows `.visible .entry` and `.weak .entry`. Others have no name outside of the image.
fn starts(ptx: &str) -> impl Iterator<Item = &str> {
    let lines = ptx.match_indices(".entry ").map(|(at, word)| (at, at + word.len()));
    lines.filter_map(|(at, end)| {
        let line = ptx[..at].rsplit('\n').next()?;
        matches!(line.trim(), ".visible" | ".weak").then_some(&ptx[end..])
    })
}

/// `.param .align 8 .b8 name[16], .param .u64 .ptr .align 1 name`.
fn parameters(list: &str) -> Result<Vec<Parameter>, String> {
    let mut found = Vec::new();
    let mut end = 0_usize;
    for declaration in list.split(',').map(str::trim).filter(|declaration| !declaration.is_empty()) {
        let unknown = || format!("the parameter {declaration:?} is not understood");
        let words: Vec<&str> = declaration.split_whitespace().collect();
        let element_bytes = words.iter().find_map(|word| type_bytes(word)).ok_or_else(unknown)?;
        let name = words.last().copied().unwrap_or_default();
        let count = match name.split_once('[') {
            Some((_, count)) => count.trim_end_matches(']').parse::<usize>().map_err(|_| unknown())?,
            None => 1,
        };
        // The alignment after `.ptr` is that of what is pointed to.
        let own = words.iter().position(|word| *word == ".ptr").map_or(&words[..], |at| &words[..at]);
        let align = own.iter().position(|word| *word == ".align").and_then(|at| own.get(at + 1)?.parse::<usize>().ok());
        let alignment = align.unwrap_or(element_bytes).max(1);
        let offset_bytes = end.next_multiple_of(alignment);
        let size_bytes = element_bytes.checked_mul(count).ok_or_else(unknown)?;
        end = offset_bytes.checked_add(size_bytes).ok_or_else(unknown)?;
        found.push(Parameter { offset_bytes, size_bytes });
    }
    Ok(found)
}

/// `.u64` → 8.
fn type_bytes(word: &str) -> Option<usize> {
    let bits = word.strip_prefix('.')?.strip_prefix(['u', 's', 'f', 'b'])?;
    matches!(bits, "8" | "16" | "32" | "64" | "128").then(|| bits.parse::<usize>().ok().map(|bits| bits / 8)).flatten()
}

/// The name without namespaces and types: `_ZN2ns4fillIfEEvPT_` → `fill`. What is not mangled is its own name.
pub(super) fn short_name(symbol: &str) -> &str {
    let Some(rest) = symbol.strip_prefix("_Z") else { return symbol };
    let is_nested = rest.starts_with('N');
    let mut rest = rest.trim_start_matches(['N', 'L']);
    let mut last = None;
    loop {
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        let Some(name) = rest.get(digits..digits.saturating_add(length)) else { break };
        last = Some(name);
        rest = &rest[digits + length..];
        if !is_nested {
            break;
        }
    }
    last.unwrap_or(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "
.visible .entry saxpy(
\t.param .u32 saxpy_param_0,
\t.param .f32 saxpy_param_1,
\t.param .u64 .ptr .align 1 saxpy_param_2,
\t.param .align 16 .b8 saxpy_param_3[48]
)
{ }
.entry _Z6hiddenv()
{ }
.weak .entry _ZN2ns4fillIfEEvPT_S1_(
\t.param .u8 a,
\t.param .u16 b
)
.visible .entry empty()
";

    #[test]
    fn kernels_are_read_with_the_place_of_each_parameter() {
        let place = |offset_bytes, size_bytes| Parameter { offset_bytes, size_bytes };
        let entry = |symbol: &str, parameters| Entry { symbol: symbol.into(), parameters };
        let expected = [
            entry("_ZN2ns4fillIfEEvPT_S1_", vec![place(0, 1), place(2, 2)]),
            entry("empty", vec![]),
            entry("saxpy", vec![place(0, 4), place(4, 4), place(8, 8), place(16, 48)]),
        ];
        assert_eq!(entries(PTX).unwrap(), expected);
        assert_eq!(entries("// nothing").unwrap(), []);
        assert!(entries(".visible .entry k(\n.param .texref t\n)").is_err());
    }

    #[test]
    fn short_names_leave_out_namespaces_and_types() {
        let cases = [("saxpy", "saxpy"), ("_Z4fillPfi", "fill"), ("_ZN2ns4fillIfEEvPT_", "fill"), ("_Z", "_Z")];
        for (symbol, expected) in cases {
            assert_eq!(short_name(symbol), expected);
        }
        assert_eq!(short_name("_Z99x"), "_Z99x");
    }
}
