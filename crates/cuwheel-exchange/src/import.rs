//! Arrays out of Python objects, to keep: the exchange table, then `__dlpack__`, then the CUDA array interface.
//!
//! Not for a look at an array during a call, which [`crate::AnyArray`] is for.

use std::sync::Arc;

use cuwheel_device_array::stream::{self, CaptureStatus};
use cuwheel_device_array::{Array, ArrayView, DType, Described, Device, Layout, MemoryKind, Stream};
use pyo3::exceptions::{PyBufferError, PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::abi::DLDevice;
use crate::foreign::ForeignTensor;
use crate::lookup::{Known, known_of};
use crate::table::Table;
use crate::{abi, capsule, cuda_interface, error, exception, export, tensor};

/// The stream that becomes an imported array's, and that its data is ready on.
#[derive(Debug, Clone, Copy)]
pub enum WorkOn<'a> {
    /// The current stream of the array's device. A producer that is recording a CUDA graph gives the array its own stream
    /// instead, since waiting for it from outside would end the recording.
    Current,
    /// The stream that the producer works on, so that nothing waits; the current stream where the producer does not say.
    Producers,
    /// A stream that the caller names.
    Named(&'a Stream),
}

impl WorkOn<'_> {
    fn consumer(self, device: Device) -> Stream {
        match self {
            Self::Named(stream) => stream.clone(),
            Self::Current | Self::Producers => stream::current(device),
        }
    }
}

/// Takes a share of the array that `object` is or holds, without a copy.
///
/// The array may be in host memory ([`MemoryKind::Host`]): whether that will do is for the caller to say.
///
/// # Errors
/// `TypeError` if the object is no array of any kind; `BufferError` if its data cannot be described, or must not be used as
/// it is because it is lazily conjugated or negated; whatever else the producer raises. If one way fails the next is
/// tried, and the first error is the one that is returned.
pub fn import(object: &Bound<'_, PyAny>, stream: WorkOn<'_>) -> PyResult<Array> {
    let known = known_of(object)?;
    let Some(table) = known.table else { return otherwise(object, known, stream, None) };
    match through_table(object, table, known, stream) {
        Ok(Some(array)) => Ok(array),
        Ok(None) => otherwise(object, known, stream, None),
        Err(error) => otherwise(object, known, stream, Some(error)),
    }
}

/// The ways that are left when there is no exchange table, or after the `first` error there.
#[cold]
fn otherwise(object: &Bound<'_, PyAny>, known: Known, stream: WorkOn<'_>, first: Option<PyErr>) -> PyResult<Array> {
    let mut attempts = Attempts::default();
    if let Some(error) = first {
        attempts.add::<()>(object, || Err(error))?;
    }
    // `__dlpack__` does not say which stream its producer works on, and has the consumer's wait for it, which a producer that
    // records a CUDA graph must not be asked for. What goes wrong here does so again below, or does not matter.
    let mut described = None;
    if let WorkOn::Producers = stream {
        described = Attempts::default().add(object, || cuda_interface::read(object))?;
        if described.as_ref().is_some_and(has_own_stream)
            && let Some(array) =
                Attempts::default().add(object, || through_interface(object, known, stream, described.take()))?
        {
            return Ok(array);
        }
    }
    if let Some(array) = attempts.add(object, || through_method(object, known, stream))? {
        return Ok(array);
    }
    if let Some(array) = attempts.add(object, || through_interface(object, known, stream, described))? {
        return Ok(array);
    }
    Err(attempts.error(object))
}

/// The ways that were tried.
#[derive(Default)]
pub(crate) struct Attempts(Option<PyErr>);

impl Attempts {
    /// Tries one way; `None` if the object does not offer it, or it failed and another may not.
    pub(crate) fn add<T>(
        &mut self,
        object: &Bound<'_, PyAny>,
        attempt: impl FnOnce() -> PyResult<Option<T>>,
    ) -> PyResult<Option<T>> {
        match attempt() {
            Ok(found) => Ok(found),
            // Ctrl-C is no answer.
            Err(error) if !error.is_instance_of::<PyException>(object.py()) => Err(error),
            Err(error) => {
                self.0.get_or_insert(error);
                Ok(None)
            }
        }
    }

    /// The error when nothing worked: the first that was met.
    pub(crate) fn error(self, object: &Bound<'_, PyAny>) -> PyErr {
        self.0.unwrap_or_else(|| {
            let message = format!(
                "{} is no array on a device: it has neither __dlpack__ nor __cuda_array_interface__; arrays in host memory \
                 are copied by asarray",
                exception::type_name(object)
            );
            exception::new::<PyTypeError>(object.py(), message)
        })
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "the result is to be written where it stays: copying it costs the most")]
fn through_table(object: &Bound<'_, PyAny>, table: Table, known: Known, stream: WorkOn<'_>) -> PyResult<Option<Array>> {
    let py = object.py();
    let Some(tensor) = table.managed(object) else { return Ok(None) };
    let tensor = Arc::new(tensor?);
    let mut c_order = None;
    let described = describe(py, &tensor, &mut c_order)?;
    refuse_lazy_view(object, known, &described)?;
    let stream = match described.kind() {
        MemoryKind::Host => Stream::LEGACY,
        MemoryKind::Device => {
            let device = export::device_of(described.kind(), described.device());
            ordered(py, described.device(), stream, producer_stream(py, table, device)?)?
        }
        _ => {
            let view = located(py, described)?;
            let producer = producer_stream(py, table, export::device(&view))?;
            let stream = ordered(py, view.device(), stream, producer)?;
            // SAFETY: as below.
            return Ok(Some(unsafe { Array::borrowed(view.with_stream(stream), tensor) }));
        }
    };
    // SAFETY: the producer vouches for the memory that it describes, until the tensor is deleted.
    Ok(Some(unsafe { Array::borrowed(described.on(stream), tensor) }))
}

/// The stream that the producer works on, if it says.
#[inline]
pub(crate) fn producer_stream(py: Python<'_>, table: Table, device: DLDevice) -> PyResult<Option<Stream>> {
    match table.current_stream(py, device) {
        // SAFETY: the producer works on the stream, and vouches for it as it does for the memory.
        Some(handle) => Ok(Some(unsafe { Stream::borrowed(handle?, None) })),
        None => Ok(None),
    }
}

fn through_method(object: &Bound<'_, PyAny>, known: Known, stream: WorkOn<'_>) -> PyResult<Option<Array>> {
    let py = object.py();
    let mut asked = None;
    let request = |device_id: i32| {
        let device = Device::new(u32::try_from(device_id).unwrap_or(0));
        let (stream, _) = asked.insert((stream.consumer(device), device));
        stream.handle()
    };
    let Some(tensor) = capsule::request(object, request)? else { return Ok(None) };
    let array = adopt(py, tensor)?;
    refuse_lazy_array(object, known, &array)?;
    let device = array.device();
    let consumer = match asked {
        // The producer has ordered our stream behind its own.
        Some((consumer, asked_for)) if asked_for == device || matches!(stream, WorkOn::Named(_)) => consumer,
        // Managed memory, which turned out to be another device's: that one's stream comes behind the one that was ordered.
        Some((ordered, asked_for)) => {
            let consumer = stream.consumer(device);
            consumer.order_after(device, &ordered, asked_for).map_err(|error| error::exception(py, error))?;
            consumer
        }
        // Memory that has no stream.
        None => stream.consumer(device),
    };
    Ok(Some(array.with_stream(consumer)))
}

/// Whether the CUDA array interface names a stream. What NumPy has no name for, such as bfloat16, is bytes there, and left to
/// DLPack.
fn has_own_stream(described: &cuda_interface::Described) -> bool {
    described.ready_on.is_some() && !matches!(described.array.dtype(), DType::Opaque(_))
}

/// By the CUDA array interface, unless it was `read` before.
fn through_interface(
    object: &Bound<'_, PyAny>,
    known: Known,
    stream: WorkOn<'_>,
    read: Option<cuda_interface::Described>,
) -> PyResult<Option<Array>> {
    let described = match read {
        Some(described) => described,
        None => match cuda_interface::read(object)? {
            Some(described) => described,
            None => return Ok(None),
        },
    };
    refuse_lazy_array(object, known, &described.array)?;
    let stream = ordered(object.py(), described.array.device(), stream, described.ready_on)?;
    Ok(Some(described.array.with_stream(stream)))
}

/// The stream of an array from now on, behind the work of its producer.
#[inline]
fn ordered(py: Python<'_>, device: Device, stream: WorkOn<'_>, producer: Option<Stream>) -> PyResult<Stream> {
    let consumer = stream.consumer(device);
    match producer {
        Some(producer) if producer != consumer => order(py, device, stream, consumer, producer),
        _ => Ok(consumer),
    }
}

/// The rest of [`ordered`] where there are two streams.
fn order(py: Python<'_>, device: Device, stream: WorkOn<'_>, consumer: Stream, producer: Stream) -> PyResult<Stream> {
    let driver_error = |error| error::exception(py, error);
    let stays = match stream {
        WorkOn::Producers => true,
        WorkOn::Current => producer.capture_status(device).map_err(driver_error)? != CaptureStatus::None,
        WorkOn::Named(_) => false,
    };
    if stays {
        return Ok(producer);
    }
    consumer.order_after(device, &producer, device).map_err(driver_error)?;
    Ok(consumer)
}

/// The array of a tensor that was handed to us, on the legacy default stream.
pub(crate) fn adopt(py: Python<'_>, tensor: ForeignTensor) -> PyResult<Array> {
    let tensor = Arc::new(tensor);
    let mut c_order = None;
    let described = describe(py, &tensor, &mut c_order)?;
    let view = match described.kind() {
        MemoryKind::Host | MemoryKind::Device => described.on(Stream::LEGACY),
        _ => located(py, described)?,
    };
    // SAFETY: the producer vouches for the memory that it describes, until the tensor is deleted.
    Ok(unsafe { Array::borrowed(view, tensor) })
}

/// What a tensor describes.
#[inline]
fn describe<'a>(py: Python<'_>, tensor: &'a ForeignTensor, c_order: &'a mut Option<Layout>) -> PyResult<Described<'a>> {
    let (description, flags) = match tensor.tensor() {
        Ok(parts) => parts,
        Err(error) => return Err(exception::new::<PyBufferError>(py, error.to_string())),
    };
    // SAFETY: a producer describes as many dimensions as it says, and leaves a tensor alone that it has handed out.
    match unsafe { tensor::described(description, flags, c_order) } {
        Ok(described) => Ok(described),
        Err(error) => Err(error::exception(py, *error)),
    }
}

/// A view of memory that the host sees as well: DLPack has no device numbers for it, so the driver is asked.
#[cold]
fn located(py: Python<'_>, described: Described<'_>) -> PyResult<ArrayView> {
    described.on(Stream::LEGACY).located().map_err(|error| error::exception(py, error))
}

/// Arrays of torch can be conjugated or negated lazily, and their description does not tell: the memory holds other
/// values than the array. A conjugate is complex; a negated real array is the imaginary part of one, with gaps between
/// its elements, or has one element.
#[inline]
pub(crate) fn refuse_lazy_view(object: &Bound<'_, PyAny>, known: Known, described: &Described<'_>) -> PyResult<()> {
    if may_be_lazy_view(known, described) { refuse_if_lazy(object) } else { Ok(()) }
}

/// Whether an array may be lazily conjugated or negated, as far as its description tells.
#[inline]
pub(crate) fn may_be_lazy_view(known: Known, described: &Described<'_>) -> bool {
    let elements = described.elements();
    known.has_lazy_views && may_be_lazy(described.dtype(), elements.is_single(), elements.is_c_contiguous())
}

/// As [`refuse_lazy_view`], for an array that is there already.
fn refuse_lazy_array(object: &Bound<'_, PyAny>, known: Known, array: &Array) -> PyResult<()> {
    if known.has_lazy_views && may_be_lazy(array.dtype(), array.size() == 1, array.is_c_contiguous()) {
        return refuse_if_lazy(object);
    }
    Ok(())
}

#[inline]
fn may_be_lazy(dtype: DType, is_single: bool, is_c_contiguous: bool) -> bool {
    matches!(dtype, DType::Complex64 | DType::Complex128) || is_single || !is_c_contiguous
}

/// The rest of [`refuse_lazy_view`], for arrays that may be lazy.
fn refuse_if_lazy(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    for (question, what, remedy) in
        [(intern!(py, "is_conj"), "conjugated", "resolve_conj"), (intern!(py, "is_neg"), "negated", "resolve_neg")]
    {
        if object.call_method0(question)?.is_truthy()? {
            let message =
                format!("the tensor is {what} lazily, and its memory holds other values; call .{remedy}() first");
            return Err(exception::new::<PyBufferError>(py, message));
        }
    }
    Ok(())
}

/// The DLPack version that is read and written, `(major, minor)`.
pub const DLPACK_VERSION: (u32, u32) = (abi::VERSION.major, abi::VERSION.minor);
