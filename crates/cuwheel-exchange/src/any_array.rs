//! An array of any library as a typed argument of a function.

use std::marker::PhantomData;
use std::ops::Deref;

use cuwheel_device_array::{Array, ArrayView, MemoryKind, Stream, stream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::import::{self, Attempts, WorkOn};
use crate::lookup::{Known, known_of};
use crate::table::Table;
use crate::{abi::DlpackFlags, error, exception, tensor};

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
    /// The share that was taken of the array; `None` where the argument itself keeps the memory alive.
    pub fn into_share(self) -> Option<Array> {
        match self.owner {
            Owner::Argument(_) => None,
            Owner::Share(array) => Some(array),
        }
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
        let known = known_of(&object)?;
        if let Some(table) = known.table {
            match through_table(&object, table, known) {
                Ok(Some(view)) => return on_device(object.py(), Self { view, owner: Owner::Argument(PhantomData) }),
                Ok(None) => {}
                Err(error) => return otherwise(object, Some(error)),
            }
        }
        otherwise(object, None)
    }
}

/// The fast way: a description on the stack.
#[inline]
fn through_table(object: &Bound<'_, PyAny>, table: Table, known: Known) -> PyResult<Option<ArrayView>> {
    let py = object.py();
    let Some(description) = table.view(object) else { return Ok(None) };
    // SAFETY: a producer describes as many dimensions as it says; no other code has run since.
    let view =
        unsafe { tensor::view(&description?, DlpackFlags::empty()) }.map_err(|error| error::exception(py, error))?;
    import::refuse_lazy_view(object, known, &view)?;
    if view.kind() == MemoryKind::Host {
        return Ok(Some(view));
    }
    let producer = import::producer_stream(py, table, &view)?;
    let stream = producer.unwrap_or_else(|| stream::current(view.device()));
    Ok(Some(view.with_stream(stream)))
}

/// The other ways, which take a share.
#[cold]
fn otherwise<'a, 'py>(object: Borrowed<'a, 'py, PyAny>, first: Option<PyErr>) -> PyResult<AnyArray<'a, 'py>> {
    let mut attempts = Attempts::default();
    if let Some(error) = first {
        attempts.add::<()>(&object, || Err(error))?;
    }
    match attempts.add(&object, || import::import(&object, WorkOn::Producers).map(Some))? {
        Some(array) => on_device(object.py(), AnyArray { view: (*array).clone(), owner: Owner::Share(array) }),
        None => Err(attempts.error(&object)),
    }
}

fn on_device<'a, 'py>(py: Python<'py>, array: AnyArray<'a, 'py>) -> PyResult<AnyArray<'a, 'py>> {
    if array.kind() != MemoryKind::Host {
        return Ok(array);
    }
    Err(exception::new::<PyValueError>(
        py,
        "the array is in host memory, and one on a CUDA device is needed; move it there first",
    ))
}

/// An argument that is taken over for longer than the call: see [`import::import`].
#[derive(Debug, Clone)]
pub struct OwnedArray(pub Array);

impl<'py> FromPyObject<'_, 'py> for OwnedArray {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = import::import(&object, WorkOn::Current)?;
        if array.kind() == MemoryKind::Host {
            let message = "the array is in host memory, and one on a CUDA device is needed; move it there first";
            return Err(exception::new::<PyValueError>(object.py(), message));
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
