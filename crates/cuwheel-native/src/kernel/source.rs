//! Images and signatures out of Python objects.

use std::path::Path;

use cuwheel_dispatcher::launch::{Image, Parameter, Signature};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use crate::exception;

/// The bytes of an image: PTX as text, or an object with a buffer.
pub(super) struct ImageBytes(pub(super) Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for ImageBytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self(bytes.as_bytes().to_vec()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self(text.to_str()?.as_bytes().to_vec()));
        }
        let copy = PyMemoryView::from(&object)?.call_method0(intern!(object.py(), "tobytes"))?;
        Ok(Self(copy.cast::<PyBytes>()?.as_bytes().to_vec()))
    }
}

/// The image that bytes are.
pub(super) fn image(py: Python<'_>, bytes: &[u8]) -> PyResult<Image> {
    py.detach(|| Image::new(bytes)).map_err(|error| exception::new::<PyValueError>(py, error.to_string()))
}

/// The content of a file.
pub(super) fn read(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    py.detach(|| std::fs::read(path)).map_err(|error| {
        let Some(number) = error.raw_os_error() else {
            return exception::new::<PyOSError>(py, format!("{}: {error}", path.display()));
        };
        // With three arguments the class is chosen by the number: FileNotFoundError, PermissionError, and so on.
        let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
        match text.and_then(|text| py.get_type::<PyOSError>().call1((number, text, path.as_os_str()))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}

/// The types of a kernel's parameters.
pub(super) struct SignatureArgument(pub(super) Signature);

impl<'py> FromPyObject<'_, 'py> for SignatureArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let texts = signature_texts(&object)?;
        let signature = Signature::parse(texts.iter().map(String::as_str));
        signature.map(Self).map_err(|error| exception::new::<PyValueError>(object.py(), error.to_string()))
    }
}

/// The texts of a signature.
pub(super) fn signature_texts(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let is_list = object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>();
    let texts: Option<Vec<String>> = if is_list { object.extract().ok() } else { None };
    texts.ok_or_else(|| {
        let message =
            "a signature is a tuple of texts, one for each parameter: (\"const float32*\", \"float32*\", \"int32\")";
        exception::new::<PyTypeError>(object.py(), message)
    })
}

/// The parameters as they are written.
pub(super) fn texts(signature: &Signature) -> Vec<String> {
    signature.parameters().iter().map(text).collect()
}

fn text(parameter: &Parameter) -> String {
    match &parameter.name {
        Some(name) => format!("{} {name}", parameter.kind),
        None => parameter.kind.to_string(),
    }
}
