//! A call of a dispatcher: from arguments to an overload, or to the Python method that deals with there being none.

use cuwheel_dispatcher::{Choice, Rules, TypeCode};
use pyo3::Borrowed;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::class::Dispatcher;
use super::launch_state;
use crate::exception;
use crate::numba_launch::DescribedArrays;

/// The codes of the arguments' types; `None` where a type is not known. Up to 16 need no memory of their own.
type Codes = SmallVec<[Option<TypeCode>; 16]>;

/// Arguments, as callbacks get them.
struct Call<'a, 'py> {
    dispatcher: &'a Bound<'py, Dispatcher>,
    can_compile: bool,
    arguments: &'a [Borrowed<'a, 'py, PyAny>],
    keywords: Option<&'a Bound<'py, PyDict>>,
}

/// The object that was inserted for arguments of these types, or what becomes of a call without one. `config` is the
/// launch configuration to compile for.
pub(super) fn cuda_call<'py>(
    dispatcher: &Bound<'py, Dispatcher>,
    arguments: &[Borrowed<'_, 'py, PyAny>],
    keywords: Option<&Bound<'py, PyDict>>,
    config: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let this = dispatcher.get();
    let can_compile = this.can_compile_now();
    if this.folds_arguments() {
        let py = dispatcher.py();
        let parameters = this.with_setup(py, |setup| setup.parameters.clone_ref(py))?;
        let folded = parameters.fold(py, arguments, keywords)?;
        let arguments = &folded.iter().map(Bound::as_borrowed).collect::<Vec<_>>();
        return Call { dispatcher, can_compile, arguments, keywords: None }.resolve(config);
    }
    Call { dispatcher, can_compile, arguments, keywords }.resolve(config)
}

/// The object that was inserted for arguments of these types, if it is known without running Python code. What producers tell
/// of their arrays for it is noted in `described`.
pub(crate) fn known_overload<'py>(
    dispatcher: &Bound<'py, Dispatcher>,
    arguments: &Bound<'py, PyTuple>,
    described: &mut DescribedArrays,
) -> Option<Bound<'py, PyAny>> {
    let (py, this) = (dispatcher.py(), dispatcher.get());
    let mut codes = Codes::new();
    if !arguments.is_empty() {
        let type_of = this.known_type_of()?;
        for argument in arguments.iter_borrowed() {
            codes.push(Some(type_of.known_code(&argument, described)?));
        }
    }
    match choose(py, this, &codes, this.can_compile_now()).ok()? {
        Choice::One(implementation) if !this.folds_arguments() => Some(implementation),
        _ => None,
    }
}

fn choose<'py>(
    py: Python<'py>,
    dispatcher: &Dispatcher,
    codes: &Codes,
    can_compile: bool,
) -> PyResult<Choice<Bound<'py, PyAny>>> {
    dispatcher.with_setup(py, |setup| {
        let exact_only = can_compile || setup.requires_exact;
        let rules = Rules { exact_only, allow_unsafe: !can_compile };
        let choice = setup.overloads.choose(codes, &setup.conversions, rules);
        choice.map(|implementation| implementation.bind(py).clone())
    })
}

impl<'py> Call<'_, 'py> {
    fn resolve(&self, config: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.dispatcher.py();
        let codes = self.codes()?;
        let mut choice = self.choose(&codes)?;
        if matches!(choice, Choice::None) && !self.can_compile && self.finds_new_conversions()? {
            choice = self.choose(&codes)?;
        }
        match choice {
            Choice::One(implementation) => Ok(implementation),
            Choice::None | Choice::Ambiguous if self.can_compile => self.compile(config),
            Choice::None => match self.fallback()? {
                Some(fallback) => fallback.call(self.tuple()?, self.keywords),
                None => Err(self.explanation(intern!(py, "_explain_matching_error"), "No matching definition")),
            },
            Choice::Ambiguous => Err(self.explanation(intern!(py, "_explain_ambiguous"), "Ambiguous overloading")),
        }
    }

    fn codes(&self) -> PyResult<Codes> {
        let (py, this) = (self.dispatcher.py(), self.dispatcher.get());
        let mut codes = Codes::new();
        for argument in self.arguments {
            let type_of = this.type_of(py)?;
            match type_of.code(self.dispatcher.as_any(), argument) {
                Ok(code) => codes.push(Some(code)),
                // Compiling will look at the argument again, and say what is wrong with it.
                Err(error) if exception::is_ordinary(py, &error) && self.can_fall_back()? => codes.push(None),
                Err(error) => return Err(error),
            }
        }
        Ok(codes)
    }

    fn can_fall_back(&self) -> PyResult<bool> {
        self.dispatcher.get().with_setup(self.dispatcher.py(), |setup| setup.can_fall_back)
    }

    fn choose(&self, codes: &Codes) -> PyResult<Choice<Bound<'py, PyAny>>> {
        choose(self.dispatcher.py(), self.dispatcher.get(), codes, self.can_compile)
    }

    fn fallback(&self) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = self.dispatcher.py();
        self.dispatcher.get().with_setup(py, |setup| setup.fallback.as_ref().map(|fallback| fallback.bind(py).clone()))
    }

    fn compile(&self, config: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let work = || self.callback(intern!(self.dispatcher.py(), "_compile_for_args"));
        match config {
            Some(config) => launch_state::with_config(config, work),
            None => work(),
        }
    }

    fn finds_new_conversions(&self) -> PyResult<bool> {
        let answer = self.callback(intern!(self.dispatcher.py(), "_search_new_conversions"))?;
        let Ok(answer) = answer.cast_exact::<PyBool>() else {
            let message = "_search_new_conversions() should return a boolean";
            return Err(exception::new::<PyTypeError>(answer.py(), message));
        };
        Ok(answer.is_true())
    }

    /// The exception that the method raises; with `default` as its message if there is no such method.
    fn explanation(&self, name: &Bound<'py, PyString>, default: &str) -> PyErr {
        let py = self.dispatcher.py();
        let method = match self.dispatcher.getattr(name) {
            Ok(method) => method,
            Err(error) if exception::is_ordinary(py, &error) => return exception::new::<PyTypeError>(py, default),
            Err(error) => return error,
        };
        match self.tuple().and_then(|arguments| method.call(arguments, self.keywords)) {
            Ok(_) => exception::new::<PyRuntimeError>(py, format!("{name} must raise an exception")),
            Err(error) => error,
        }
    }

    /// The arguments as Python functions get them. A hit has no use for it.
    fn tuple(&self) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(self.dispatcher.py(), self.arguments)
    }

    fn callback(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.dispatcher.getattr(name)?.call(self.tuple()?, self.keywords)
    }
}
