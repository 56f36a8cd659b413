//! Functions on arrays in GPU memory, of whichever library.
//!
//! They launch on the stream that the arrays' libraries work on just now, wait for nothing, and are recorded where a CUDA
//! graph is.

use cuwheel_dispatcher::launch::{Launch, LaunchConfig, LaunchError};
use cuwheel_exchange::{AnyArray, ArrayView, exception_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::grid::{self, THREADS};
use crate::kernels::{SAXPY, SUM_ROWS};

/// Write `a * x + y` into `out`, element by element.
///
/// The arrays are of any library with DLPack or the CUDA array interface, such as torch and CuPy, on one GPU. The function
/// returns at once: it is in order with what the libraries do on their current streams, and can be captured into a CUDA graph.
///
/// Args:
///     a: A number.
///     x, y: Arrays of float32 of one shape, contiguous.
///     out: The same, writable. It may be `x` or `y`, and must not overlap them otherwise.
///
/// Raises:
///     TypeError: An argument is no array, or its elements are not float32.
///     ValueError: The shapes differ; an array is not contiguous, in host memory, or on another GPU; `out` is read-only.
///     CudaError: The driver cannot be used, or refuses the launch.
#[pyfunction]
pub fn saxpy(
    py: Python<'_>,
    a: f32,
    x: AnyArray<'_, '_>,
    y: AnyArray<'_, '_>,
    out: AnyArray<'_, '_>,
) -> PyResult<()> {
    let arrays = [("x", &x), ("y", &y), ("out", &out)];
    check(&arrays, &out)?;
    if x.shape() != y.shape() || x.shape() != out.shape() {
        return Err(different_shapes(&arrays));
    }
    let (x, y, out): (&ArrayView, &ArrayView, &ArrayView) = (&x, &y, &out);
    py.detach(|| launch_saxpy(a, x, y, out))
        .map_err(|error| exception_of(py, error))
}

fn launch_saxpy(a: f32, x: &ArrayView, y: &ArrayView, out: &ArrayView) -> Result<(), LaunchError> {
    let count = x.size();
    // Each argument is held against the type of its parameter, of arrays without elements too.
    let launch = Launch::new(&SAXPY)?
        .number(count as i64)?
        .number(a)?
        .array(x)?
        .array(y)?
        .array(out)?;
    if count == 0 {
        return Ok(());
    }
    let config = LaunchConfig::linear(grid::blocks(count, THREADS), THREADS)?;
    // SAFETY: the arrays are alive as long as the call, and have `count` elements, one behind the other. Memory that their
    // libraries free afterwards is freed in the order of the stream.
    unsafe { launch.submit(&config) }?;
    Ok(())
}

/// Write the sums of `x` along its last axis into `out`.
///
/// Rows are added up in double precision and in a fixed order, so that equal rows have equal sums on every GPU. Otherwise as
/// `saxpy`; many rows keep a GPU busier than a long one.
///
/// Args:
///     x: An array of float32 with one dimension or more, contiguous.
///     out: An array of float32 with the shape of `x` without its last axis, contiguous and writable: of shape `()` for a
///         single row. It must not overlap `x`.
///
/// Raises:
///     As `saxpy`; ValueError also if `x` has no dimension.
#[pyfunction]
pub fn sum(py: Python<'_>, x: AnyArray<'_, '_>, out: AnyArray<'_, '_>) -> PyResult<()> {
    let arrays = [("x", &x), ("out", &out)];
    check(&arrays, &out)?;
    let Some((&columns, leading)) = x.shape().split_last() else {
        return Err(PyValueError::new_err(
            "x has no dimension, and its last axis is added up",
        ));
    };
    if leading != out.shape() {
        return Err(different_shapes(&arrays));
    }
    let (x, out): (&ArrayView, &ArrayView) = (&x, &out);
    py.detach(|| launch_sum(columns, x, out))
        .map_err(|error| exception_of(py, error))
}

fn launch_sum(columns: i64, x: &ArrayView, out: &ArrayView) -> Result<(), LaunchError> {
    let rows = out.size();
    let launch = Launch::new(&SUM_ROWS)?
        .number(rows as i64)?
        .number(columns)?
        .array(x)?
        .array(out)?;
    if rows == 0 {
        return Ok(());
    }
    let config = LaunchConfig::linear(grid::blocks(rows, 1), THREADS)?
        .with_shared_bytes(grid::doubles_bytes());
    // SAFETY: as above, with `rows` times `columns` elements of `x`, and the shared memory that the kernel uses.
    unsafe { launch.submit(&config) }?;
    Ok(())
}

fn check(arrays: &[(&str, &AnyArray<'_, '_>)], out: &ArrayView) -> PyResult<()> {
    if let Some((name, _)) = arrays.iter().find(|(_, array)| !array.is_c_contiguous()) {
        return Err(PyValueError::new_err(format!(
            "{name} is not contiguous; copy it first"
        )));
    }
    if out.is_read_only() {
        return Err(PyValueError::new_err("out is read-only"));
    }
    Ok(())
}

fn different_shapes(arrays: &[(&str, &AnyArray<'_, '_>)]) -> PyErr {
    let shapes: Vec<String> = arrays
        .iter()
        .map(|(name, array)| format!("{name} {:?}", array.shape()))
        .collect();
    PyValueError::new_err(format!(
        "the shapes do not go together: {}",
        shapes.join(", ")
    ))
}
