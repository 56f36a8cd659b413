//! A launch out of the arguments of a call.

use cuwheel_device_array::{Device, hold_until};
use cuwheel_dispatcher::launch::{Kernel, Parameter, Signature};
use cuwheel_exchange::{AnyArray, exception_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::configure::LaunchShape;
use super::configured::Args;
use super::pack::{Found, Packing};
use super::source;
use crate::devicearray::DeviceArray;
use crate::exception;

/// Launches a kernel with `args`, on the stream of `shape` or on the one that the arrays' producers work on.
#[inline(never)]
pub(super) fn launch(py: Python<'_>, kernel: &Kernel, shape: &LaunchShape, args: &Args<'_, '_>) -> PyResult<()> {
    launch_by(py, kernel, shape, args, |packing, position, parameter, value| packing.add(position, parameter, value))
}

/// The same with what was found when the arguments were looked at.
#[inline]
pub(super) fn launch_found(
    py: Python<'_>,
    kernel: &Kernel,
    shape: &LaunchShape,
    args: &Args<'_, '_>,
    found: &mut [Found<'_, '_>],
) -> PyResult<()> {
    launch_by(py, kernel, shape, args, |packing, position, parameter, value| match found.get_mut(position) {
        Some(found) => packing.add_found(position, parameter, value, found),
        None => packing.add(position, parameter, value),
    })
}

#[inline]
fn launch_by<'a, 'py>(
    py: Python<'py>,
    kernel: &'a Kernel,
    shape: &LaunchShape,
    args: &'a Args<'a, 'py>,
    mut add: impl FnMut(&mut Packing<'a, 'py>, usize, &Parameter, Borrowed<'a, 'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let signature = kernel.signature().map_err(|error| exception_of(py, error))?;
    let parameters = signature.parameters();
    if args.len() != parameters.len() {
        return Err(wrong_count(py, kernel, signature, args.len()));
    }
    let mut packing = Packing::new(py, kernel, shape.stream.clone(), args);
    packing.arguments.clear_for(signature);
    for (position, (parameter, value)) in parameters.iter().zip(args).enumerate() {
        add(&mut packing, position, parameter, *value)?;
    }
    let Packing { arguments, placement, .. } = &packing;
    let launch = || {
        // SAFETY: the arrays are alive, since the caller has their owners or shares of them, and work that ends their memory
        // is behind the launch on its stream. What the kernel does with them is for who wrote it; who names a stream by a
        // number vouches for it.
        unsafe { placement.launch(kernel, arguments, &shape.config) }
    };
    let launched = if shape.releases_gil { py.detach(launch) } else { launch() };
    let mark = launched.map_err(|error| exception_of(py, error))?;
    if let Some(mark) = mark {
        let owners: Vec<Py<PyAny>> = args.iter().map(|value| Bound::clone(value).unbind()).collect();
        hold_until(mark, Box::new((owners, packing.shares)));
    }
    Ok(())
}

#[cold]
fn wrong_count(py: Python<'_>, kernel: &Kernel, signature: &Signature, given: usize) -> PyErr {
    let expected = signature.parameters().len();
    let plural = if expected == 1 { "" } else { "s" };
    let are = if given == 1 { "was" } else { "were" };
    // Sizes alone say little.
    let list = match kernel.given_signature() {
        Some(signature) if expected > 0 => format!(" ({})", source::texts(signature).join(", ")),
        _ => String::new(),
    };
    let message =
        format!("kernel {:?} takes {expected} argument{plural}{list}, and {given} {are} given", kernel.name());
    exception::new::<PyTypeError>(py, message)
}

/// Says which array is where.
#[cold]
pub(super) fn mixed_devices(py: Python<'_>, kernel: &Kernel, args: &Args<'_, '_>) -> PyErr {
    let device = |value: Borrowed<'_, '_, PyAny>| match DeviceArray::known(value) {
        Some(own) => Some(own.get().array.device()),
        None => value.extract::<AnyArray<'_, '_>>().ok().map(|array| array.device()),
    };
    let places: Vec<String> = (0..)
        .zip(args)
        .filter_map(|(position, value)| Some((position, device(*value)?)))
        .map(|(position, device): (usize, Device)| format!("argument {position} is on cuda:{}", device.ordinal()))
        .collect();
    let message = format!(
        "the arrays of kernel {:?} are on several devices: {}; copy them to one first",
        kernel.name(),
        places.join(", ")
    );
    exception::new::<PyValueError>(py, message)
}
