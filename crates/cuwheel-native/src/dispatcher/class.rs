//! The class `Dispatcher`, and a plainer one: the overloads of one function.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use cuwheel_dispatcher::{ConversionTable, Overloads};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCFunction, PyDict, PyTuple};

use super::argument;
use super::fold::Parameters;
use super::type_of::TypeOf;
use crate::{exception, numba_launch, number, type_manager};

/// Base class of dispatchers: chooses the overload that is for the arguments of a call.
///
/// `__init__(tm_pointer, argct, fold_args, argnames, defargs, can_fallback, has_stararg=0, exact_match_required=0)`
/// must be called before anything else. Its arguments are positional; keywords are ignored, and so are all arguments of
/// `__new__`. Called again, it forgets all overloads.
///
/// Args:
///     tm_pointer: What `get_pointer` of the `_typeconv` beside this module returned.
///     argct: The number of parameters.
///     fold_args: Whether arguments by name and defaults are brought into the order of the parameters.
///     argnames: The tuple of the parameters' names.
///     defargs: The tuple of the defaults of the last parameters.
///     can_fallback: Whether an argument that cannot be typed fits no overload, instead of raising an exception.
///     has_stararg: Whether the last parameter is a tuple of further arguments.
///     exact_match_required: Whether arguments are never converted.
///
/// Raises:
///     TypeError: An argument is of the wrong type, or their number is wrong.
///     ValueError: `tm_pointer` is no type manager, or `argct` negative.
///     OverflowError: An integer does not fit.
#[pyclass(subclass, frozen, module = "_dispatcher")]
pub(crate) struct Dispatcher {
    can_compile: AtomicBool,
    folds_arguments: AtomicBool,
    /// Fixed by the first call with arguments.
    type_of: OnceLock<Arc<TypeOf>>,
    /// Nothing runs Python code, nor waits for a thread that might, while the lock is held.
    setup: RwLock<Option<Setup>>,
}

/// A `Dispatcher` that knows no keyword for the launch configuration: every keyword is one of the function's.
#[pyclass(extends = Dispatcher, subclass, frozen, module = "_dispatcher")]
pub(super) struct PlainDispatcher;

/// A `Dispatcher` for kernels of numba-cuda: what is inserted gets a `launch` of this library where it can have one, and
/// arrays with an exchange table are typed without asking Python about each.
#[pyclass(extends = Dispatcher, subclass, frozen, module = "_dispatcher")]
pub(super) struct LaunchingDispatcher;

/// What `__init__` says, and the overloads added since.
pub(super) struct Setup {
    pub(super) conversions: Arc<ConversionTable>,
    pub(super) parameters: Parameters,
    pub(super) can_fall_back: bool,
    pub(super) requires_exact: bool,
    pub(super) overloads: Overloads<Py<PyAny>>,
    /// Called when nothing else fits.
    pub(super) fallback: Option<Py<PyAny>>,
}

impl Setup {
    /// `"OiiO!O!i|ii"`, in terms of Python's C API. The flag says whether arguments are folded.
    fn of_arguments(arguments: &Bound<'_, PyTuple>) -> PyResult<(Self, bool)> {
        let (py, count) = (arguments.py(), arguments.len());
        let limit = if count < 6 {
            Some("at least 6")
        } else if count > 8 {
            Some("at most 8")
        } else {
            None
        };
        if let Some(limit) = limit {
            let message = format!("function takes {limit} arguments ({count} given)");
            return Err(exception::new::<PyTypeError>(py, message));
        }
        let integer = |index: usize| number::int_argument(&arguments.get_item(index)?);
        let flag = |index: usize| if index < count { Ok::<_, PyErr>(integer(index)? != 0) } else { Ok(false) };
        let tuple = |index: usize| -> PyResult<Py<PyTuple>> {
            let value = arguments.get_item(index)?;
            Ok(argument::<PyTuple>(&value, &format!("argument {}", index + 1), "tuple")?.clone().unbind())
        };
        let parameter_count = integer(1)?;
        let folds_arguments = flag(2)?;
        let (names, defaults) = (tuple(3)?, tuple(4)?);
        let (can_fall_back, has_further, requires_exact) = (flag(5)?, flag(6)?, flag(7)?);
        let conversions = type_manager::by_handle(py, number::handle(&arguments.get_item(0)?)?)?;
        let overloads = overloads(py, parameter_count, has_further && !folds_arguments)?;
        let parameters = Parameters { names, defaults, has_further };
        let setup = Self { conversions, parameters, can_fall_back, requires_exact, overloads, fallback: None };
        Ok((setup, folds_arguments))
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.parameters.names)?;
        visit.call(&self.parameters.defaults)?;
        for implementation in self.overloads.iter() {
            visit.call(implementation)?;
        }
        visit.call(&self.fallback)
    }
}

fn overloads(py: Python<'_>, parameter_count: c_int, is_variadic: bool) -> PyResult<Overloads<Py<PyAny>>> {
    let Ok(parameter_count) = usize::try_from(parameter_count) else {
        let message = format!("argct must be the number of parameters, not {parameter_count}");
        return Err(exception::new::<PyValueError>(py, message));
    };
    Ok(if is_variadic { Overloads::variadic() } else { Overloads::new(parameter_count) })
}

impl Dispatcher {
    fn new_uninitialised() -> Self {
        Self {
            can_compile: AtomicBool::new(false),
            folds_arguments: AtomicBool::new(false),
            type_of: OnceLock::new(),
            setup: RwLock::new(None),
        }
    }

    pub(super) fn can_compile_now(&self) -> bool {
        self.can_compile.load(Ordering::Relaxed)
    }

    pub(super) fn folds_arguments(&self) -> bool {
        self.folds_arguments.load(Ordering::Relaxed)
    }

    /// How arguments are typed, once one was.
    pub(super) fn known_type_of(&self) -> Option<&TypeOf> {
        self.type_of.get().map(Arc::as_ref)
    }

    /// How arguments are typed.
    pub(super) fn type_of(&self, py: Python<'_>) -> PyResult<&TypeOf> {
        if let Some(type_of) = self.type_of.get() {
            return Ok(type_of);
        }
        let current = TypeOf::required(py)?;
        Ok(self.type_of.get_or_init(|| current))
    }

    /// What `read` makes of what `__init__` said. It runs under a lock and must not run Python code.
    pub(super) fn with_setup<R>(&self, py: Python<'_>, read: impl FnOnce(&Setup) -> R) -> PyResult<R> {
        let setup = self.setup.read().unwrap_or_else(PoisonError::into_inner);
        let result = setup.as_ref().map(read);
        drop(setup);
        result.ok_or_else(|| not_initialised(py))
    }

    /// Replaces what `__init__` said; what was said before is returned, to be dropped without the lock.
    #[must_use]
    fn replace(&self, setup: Option<Setup>) -> Option<Setup> {
        std::mem::replace(&mut *self.setup.write().unwrap_or_else(PoisonError::into_inner), setup)
    }
}

fn not_initialised(py: Python<'_>) -> PyErr {
    let message = "the dispatcher is not initialised; call Dispatcher.__init__ first";
    exception::new::<PyRuntimeError>(py, message)
}

#[pymethods]
impl Dispatcher {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::new_uninitialised()
    }

    #[pyo3(signature = (*args, **_kwargs))]
    fn __init__(&self, args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let (setup, folds_arguments) = Setup::of_arguments(args)?;
        self.folds_arguments.store(folds_arguments, Ordering::Relaxed);
        self.can_compile.store(true, Ordering::Relaxed);
        drop(self.replace(Some(setup)));
        Ok(())
    }

    /// Forget all overloads.
    fn _clear(&self) {
        let mut setup = self.setup.write().unwrap_or_else(PoisonError::into_inner);
        let removed = setup.as_mut().map(|setup| (setup.overloads.clear(), setup.fallback.take()));
        drop(setup);
        // Not under the lock: it may run code.
        drop(removed);
    }

    /// Add an overload.
    ///
    /// Args:
    ///     sig: The codes of the types of its parameters.
    ///     func: What `_cuda_call` returns for arguments of these types; it is kept alive.
    ///     objectmode: Whether `func` is also called when nothing fits and nothing can be compiled.
    ///     cuda: Whether `func` may be any object; otherwise it must be a function written in C.
    ///
    /// Raises:
    ///     TypeError: `func` is no such function, or `sig` no iterable of integers.
    ///     ValueError: `sig` has another number of types than there are parameters.
    ///     OverflowError: A code does not fit in 31 bits.
    #[pyo3(name = "_insert", signature = (sig, func, objectmode = 0, cuda = false))]
    fn insert(
        &self,
        sig: &Bound<'_, PyAny>,
        func: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::int_argument)] objectmode: c_int,
        #[pyo3(from_py_with = Bound::is_truthy)] cuda: bool,
    ) -> PyResult<()> {
        let py = func.py();
        if !cuda && !func.is_instance_of::<PyCFunction>() {
            return Err(exception::new::<PyTypeError>(py, "must be builtin_function_or_method"));
        }
        let signature = number::type_codes(sig)?;
        let (implementation, fallback) = (func.clone().unbind(), (objectmode != 0).then(|| func.clone().unbind()));
        let mut setup = self.setup.write().unwrap_or_else(PoisonError::into_inner);
        let Some(changed) = setup.as_mut() else {
            drop(setup);
            return Err(not_initialised(py));
        };
        let inserted = changed.overloads.insert(signature, implementation);
        let replaced = match fallback {
            Some(fallback) if inserted.is_ok() => changed.fallback.replace(fallback),
            other => other,
        };
        drop(setup);
        // Not under the lock: it may run code.
        drop(replaced);
        inserted.map_err(|error| exception::new::<PyValueError>(py, error.to_string()))
    }

    /// Whether overloads are compiled for arguments of new types.
    #[getter(_can_compile)]
    fn get_can_compile(&self) -> bool {
        self.can_compile_now()
    }

    #[setter(_can_compile)]
    fn set_can_compile(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(value) = value.cast_exact::<PyBool>() else {
            return Err(exception::new::<PyTypeError>(value.py(), "attribute value type must be bool"));
        };
        self.can_compile.store(value.is_true(), Ordering::Relaxed);
        Ok(())
    }

    #[deleter(_can_compile)]
    #[expect(clippy::unused_self, reason = "Python passes the object")]
    fn delete_can_compile(&self, py: Python<'_>) -> PyResult<()> {
        Err(exception::new::<PyTypeError>(py, "can't delete numeric/char attribute"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread that holds the lock is not seen here, since it neither waits nor runs Python code meanwhile. Should one
        // be, objects that are not visited are merely kept.
        let Ok(setup) = self.setup.try_read() else { return Ok(()) };
        setup.as_ref().map_or(Ok(()), |setup| setup.traverse(&visit))
    }

    fn __clear__(&self) {
        drop(self.replace(None));
    }
}

#[pymethods]
impl PlainDispatcher {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Dispatcher::new_uninitialised()).add_subclass(Self)
    }
}

#[pymethods]
impl LaunchingDispatcher {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Dispatcher::new_uninitialised()).add_subclass(Self)
    }

    /// Add an overload, and see to its launches.
    ///
    /// Args:
    ///     sig, func, objectmode, cuda: As for `Dispatcher`. Where `func` is a kernel of numba-cuda and `cuda` is true, it
    ///         gets an attribute `launch`, and the dispatcher an attribute `call`, unless the environment variable `CUWHEEL_NUMBA_LAUNCH` is 0.
    ///
    /// Raises:
    ///     What `Dispatcher._insert` raises.
    #[pyo3(name = "_insert", signature = (sig, func, objectmode = 0, cuda = false))]
    fn insert(
        slf: &Bound<'_, Self>,
        sig: &Bound<'_, PyAny>,
        func: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::int_argument)] objectmode: c_int,
        #[pyo3(from_py_with = Bound::is_truthy)] cuda: bool,
    ) -> PyResult<()> {
        let dispatcher = slf.as_super();
        dispatcher.get().insert(sig, func, objectmode, cuda)?;
        if cuda { numba_launch::attach(dispatcher, func) } else { Ok(()) }
    }
}
