//! The overload for the arguments of a call: their types, and the kernel that was made for these or is made now.

use std::sync::Arc;
use std::time::Duration;

use cuwheel_device_array::{ArrayView, DType, Device, MemoryKind};
use cuwheel_dispatcher::specialize::{ArgumentType, Failure, Making, Recursion, Specializations, Template, capability};
use cuwheel_exchange::{AnyArray, exception_of};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex};
use smallvec::SmallVec;

use super::configured::Args;
use super::pack::{self, Found};
use super::{PyKernel, scalar};
use crate::devicearray::DeviceArray;
use crate::exception;

/// A kernel for arguments of some types.
pub(super) struct Overload {
    /// The types that it was made for; `None` where an argument decides nothing.
    pub(super) types: Box<[Option<ArgumentType>]>,
    pub(super) kernel: Py<PyKernel>,
}

/// The overloads of a dispatcher.
pub(super) type Overloads = Specializations<Overload, SharedError>;

/// An exception that several threads raise.
#[derive(Clone)]
pub(super) struct SharedError(Arc<PyErr>);

/// How long a thread that waits for another's compiler lets Ctrl-C wait.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// More arguments are kept on the heap.
const ARGUMENTS: usize = 16;

/// The arguments of a call, looked at once.
pub(super) struct Typed<'a, 'py> {
    /// What each is, to be packed from.
    pub(super) found: SmallVec<[Found<'a, 'py>; ARGUMENTS]>,
    pub(super) types: SmallVec<[Option<ArgumentType>; ARGUMENTS]>,
    /// The compute capability that code is made for, and what counts of each type.
    key: SmallVec<[u64; ARGUMENTS + 1]>,
    /// The device of the arrays.
    pub(super) device: Option<Device>,
    is_bound: bool,
}

impl<'a, 'py> Typed<'a, 'py> {
    /// Room for the arguments. Apart from [`fill`](Self::fill) so that the room is where they stay.
    #[inline]
    pub(super) fn new() -> Self {
        let (found, types, key) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        Self { found, types, key, device: None, is_bound: false }
    }

    /// Looks at the arguments. `template` says which of them matter; without one all do.
    #[inline]
    pub(super) fn fill(
        &mut self,
        py: Python<'py>,
        args: &Args<'a, 'py>,
        template: Option<&Template>,
        any_device: bool,
    ) -> PyResult<()> {
        self.key.push(0);
        for (position, value) in args.iter().copied().enumerate() {
            match template {
                None => self.add_any(position, value, u64::MAX, None)?,
                Some(template) => {
                    let mask = template.masks()[position];
                    if template.takes_array(position) {
                        self.add_array(position, value, mask, Some(template))?;
                    } else if mask == 0 {
                        self.push(Found::Value, None, 0);
                    } else {
                        self.add_any(position, value, mask, Some(template))?;
                    }
                }
            }
        }
        if !any_device {
            let of_device = self.device.map_or_else(Device::current, Ok).and_then(capability);
            self.key[0] = of_device.map_err(|error| exception_of(py, error))?.into();
        }
        Ok(())
    }

    /// The compute capability, if code is made for one.
    pub(super) fn capability(&self) -> Option<u32> {
        u32::try_from(self.key[0]).ok().filter(|number| *number > 0)
    }

    #[inline]
    fn push(&mut self, found: Found<'a, 'py>, kind: Option<ArgumentType>, mask: u64) {
        self.found.push(found);
        self.types.push(kind);
        self.key.push(kind.map_or(0, |kind| kind.bits() & mask));
    }

    /// A number or an array.
    #[inline]
    fn add_any(
        &mut self,
        position: usize,
        value: Borrowed<'a, 'py, PyAny>,
        mask: u64,
        template: Option<&Template>,
    ) -> PyResult<()> {
        match number(&value)? {
            Some(dtype) => {
                self.push(Found::Value, Some(ArgumentType::number(dtype)), mask);
                Ok(())
            }
            None => self.add_array(position, value, mask, template),
        }
    }

    #[inline]
    fn add_array(
        &mut self,
        position: usize,
        value: Borrowed<'a, 'py, PyAny>,
        mask: u64,
        template: Option<&Template>,
    ) -> PyResult<()> {
        let found = if let Some(own) = DeviceArray::known(value) {
            Found::Own(own)
        } else {
            match value.extract::<AnyArray<'_, '_>>() {
                Ok(array) => Found::Foreign(array),
                Err(error) => return Err(no_array(position, &value, template, error)),
            }
        };
        let view: &ArrayView = match &found {
            Found::Own(own) => &own.get().array,
            Found::Foreign(array) => array,
            Found::Value => return Ok(()),
        };
        let kind = ArgumentType::of(view);
        let is_bound = view.kind() == MemoryKind::Device;
        if self.device.is_none() || is_bound && !self.is_bound {
            self.device = Some(view.device());
            self.is_bound = is_bound;
        }
        self.push(found, Some(kind), mask);
        Ok(())
    }

    /// The overload, made if there is none.
    #[inline]
    pub(super) fn overload<'b>(
        &self,
        py: Python<'py>,
        overloads: &'b Overloads,
        make: impl Fn(&Self) -> PyResult<Py<PyKernel>>,
    ) -> PyResult<&'b Overload> {
        match overloads.get(&self.key) {
            Some(overload) => Ok(overload),
            None => self.make(py, overloads, &make),
        }
    }

    #[cold]
    fn make<'b>(
        &self,
        py: Python<'py>,
        overloads: &'b Overloads,
        make: &dyn Fn(&Self) -> PyResult<Py<PyKernel>>,
    ) -> PyResult<&'b Overload> {
        loop {
            if let Some(overload) = overloads.get(&self.key) {
                return Ok(overload);
            }
            let making = overloads.make(&self.key);
            match making.map_err(|error: Recursion| exception::new::<PyRuntimeError>(py, error.to_string()))? {
                Making::Lead(lead) => {
                    let make = || match make(self) {
                        Ok(kernel) => Ok(Overload { types: self.types.iter().copied().collect(), kernel }),
                        // An interrupt is for this thread only.
                        Err(error) if !error.is_instance_of::<PyException>(py) => {
                            Err(Failure::Own(SharedError(error.into())))
                        }
                        Err(error) => Err(Failure::Shared(SharedError(error.into()))),
                    };
                    return lead.make(make).map_err(|error| error.0.clone_ref(py));
                }
                Making::Wait(flight) => match py.detach(|| flight.wait(SIGNALS_EVERY)) {
                    Some(result) => result.map_err(|error| error.0.clone_ref(py))?,
                    None => py.check_signals()?,
                },
            }
        }
    }
}

/// The type of a number; `None` for anything else.
#[inline]
fn number(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    // SAFETY: the thread is attached, and `value` is a live object; the checks only look at its type.
    let (is_float, is_integer) =
        unsafe { (ffi::PyFloat_CheckExact(value.as_ptr()) != 0, ffi::PyLong_CheckExact(value.as_ptr()) != 0) };
    if is_integer {
        return Ok(Some(DType::Int64));
    }
    if is_float {
        return Ok(Some(DType::Float64));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Some(DType::Bool));
    }
    if DeviceArray::known(value.as_borrowed()).is_some() {
        return Ok(None);
    }
    other_number(value)
}

fn other_number(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    // Scalars of NumPy first: some are floating-point numbers of Python as well.
    if let Some(dtype) = scalar::numpy_type(value)? {
        return Ok(Some(dtype));
    }
    // SAFETY: as above.
    let (is_float, is_integer) =
        unsafe { (ffi::PyFloat_Check(value.as_ptr()) != 0, ffi::PyLong_Check(value.as_ptr()) != 0) };
    Ok(if is_integer {
        Some(DType::Int64)
    } else if is_float {
        Some(DType::Float64)
    } else if value.is_instance_of::<PyComplex>() {
        Some(DType::Complex128)
    } else {
        None
    })
}

#[cold]
fn no_array(position: usize, value: &Bound<'_, PyAny>, template: Option<&Template>, error: PyErr) -> PyErr {
    let place = template.map_or_else(|| format!("argument {position}"), |template| template.place(position));
    let parameter = template.and_then(|template| template.parameters().nth(position).map(str::to_owned));
    if let Some(parameter) = parameter.as_ref().filter(|_| template.is_some_and(|known| !known.takes_array(position))) {
        let class = exception::type_name(value);
        let message = format!("{place}: {class} is no number, and the parameter is {parameter}");
        return exception::new::<PyTypeError>(value.py(), message);
    }
    pack::no_array(&place, parameter.as_deref(), value, error)
}
