//! What a native module offers to Python, as its sources say: functions, classes and their documentation.
//!
//! C and C++ are read by words, as tables of `PyMethodDef` and calls of `def`; macros are not expanded. Names that are put
//! together by a macro are not found, and the place where a human has to look is named instead.

use std::collections::BTreeMap;

use serde::Serialize;

use super::value::Place;
use crate::reading::tokens::{self, Language, Placed, Token};

/// Something that Python code may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The name in Python.
    pub name: String,
    /// The name in C, if it has one.
    pub native: Option<String>,
    /// What its documentation says.
    pub doc: Option<String>,
    /// Whether it is a class.
    pub is_class: bool,
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
}

/// What one file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    /// Names of modules that are defined here.
    pub(super) modules: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// Constants and operators that are registered otherwise.
    pub(super) others: Vec<(String, Place)>,
}

/// Reads a source.
pub(super) fn read(path: &str, text: &str) -> Offer {
    let mut offer = match crate::reading::tree::extension(path) {
        "pyx" => cython(path, text),
        _ => c(path, text),
    };
    let mut seen = Vec::new();
    offer.entries.retain(|entry| {
        let is_new = !seen.contains(&entry.name);
        seen.push(entry.name.clone());
        is_new
    });
    offer
}

fn c(path: &str, text: &str) -> Offer {
    let tokens = tokens::tokens(text, Language::C);
    let mut names = BTreeMap::new();
    if text.contains("PyMethodDef") {
        names = tokens::named_texts(&tokens);
        names.extend(docstrings(&tokens));
    }
    let mut offer = Offer { entries: method_tables(path, &tokens, &names), ..Offer::default() };
    let mut variables = vec!["m", "mod", "module"];
    for (index, placed) in tokens.iter().enumerate() {
        let Token::Word(word) = placed.token else { continue };
        let place = || Place::new(path, placed.line);
        if let Some(name) = word.strip_prefix("PyInit_").filter(|name| !name.is_empty()) {
            offer.modules.push(name.to_owned());
        } else if matches!(
            word,
            "PYBIND11_MODULE"
                | "NB_MODULE"
                | "BOOST_PYTHON_MODULE"
                | "MOD_INIT"
                | "TORCH_LIBRARY"
                | "TORCH_LIBRARY_FRAGMENT"
        ) {
            let arguments = call_at(&tokens, index + 1);
            if let Some(name) = arguments.first().and_then(|argument| last_word(argument)) {
                if word.starts_with("TORCH_LIBRARY") {
                    offer.others.push((format!("operators of torch in {word}({name})"), place()));
                } else {
                    offer.modules.push(name.to_owned());
                    variables.extend(arguments.get(1).and_then(|argument| last_word(argument)));
                }
            }
        } else if word == "def" && is_method_of(&tokens, index, &variables) {
            offer.entries.extend(pybind_function(path, &tokens, index));
        } else if matches!(word, "class_" | "enum_" | "exception_") {
            offer.entries.extend(pybind_class(path, &tokens, index));
        } else if matches!(
            word,
            "PyModule_AddObject"
                | "PyModule_AddObjectRef"
                | "PyModule_AddIntConstant"
                | "PyModule_AddStringConstant"
                | "PyModule_Add"
        ) {
            offer.extend_with_member(path, &tokens, index, word);
        }
    }
    offer.modules.dedup();
    offer
}

/// `PyDoc_STRVAR(name, "text")`.
fn docstrings(tokens: &[Placed<'_>]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (index, _) in tokens.iter().enumerate().filter(|(_, placed)| placed.is_word("PyDoc_STRVAR")) {
        let arguments = call_at(tokens, index + 1);
        let name = arguments.first().and_then(|argument| last_word(argument));
        let text = arguments.get(1).and_then(|argument| tokens::text_of(argument, &found));
        if let (Some(name), Some(text)) = (name, text) {
            found.insert(name.to_owned(), text);
        }
    }
    found
}

impl Offer {
    /// A member of the module: a class if its name begins as one, else something to be ported by hand.
    fn extend_with_member(&mut self, path: &str, tokens: &[Placed<'_>], index: usize, word: &str) {
        let arguments = call_at(tokens, index + 1);
        let place = Place::new(path, tokens[index].line);
        let Some(name) = arguments.get(1).and_then(|argument| one_text(argument)) else { return };
        let is_type = arguments.get(2).is_some_and(|argument| {
            argument.iter().any(
                |placed| matches!(placed.token, Token::Word(word) if word.contains("Type") || word.contains("_type")),
            )
        });
        if word.starts_with("PyModule_AddObject") && is_type {
            let native = arguments.get(2).and_then(|argument| last_word(argument)).map(str::to_owned);
            self.entries.push(Entry { name, native, doc: None, is_class: true, place });
        } else {
            self.others.push((format!("the member {name}"), place));
        }
    }
}

/// Tables of functions; those of classes are left out where it can be told.
fn method_tables(path: &str, tokens: &[Placed<'_>], names: &BTreeMap<String, String>) -> Vec<Entry> {
    let mut tables: Vec<(&str, Vec<Entry>)> = Vec::new();
    let makers = row_makers(tokens);
    for (index, placed) in tokens.iter().enumerate() {
        if !placed.is_word("PyMethodDef") {
            continue;
        }
        let Some(Token::Word(table)) = tokens.get(index + 1).map(|placed| &placed.token) else { continue };
        let Some(open) = tokens[index..].iter().take(10).position(|placed| placed.is_mark('{')) else { continue };
        let is_table = tokens[index + 1..index + open].iter().any(|placed| placed.is_mark('['));
        if is_table {
            let rows = rows(tokens, index + open);
            tables.push((table, rows.into_iter().filter_map(|row| method(path, row, names, &makers)).collect()));
        }
    }
    let used = used_by_modules(tokens);
    let of_modules: Vec<_> = tables.iter().filter(|(table, _)| used.contains(table)).cloned().collect();
    let chosen = if of_modules.is_empty() { tables } else { of_modules };
    let of_classes = used_by_classes(tokens);
    chosen.into_iter().filter(|(table, _)| !of_classes.contains(table)).flat_map(|(_, entries)| entries).collect()
}

/// Words in initialisers of `PyModuleDef`, in arguments of the functions that make modules, and after `m_methods`.
fn used_by_modules<'t>(tokens: &[Placed<'t>]) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (index, placed) in tokens.iter().enumerate() {
        let is_maker =
            ["PyModuleDef", "Py_InitModule", "Py_InitModule3", "Py_InitModule4", "PyModule_AddFunctions", "m_methods"]
                .iter()
                .any(|word| placed.is_word(word));
        if is_maker {
            let until = tokens[index..].iter().take(80).take_while(|placed| !placed.is_mark(';'));
            found.extend(
                until.filter_map(|placed| if let Token::Word(word) = placed.token { Some(word) } else { None }),
            );
        }
    }
    found
}

/// Words in initialisers of `PyTypeObject`, and after `tp_methods` and `Py_tp_methods`.
fn used_by_classes<'t>(tokens: &[Placed<'t>]) -> Vec<&'t str> {
    let word = |placed: &Placed<'t>| if let Token::Word(word) = placed.token { Some(word) } else { None };
    let mut found = Vec::new();
    for (index, placed) in tokens.iter().enumerate() {
        if placed.is_word("tp_methods") || placed.is_word("Py_tp_methods") {
            found.extend(tokens[index + 1..].iter().take(3).find_map(word));
        } else if placed.is_word("PyTypeObject") {
            let is_defined = tokens.get(index + 2).is_some_and(|placed| placed.is_mark('='));
            let open = index + 3;
            if is_defined && tokens.get(open).is_some_and(|placed| placed.is_mark('{')) {
                let end = tokens::closing(tokens, open).min(tokens.len());
                found.extend(tokens[open..end].iter().filter_map(word));
            }
        }
    }
    found
}

/// The rows of the table whose brace is at `open`, without the lines of the preprocessor in it.
fn rows<'a, 't>(tokens: &'a [Placed<'t>], open: usize) -> Vec<&'a [Placed<'t>]> {
    let end = tokens::closing(tokens, open).min(tokens.len());
    let (mut found, mut index) = (Vec::new(), open + 1);
    while index < end {
        let is_braced = tokens[index].is_mark('{');
        let is_called = matches!(tokens[index].token, Token::Word(_))
            && tokens.get(index + 1).is_some_and(|next| next.is_mark('('));
        if tokens[index].is_mark('#') {
            index = after_directive(tokens, index);
        } else if is_braced || is_called {
            let close = tokens::closing(tokens, index + usize::from(is_called)).min(end);
            found.push(&tokens[index..(close + 1).min(tokens.len())]);
            index = close + 1;
        } else {
            index += 1;
        }
    }
    found
}

/// The first token after the line of a directive, and after those that it goes on in.
fn after_directive(tokens: &[Placed<'_>], start: usize) -> usize {
    let (mut index, mut line) = (start, tokens[start].line);
    while index < tokens.len() && tokens[index].line <= line {
        if tokens[index].is_mark('\\') {
            line = tokens[index].line + 1;
        }
        index += 1;
    }
    index
}

/// Macros that make a row of a name: `#define declare(f) {#f, f, …}`.
fn row_makers<'t>(tokens: &[Placed<'t>]) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (index, _) in tokens.iter().enumerate().filter(|(_, placed)| placed.is_word("define")) {
        let end = after_directive(tokens, index);
        let rest = &tokens[index + 1..end];
        let [Placed { token: Token::Word(name), .. }, open, Placed { token: Token::Word(parameter), .. }, ..] = rest
        else {
            continue;
        };
        let is_stringed = rest.windows(2).any(|two| two[0].is_mark('#') && two[1].is_word(parameter));
        if open.is_mark('(') && is_stringed {
            found.push(*name);
        }
    }
    found
}

/// `{"name", (PyCFunction)function, FLAGS, "doc"}`, or what a macro makes of a name.
fn method(path: &str, row: &[Placed<'_>], names: &BTreeMap<String, String>, makers: &[&str]) -> Option<Entry> {
    let place = Place::new(path, row.first()?.line);
    if let Token::Word(word) = row[0].token {
        let arguments = tokens::arguments(row, 1);
        let name = makers.contains(&word).then(|| last_word(arguments.first()?)).flatten()?.to_owned();
        return Some(Entry { native: Some(name.clone()), name, doc: None, is_class: false, place });
    }
    let fields = tokens::arguments(row, 0);
    let first = fields.first()?;
    let name = tokens::text_of(skip_field_name(first), names)?;
    let native = fields.get(1).and_then(|field| last_word(field)).map(str::to_owned);
    let doc =
        fields.get(3).and_then(|field| tokens::text_of(skip_field_name(field), names)).filter(|doc| !doc.is_empty());
    Some(Entry { name, native, doc, is_class: false, place })
}

/// `.ml_name = "x"` without what is before `=`.
fn skip_field_name<'a, 't>(field: &'a [Placed<'t>]) -> &'a [Placed<'t>] {
    field.iter().position(|placed| placed.is_mark('=')).map_or(field, |equals| &field[equals + 1..])
}

fn last_word<'t>(tokens: &[Placed<'t>]) -> Option<&'t str> {
    tokens.iter().rev().find_map(|placed| if let Token::Word(word) = placed.token { Some(word) } else { None })
}

fn one_text(tokens: &[Placed<'_>]) -> Option<String> {
    tokens.iter().find_map(|placed| if let Token::Text(text) = &placed.token { Some(text.clone()) } else { None })
}

/// The arguments of a call whose parenthesis is at `open`; none where it is no call.
fn call_at<'a, 't>(tokens: &'a [Placed<'t>], open: usize) -> Vec<&'a [Placed<'t>]> {
    if tokens.get(open).is_some_and(|placed| placed.is_mark('(')) {
        tokens::arguments(tokens, open)
    } else {
        Vec::new()
    }
}

/// Whether the word at an index is called on one of the variables, or on what such a call gave (`m.def(…).def(…)`).
fn is_method_of(tokens: &[Placed<'_>], index: usize, variables: &[&str]) -> bool {
    let mut dot = index;
    loop {
        if dot < 2 || !tokens[dot - 1].is_mark('.') {
            return false;
        }
        match tokens[dot - 2].token {
            Token::Word(word) => return variables.contains(&word),
            Token::Mark(')') => {}
            _ => return false,
        }
        let Some(open) = opening(tokens, dot - 2) else { return false };
        let is_def = open > 0 && tokens[open - 1].is_word("def");
        if !is_def {
            return false;
        }
        dot = open - 1;
    }
}

/// The index of the parenthesis that the one at `close` closes.
fn opening(tokens: &[Placed<'_>], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for index in (0..=close).rev() {
        if tokens[index].is_mark(')') {
            depth += 1;
        } else if tokens[index].is_mark('(') {
            depth -= 1;
            if depth == 0 {
                return Some(index);
            }
        }
    }
    None
}

/// `m.def("name", &function, "doc", …)`.
fn pybind_function(path: &str, tokens: &[Placed<'_>], index: usize) -> Option<Entry> {
    let arguments = call_at(tokens, index + 1);
    let name = one_text(arguments.first()?)?;
    // Schemas of torch have their arguments in the text.
    let name = name.split(['(', ' ']).next()?.to_owned();
    let native = arguments.get(1).and_then(|argument| {
        let is_lambda = argument.first()?.is_mark('[');
        if is_lambda { None } else { last_word(argument) }
    });
    let alone = arguments
        .iter()
        .skip(2)
        .find(|argument| !argument.is_empty() && argument.iter().all(|placed| matches!(placed.token, Token::Text(_))));
    let doc = alone.and_then(|argument| tokens::text_of(argument, &BTreeMap::new()));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| Entry {
        name,
        native: native.map(str::to_owned),
        doc,
        is_class: false,
        place: Place::new(path, tokens[index].line),
    })
}

/// `py::class_<Native>(m, "Name", …)`.
fn pybind_class(path: &str, tokens: &[Placed<'_>], index: usize) -> Option<Entry> {
    let open = index + tokens[index..].iter().take(60).position(|placed| placed.is_mark('('))?;
    let arguments = tokens::arguments(tokens, open);
    let name = one_text(arguments.get(1)?)?;
    let native = last_word(&tokens[index + 1..open]).map(str::to_owned);
    // A variable may stand between the type and the parenthesis.
    let doc = arguments.get(2).filter(|argument| argument.len() == 1).and_then(|argument| one_text(argument));
    Some(Entry { name, native, doc, is_class: true, place: Place::new(path, tokens[index].line) })
}

/// Names at the left margin of a Cython file: `def`, `cpdef`, `class`, `cdef class`.
fn cython(path: &str, text: &str) -> Offer {
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".pyx");
    let mut offer = Offer { modules: vec![stem.to_owned()], ..Offer::default() };
    for (index, line) in text.lines().enumerate() {
        let rest = ["def ", "async def ", "cpdef ", "class ", "cdef class ", "cpdef enum ", "cdef public class "]
            .iter()
            .find_map(|start| Some((*start, line.strip_prefix(start)?)));
        let Some((start, rest)) = rest else { continue };
        let is_class = start.contains("class") || start.contains("enum");
        let head = rest.split(['(', ':']).next().unwrap_or_default();
        // cpdef has a type before the name.
        let name =
            head.split_whitespace().rfind(|word| !["nogil", "inline", "except"].contains(word)).unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name {
            let (name, place) = (name.trim_start_matches('*').to_owned(), Place::new(path, index + 1));
            offer.entries.push(Entry { native: Some(name.clone()), name, doc: None, is_class, place });
        }
    }
    offer
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &Expect) {
        let offer = read(path, text);
        let mut shown = format!("modules {:?}\n", offer.modules);
        for entry in &offer.entries {
            let kind = if entry.is_class { "class" } else { "function" };
            let native = entry.native.as_deref().unwrap_or("-");
            let (name, line, doc) = (&entry.name, entry.place.line, &entry.doc);
            let _ = writeln!(shown, "{kind} {name} = {native}, line {line}, {doc:?}");
        }
        for (what, place) in &offer.others {
            let _ = writeln!(shown, "{what}, line {}", place.line);
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn tables_of_modules_are_told_from_those_of_classes() {
        check(
            "m.c",
            "#define DOC \"adds \" \"two\"\n\
             static PyMethodDef thing_methods[] = {{\"close\", thing_close, METH_NOARGS, NULL}, {NULL}};\n\
             static PyMethodDef methods[] = {\n\
             \x20 {\"add\", (PyCFunction)(void(*)(void))py_add, METH_VARARGS | METH_KEYWORDS, DOC},\n\
             \x20 {.ml_name = \"sub\", .ml_meth = py_sub, .ml_flags = METH_O},\n\
             \x20 {NULL, NULL, 0, NULL}\n};\n\
             static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, \"m\", NULL, -1, methods};\n\
             PyMODINIT_FUNC PyInit_m(void) { PyModule_AddObject(m, \"Thing\", (PyObject *)&ThingType);\n PyModule_AddIntConstant(m, \"LIMIT\", 3); }\n",
            &expect![[r#"
                modules ["m"]
                function add = py_add, line 4, Some("adds two")
                function sub = py_sub, line 5, None
                class Thing = ThingType, line 9, None
                the member LIMIT, line 10
            "#]],
        );
    }

    #[test]
    fn tables_of_classes_are_left_out_where_the_module_is_made_by_a_macro() {
        check(
            "c.cpp",
            "static PyMethodDef of_class[] = {{\"close\", c, 1, NULL}};\nstatic PyTypeObject T = { HEAD \"x.T\", sizeof(T), of_class, };\nstatic PyMethodDef of_module[] = {{\"open\", o, 1, NULL}};\nMOD_INIT(c) {}\n",
            &expect![[r#"
                modules ["c"]
                function open = o, line 3, None
            "#]],
        );
    }

    #[test]
    fn rows_that_a_macro_makes_are_found() {
        check(
            "t.cpp",
            "static PyMethodDef methods[] = {\n#define declare(f) \\\n  { #f , ( PyCFunction )f , METH_VARARGS , NULL }\n  declare(one),\n  declare(two),\n  OTHER(three),\n  { NULL },\n#undef declare\n};\nMOD_INIT(_t) {}\n",
            &expect![[r#"
                modules ["_t"]
                function one = one, line 4, None
                function two = two, line 5, None
            "#]],
        );
    }

    #[test]
    fn functions_and_classes_of_pybind11_are_found() {
        check(
            "m.cpp",
            "PYBIND11_MODULE(_ext, m) {\n m.def(\"f\", &ns::f, \"doc\", py::arg(\"x\"));\n m.def(\"g\", [](int x) { return x; })\n  .def(\"h\", &h);\n\
             py::class_<Point>(m, \"Point\").def(py::init<>()).def(\"norm\", &Point::norm);\n}\n\
             TORCH_LIBRARY(ops, m) { m.def(\"mul(Tensor a) -> Tensor\"); }\n",
            &expect![[r#"
                modules ["_ext"]
                function f = f, line 2, Some("doc")
                function g = -, line 3, None
                function h = h, line 4, None
                class Point = Point, line 5, None
                function mul = -, line 7, None
                operators of torch in TORCH_LIBRARY(ops), line 7
            "#]],
        );
    }

    #[test]
    fn names_of_cython_are_those_at_the_margin() {
        check(
            "pkg/fast.pyx",
            "cimport numpy\ndef total(double[:] x):\n    def inner(): pass\ncpdef double mean(double[:] x) nogil:\n    pass\ncdef class Grid:\n    def close(self): pass\ncdef int hidden(): pass\n",
            &expect![[r#"
                modules ["fast"]
                function total = total, line 2, None
                function mean = mean, line 4, None
                class Grid = Grid, line 6, None
            "#]],
        );
    }
}
