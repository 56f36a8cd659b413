//! An array of any library as a typed argument of a function.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

use cuwheel_device_array::{Array, ArrayView, Described, Device, Layout, MemoryKind, Stream, stream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::abi::{DLDevice, DLTensor, DlpackFlags};
use crate::import::{self, Attempts, WorkOn};
use crate::lookup::{Known, known_of};
use crate::table::Table;
use crate::{error, exception, tensor};

/// An array on a device, of whichever library, for the length of a call.
///
/// Extracting one looks at the object and synchronises nothing: where the producer has an exchange table nothing is
/// allocated or counted either. Work on the array belongs on [`stream`](ArrayView::stream), which is the stream that the
/// producer works on just now; it is in order there, and is recorded when a CUDA graph is.
///
/// An array that the exchange table describes this way may be read-only without saying so, unless its producer refuses.
///
/// ```ignore
/// #[pyfunction]
/// fn nbytes(array: AnyArray<'_, '_>) -> usize {
///     array.size_bytes()
/// }
/// ```
///
/// # Errors
/// `TypeError` if the argument is no array; `ValueError` if it is in host memory; `BufferError` if it cannot be described.
#[derive(Debug)]
pub struct AnyArray<'a, 'py> {
    view: ArrayView,
    /// What keeps the memory alive: the argument itself, or a share that was taken of it.
    owner: Owner<'a, 'py>,
}

#[derive(Debug)]
enum Owner<'a, 'py> {
    Argument(PhantomData<Borrowed<'a, 'py, PyAny>>),
    Share(Array),
}

impl AnyArray<'_, '_> {
    /// As [`into_share`](Self::into_share), where the description is still needed for as long as the share is kept.
    #[inline]
    pub fn take_share(&mut self) -> Option<Array> {
        match std::mem::replace(&mut self.owner, Owner::Argument(PhantomData)) {
            Owner::Argument(_) => None,
            Owner::Share(array) => Some(array),
        }
    }

    /// The share that was taken of the array; `None` where the argument itself keeps the memory alive.
    pub fn into_share(self) -> Option<Array> {
        match self.owner {
            Owner::Argument(_) => None,
            Owner::Share(array) => Some(array),
        }
    }
}

impl<'a, 'py> AnyArray<'a, 'py> {
    /// An array that [`describe_for_work`] has not described: `first` is what went wrong there, if anything did.
    ///
    /// # Errors
    /// Those of extracting one.
    #[cold]
    pub fn otherwise(object: Borrowed<'a, 'py, PyAny>, first: Option<PyErr>) -> PyResult<Self> {
        // The other ways take a share.
        let mut attempts = Attempts::default();
        if let Some(error) = first {
            attempts.add::<()>(&object, || Err(error))?;
        }
        match attempts.add(&object, || import::import(&object, WorkOn::Producers).map(Some))? {
            Some(array) if array.kind() == MemoryKind::Host => Err(in_host_memory(object.py())),
            Some(array) => Ok(Self { view: (*array).clone(), owner: Owner::Share(array) }),
            None => Err(attempts.error(&object)),
        }
    }
}

/// The stream that a producer works on, as it was last asked in the course of one call.
///
/// A launch with several arrays of one producer asks once. Only the producer's native code runs between, and it does not
/// change its stream when it describes an array; after any other code it has to be [forgotten](Self::forget).
#[derive(Debug, Default)]
pub struct ProducerStream {
    known: Option<(Producing, Stream)>,
}

/// Whom to ask for the stream of an array that was described.
#[derive(Debug, Clone, Copy)]
pub struct Producing {
    table: Table,
    device: DLDevice,
}

impl Producing {
    #[inline]
    fn is(self, other: Self) -> bool {
        let (device, of_other) = (self.device, other.device);
        self.table.is(other.table)
            && (device.device_type, device.device_id) == (of_other.device_type, of_other.device_id)
    }
}

impl ProducerStream {
    /// The stream that an array's producer works on, on the device of the array.
    ///
    /// # Errors
    /// What the producer raises.
    #[inline]
    pub fn stream(&mut self, py: Python<'_>, producing: Producing, device: Device) -> PyResult<&Stream> {
        let known = match self.known.take().filter(|(known, _)| known.is(producing)) {
            Some(known) => known,
            None => (producing, work_stream(py, producing, device)?),
        };
        Ok(&self.known.insert(known).1)
    }

    /// Asks again the next time.
    #[inline]
    pub fn forget(&mut self) {
        self.known = None;
    }
}

/// The stream that a producer works on, or the one of this thread if it does not say.
#[inline]
fn work_stream(py: Python<'_>, producing: Producing, device: Device) -> PyResult<Stream> {
    let stream = import::producer_stream(py, producing.table, producing.device)?;
    Ok(stream.unwrap_or_else(|| stream::current(device)))
}

/// What `read` makes of the description of an array in the exchange table of its class, and of the stream that work on the
/// array belongs on; `None` if there is no such table, or the table does not describe arrays, or the array is in host memory.
///
/// This is [`AnyArray`] for who needs no copy of the description.
///
/// # Errors
/// What the producer raises; `BufferError` if this library has no such arrays, or the array is lazily conjugated or negated.
#[inline]
pub fn describe_for_work<R>(
    object: &Bound<'_, PyAny>,
    streams: &mut ProducerStream,
    read: impl FnOnce(&Described<'_>, &Stream) -> R,
) -> PyResult<Option<R>> {
    let known = known_of(object)?;
    let (mut place, mut c_order) = (MaybeUninit::uninit(), None);
    let Some((described, producing)) = described_by(known.table, object, &mut place, &mut c_order)? else {
        return Ok(None);
    };
    if described.kind() == MemoryKind::Host {
        return Ok(None);
    }
    import::refuse_lazy_view(object, known, &described)?;
    let stream = streams.stream(object.py(), producing, described.device())?;
    Ok(Some(read(&described, stream)))
}

/// What `read` makes of the description of an array in the exchange table of its class; `None` if there is no such table,
/// or the table does not describe arrays.
///
/// Streams are not asked for: this is for who wants to know what type of array it is, and does not touch its memory. For who
/// does later, with what `read` has noted, it is told whom to ask for the stream; unless the array is in host memory, or may
/// be lazily conjugated or negated, which is not looked at here.
///
/// # Errors
/// What the producer raises; `BufferError` if this library has no such arrays.
#[inline]
pub fn describe<R>(
    object: &Bound<'_, PyAny>,
    read: impl FnOnce(&Described<'_>, Option<Producing>) -> R,
) -> PyResult<Option<R>> {
    let known = known_of(object)?;
    let (mut place, mut c_order) = (MaybeUninit::uninit(), None);
    let Some((described, producing)) = described_by(known.table, object, &mut place, &mut c_order)? else {
        return Ok(None);
    };
    let may_be_used = described.kind() != MemoryKind::Host && !import::may_be_lazy_view(known, &described);
    Ok(Some(read(&described, may_be_used.then_some(producing))))
}

/// How a table describes an array, and whom to ask for the stream of it. `place` and `c_order` are where the description lies.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the result is to be read where it was written: copying it costs the most")]
fn described_by<'a>(
    table: Option<Table>,
    object: &Bound<'_, PyAny>,
    place: &'a mut MaybeUninit<DLTensor>,
    c_order: &'a mut Option<Layout>,
) -> PyResult<Option<(Described<'a>, Producing)>> {
    let Some(table) = table else { return Ok(None) };
    let Some(description) = table.view(object, place) else { return Ok(None) };
    let description = description?;
    // SAFETY: a producer describes as many dimensions as it says, in memory that it leaves alone while a consumer looks at
    // an array and asks for the stream, which is the order that DLPack wants a consumer to proceed in.
    match unsafe { tensor::described(description, DlpackFlags::empty(), c_order) } {
        Ok(described) => Ok(Some((described, Producing { table, device: description.device }))),
        Err(error) => Err(error::exception(object.py(), *error)),
    }
}

impl Deref for AnyArray<'_, '_> {
    type Target = ArrayView;

    fn deref(&self) -> &ArrayView {
        &self.view
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for AnyArray<'a, 'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match through_table(&object, known_of(&object)?) {
            Ok(Some(view)) if view.kind() == MemoryKind::Host => Err(in_host_memory(object.py())),
            Ok(Some(view)) => Ok(Self { view, owner: Owner::Argument(PhantomData) }),
            Ok(None) => Self::otherwise(object, None),
            Err(error) => Self::otherwise(object, Some(error)),
        }
    }
}

/// The fast way: a description on the stack.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the result is to be written where it stays: copying it costs the most")]
fn through_table(object: &Bound<'_, PyAny>, known: Known) -> PyResult<Option<ArrayView>> {
    let (mut place, mut c_order) = (MaybeUninit::uninit(), None);
    let Some((described, producing)) = described_by(known.table, object, &mut place, &mut c_order)? else {
        return Ok(None);
    };
    import::refuse_lazy_view(object, known, &described)?;
    let stream = match described.kind() {
        MemoryKind::Host => stream::current(described.device()),
        _ => work_stream(object.py(), producing, described.device())?,
    };
    Ok(Some(described.on(stream)))
}

#[cold]
fn in_host_memory(py: Python<'_>) -> PyErr {
    let message = "the array is in host memory, and one on a CUDA device is needed; move it there first";
    exception::new::<PyValueError>(py, message)
}

/// An argument that is taken over for longer than the call: see [`import::import`].
#[derive(Debug, Clone)]
pub struct OwnedArray(pub Array);

impl<'py> FromPyObject<'_, 'py> for OwnedArray {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = import::import(&object, WorkOn::Current)?;
        if array.kind() == MemoryKind::Host {
            return Err(in_host_memory(object.py()));
        }
        Ok(Self(array))
    }
}

impl OwnedArray {
    /// The stream that the data is ready on.
    pub fn stream(&self) -> &Stream {
        self.0.stream()
    }
}
