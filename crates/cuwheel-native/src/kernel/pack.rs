//! One argument into its parameter.

use std::mem;

use cuwheel_device_array::{Array, ArrayView, Stream, stream};
use cuwheel_dispatcher::launch::{
    Argument, ArgumentError, Arguments, ArrayArgument, Kernel, MixedDevices, Parameter, ParameterType, Placement,
};
use cuwheel_exchange::{AnyArray, ProducerStream, describe_for_work, exception_of};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt};

use super::configured::Args;
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
    pub(super) py: Python<'py>,
    pub(super) kernel: &'a Kernel,
    pub(super) args: &'a Args<'a, 'py>,
    pub(super) arguments: Arguments,
    pub(super) placement: Placement,
    pub(super) streams: ProducerStream,
    /// Shares of arrays whose owner does not keep their memory.
    pub(super) shares: Shares,
}

/// Shares of arrays, which may be references to objects of Python.
pub(super) struct Shares(pub(super) Vec<Array>);

impl Drop for Shares {
    #[inline]
    fn drop(&mut self) {
        #[cold]
        fn drop_all(shares: &mut Vec<Array>) {
            // As for getting them.
            Python::attach(|_| shares.clear());
        }

        if !self.0.is_empty() {
            drop_all(&mut self.0);
        }
    }
}

impl<'a, 'py> Packing<'a, 'py> {
    /// A launch without parameters so far. Apart from what clears the room for them, so that the room is where they stay.
    #[inline]
    pub(super) fn new(py: Python<'py>, kernel: &'a Kernel, stream: Option<Stream>, args: &'a Args<'a, 'py>) -> Self {
        let (arguments, placement) = (Arguments::empty(), Placement::new(stream));
        Self { py, kernel, args, arguments, placement, streams: ProducerStream::default(), shares: Shares(Vec::new()) }
    }

    /// Puts a value where its parameter is.
    #[inline]
    pub(super) fn add(
        &mut self,
        position: usize,
        parameter: &Parameter,
        value: Borrowed<'_, '_, PyAny>,
    ) -> PyResult<()> {
        match DeviceArray::known(value) {
            Some(own) => self.add_own(position, parameter, own),
            None => self.add_other(position, parameter, value),
        }
    }

    /// The same with a value that was looked at.
    #[inline]
    pub(super) fn add_found(
        &mut self,
        position: usize,
        parameter: &Parameter,
        value: Borrowed<'_, '_, PyAny>,
        found: &mut Found<'_, '_>,
    ) -> PyResult<()> {
        match found {
            Found::Own(own) => self.add_own(position, parameter, *own),
            Found::Foreign(array) => {
                self.add_array(position, parameter, &**array, array.stream(), || array.stream().clone())?;
                self.shares.0.extend(array.take_share());
                Ok(())
            }
            Found::Value => self.add(position, parameter, value),
        }
    }

    /// One of our own arrays.
    #[inline]
    fn add_own(&mut self, position: usize, parameter: &Parameter, own: Borrowed<'_, '_, DeviceArray>) -> PyResult<()> {
        let view: &ArrayView = &own.get().array;
        // The memory may be used on another stream than the one that this thread works on.
        self.add_array(position, parameter, view, view.stream(), || stream::current(view.device()))
    }

    /// A number, or an array of another library. Apart, so that launches without need no room for it.
    #[inline(never)]
    fn add_other(&mut self, position: usize, parameter: &Parameter, value: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
        match parameter.kind {
            ParameterType::Pointer { .. } | ParameterType::View { .. } => self.add_foreign(position, parameter, value),
            ParameterType::Scalar(dtype) => {
                let packed = scalar::pack(&value, dtype);
                self.add_number(position, parameter, value, packed)
            }
            ParameterType::Unknown { size_bytes } => match scalar::pack_unknown(&value, size_bytes) {
                Err(scalar::Refusal::NoNumber) => self.add_foreign(position, parameter, value),
                packed => self.add_number(position, parameter, value, packed),
            },
        }
    }

    #[inline]
    fn add_number(
        &mut self,
        position: usize,
        parameter: &Parameter,
        value: Borrowed<'_, '_, PyAny>,
        packed: Result<scalar::Packed, scalar::Refusal>,
    ) -> PyResult<()> {
        // Numbers of other classes than Python's own have run code.
        self.streams.forget();
        match packed {
            Ok((bytes, size)) => {
                self.arguments.set(parameter, &bytes[..size]);
                Ok(())
            }
            Err(refusal) => {
                Err(refusal.exception(&value, &self.place(position, parameter), &parameter.kind.to_string()))
            }
        }
    }

    /// An array of another library.
    #[inline]
    fn add_foreign(&mut self, position: usize, parameter: &Parameter, value: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
        let mut streams = mem::take(&mut self.streams);
        let described = describe_for_work(&value, &mut streams, |array, stream| {
            self.add_array(position, parameter, array, stream, || stream.clone())
        });
        self.streams = streams;
        match described {
            Ok(Some(added)) => added,
            Ok(None) => self.add_otherwise(position, parameter, value, None),
            Err(error) => self.add_otherwise(position, parameter, value, Some(error)),
        }
    }

    /// An array of another library that has no exchange table, or whose table has not described it.
    #[cold]
    fn add_otherwise(
        &mut self,
        position: usize,
        parameter: &Parameter,
        value: Borrowed<'_, '_, PyAny>,
        first: Option<PyErr>,
    ) -> PyResult<()> {
        // PyO3 drops references at once only where it knows that the thread is attached, which calls do not tell it.
        let array = match Python::attach(|_| AnyArray::otherwise(value, first)) {
            Ok(array) => array,
            Err(error) => {
                let (place, kind) = (self.place(position, parameter), parameter.kind.to_string());
                return Err(no_array(&place, Some(&kind), &value, error));
            }
        };
        // Code of Python may have run.
        self.streams.forget();
        self.add_array(position, parameter, &*array, array.stream(), || array.stream().clone())?;
        self.shares.0.extend(array.into_share());
        Ok(())
    }

    /// An array whose memory is used in the order of `own`, and whose producer works on `current`.
    #[inline]
    fn add_array(
        &mut self,
        position: usize,
        parameter: &Parameter,
        array: &impl ArrayArgument,
        own: &Stream,
        current: impl FnOnce() -> Stream,
    ) -> PyResult<()> {
        if let Err(error) = self.arguments.set_array(parameter, array) {
            return Err(refused(self.py, self.kernel, position, parameter, error));
        }
        let added = self.placement.add_worked_on(array, own, current);
        added.map_err(|MixedDevices| place::mixed_devices(self.py, self.kernel, self.args))
    }

    /// Which argument a message is about.
    fn place(&self, position: usize, parameter: &Parameter) -> String {
        Argument::place(self.kernel, position, parameter)
    }
}

#[cold]
fn refused(py: Python<'_>, kernel: &Kernel, position: usize, parameter: &Parameter, error: ArgumentError) -> PyErr {
    exception_of(py, Argument::refused(kernel, position, parameter, error))
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
