//! A launch out of the arguments of a call.

use cuwheel_device_array::{Device, Stream, hold_until};
use cuwheel_dispatcher::launch::{Arguments, Kernel, LaunchConfig, Placement, Signature};
use cuwheel_exchange::{AnyArray, ProducerStream, exception_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::configured::Args;
use super::pack::{Found, Packing};
use super::source;
use crate::devicearray::DeviceArray;
use crate::exception;

/// Launches a kernel with `args`, on `stream` or on the one that the arrays' producers work on. `found` is what is known of the
/// arguments, if they were looked at.
#[inline]
pub(super) fn launch(
    py: Python<'_>,
    kernel: &Kernel,
    config: &LaunchConfig,
    stream: Option<&Stream>,
    args: &Args<'_, '_>,
    mut found: Option<&mut [Found<'_, '_>]>,
) -> PyResult<()> {
    let signature = kernel.signature().map_err(|error| exception_of(py, error))?;
    let parameters = signature.parameters();
    if args.len() != parameters.len() {
        return Err(wrong_count(py, kernel, signature, args.len()));
    }
    let mut packing = Packing {
        py,
        kernel,
        args,
        arguments: Arguments::empty(),
        placement: Placement::new(stream.cloned()),
        streams: ProducerStream::default(),
        shares: None,
    };
    packing.arguments.clear_for(signature);
    for (position, (parameter, value)) in parameters.iter().zip(args).enumerate() {
        let known = found.as_deref_mut().and_then(|found| found.get_mut(position));
        packing.add(position, parameter, *value, known)?;
    }
    let Packing { arguments, placement, .. } = &packing;
    let launch = || {
        // SAFETY: the arrays are alive, since the caller has their owners or shares of them, and work that ends their memory
        // is behind the launch on its stream. What the kernel does with them is for who wrote it; who names a stream by a
        // number vouches for it.
        unsafe { placement.launch(kernel, arguments, config) }
    };
    let mark = py.detach(launch).map_err(|error| exception_of(py, error))?;
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
