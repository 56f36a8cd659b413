//! CPython's limited API: which symbol came with which version.
//!
//! The table beside is made by `tools/limited_api.py`, which says where the facts are from.

use std::collections::HashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("limited_api.txt")));

struct Table {
    minor_by_symbol: HashMap<&'static str, u32>,
    newest: u32,
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let mut table = Self { minor_by_symbol: HashMap::new(), newest: 0 };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let heading = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse().ok());
            match heading {
                Some(minor) => table.newest = minor,
                None => {
                    table.minor_by_symbol.insert(line, table.newest);
                }
            }
        }
        table
    }
}

/// Why an abi3 module for Python 3.`floor` may not use `symbol`; `None` when it may, or when that Python is newer than
/// the table.
pub(super) fn complaint(symbol: &str, floor: u32) -> Option<String> {
    if floor > TABLE.newest {
        return None;
    }
    match TABLE.minor_by_symbol.get(symbol) {
        Some(minor) if *minor <= floor => None,
        Some(minor) => Some(format!("since 3.{minor}")),
        None => Some("never in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_belong_to_the_limited_api_from_a_version_on() {
        for (symbol, floor, expected) in [
            ("PyArg_Parse", 7, None),
            ("_Py_NoneStruct", 11, None),
            ("PyObject_GetBuffer", 11, None),
            ("PyObject_GetBuffer", 10, Some("since 3.11")),
            ("PyObject_Vectorcall", 11, Some("since 3.12")),
            ("_PyObject_GetMethod", 11, Some("never in it")),
            ("_PyObject_GetMethod", 99, None),
        ] {
            assert_eq!(complaint(symbol, floor).as_deref(), expected, "{symbol} on 3.{floor}");
        }
        assert!(TABLE.minor_by_symbol.len() > 900 && TABLE.newest >= 15);
    }
}
