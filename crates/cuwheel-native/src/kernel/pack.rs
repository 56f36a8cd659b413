//! One argument into its parameter.

use cuwheel_device_array::{Array, ArrayView, stream};
use cuwheel_dispatcher::launch::{Argument, Arguments, Kernel, MixedDevices, Parameter, ParameterType, Placement};
use cuwheel_exchange::{AnyArray, exception_of};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyTuple};

use super::{place, scalar};
use crate::devicearray::DeviceArray;
use crate::exception;

/// An argument that was looked at before it is packed.
#[expect(
    clippy::large_enum_variant,
    reason = "it lies on the stack, for the length of a launch that allocates nothing"
)]
pub(super) enum Found<'a, 'py> {
    /// One of our own arrays.
    Own(Borrowed<'a, 'py, DeviceArray>),
    /// An array of another library.
    Foreign(AnyArray<'a, 'py>),
    /// Anything else, to be looked at.
    Value,
}

/// A launch in the making.
pub(super) struct Packing<'a, 'py> {
    pub(super) kernel: &'a Kernel,
    pub(super) args: &'a Bound<'py, PyTuple>,
    pub(super) arguments: Arguments,
    pub(super) placement: Placement,
    /// Shares of arrays whose owner does not keep their memory.
    pub(super) shares: Vec<Array>,
}

impl Packing<'_, '_> {
    /// Puts a value where its parameter is. What is `known` of it is not looked at again.
    #[inline]
    pub(super) fn add(
        &mut self,
        position: usize,
        parameter: &Parameter,
        value: Borrowed<'_, '_, PyAny>,
        known: Option<&mut Found<'_, '_>>,
    ) -> PyResult<()> {
        let own = match known {
            Some(Found::Foreign(array)) => return self.add_known(position, parameter, array),
            Some(Found::Own(own)) => Some(*own),
            Some(Found::Value) | None => value.cast::<DeviceArray>().ok(),
        };
        if let Some(own) = own {
            let view: &ArrayView = &own.get().array;
            // Of our own arrays the memory may be used on another stream than the one that this thread works on.
            return self.add_array(position, parameter, view, true);
        }
        match parameter.kind {
            ParameterType::Scalar(dtype) => match scalar::pack(&value, dtype) {
                Ok((bytes, size)) => {
                    self.arguments.set(parameter, &bytes[..size]);
                    Ok(())
                }
                Err(refusal) => {
                    Err(refusal.exception(&value, &self.place(position, parameter), &parameter.kind.to_string()))
                }
            },
            ParameterType::Unknown { size_bytes } => self.add_unknown(position, parameter, size_bytes, value),
            ParameterType::Pointer { .. } | ParameterType::View { .. } => self.add_foreign(position, parameter, value),
        }
    }

    fn add_unknown(
        &mut self,
        position: usize,
        parameter: &Parameter,
        size_bytes: usize,
        value: Borrowed<'_, '_, PyAny>,
    ) -> PyResult<()> {
        match scalar::pack_unknown(&value, size_bytes) {
            Ok((bytes, size)) => {
                self.arguments.set(parameter, &bytes[..size]);
                Ok(())
            }
            Err(scalar::Refusal::NoNumber) => self.add_foreign(position, parameter, value),
            Err(refusal) => {
                Err(refusal.exception(&value, &self.place(position, parameter), &parameter.kind.to_string()))
            }
        }
    }

    /// An array of another library.
    fn add_foreign(&mut self, position: usize, parameter: &Parameter, value: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
        let array = match value.extract::<AnyArray<'_, '_>>() {
            Ok(array) => array,
            Err(error) => {
                let (place, kind) = (self.place(position, parameter), parameter.kind.to_string());
                return Err(no_array(&place, Some(&kind), &value, error));
            }
        };
        self.add_array(position, parameter, &array, false)?;
        self.shares.extend(array.into_share());
        Ok(())
    }

    /// One that was looked at. Apart, so that what it shares with the others stays a part of these.
    #[inline(never)]
    fn add_known(&mut self, position: usize, parameter: &Parameter, array: &mut AnyArray<'_, '_>) -> PyResult<()> {
        self.add_array(position, parameter, array, false)?;
        self.shares.extend(array.take_share());
        Ok(())
    }

    #[inline]
    fn add_array(&mut self, position: usize, parameter: &Parameter, array: &ArrayView, is_own: bool) -> PyResult<()> {
        if let Err(error) = self.arguments.set_array(parameter, array) {
            return Err(exception_of(self.args.py(), Argument::refused(self.kernel, position, parameter, error)));
        }
        let current = || stream::current(array.device());
        let current: Option<&dyn Fn() -> _> = if is_own { Some(&current) } else { None };
        self.placement.add(array, current).map_err(|MixedDevices| place::mixed_devices(self.kernel, self.args))
    }

    /// Which argument a message is about.
    fn place(&self, position: usize, parameter: &Parameter) -> String {
        Argument::place(self.kernel, position, parameter)
    }
}

/// What is wrong with an argument that is no array.
#[cold]
pub(super) fn no_array(place: &str, parameter: Option<&str>, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = value.py();
    let is_number = value.is_none()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyComplex>();
    if let Some(parameter) = parameter.filter(|_| is_number) {
        let class = exception::type_name(value);
        return exception::new::<PyTypeError>(
            py,
            format!("{place}: {class} is no array, and the parameter is {parameter}"),
        );
    }
    // The exception is the producer's: what is added is which argument it is about.
    match error.value(py).call_method1(intern!(py, "add_note"), (place,)) {
        Ok(_) => error,
        Err(failed) => failed,
    }
}
