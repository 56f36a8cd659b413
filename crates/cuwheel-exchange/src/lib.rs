//! Arrays on devices out of Python objects, and into them, for extension modules written with PyO3.
//!
//! A function that takes [`AnyArray`] is called with arrays of torch, CuPy, jax, numba, cuda.core, tvm-ffi, or whatever
//! else speaks DLPack or the CUDA array interface; it sees address, shape, strides, data type, device and stream, and copies
//! nothing. What it returns as an [`ExchangedArray`] any of them takes over.
//!
//! ```ignore
//! use cuwheel_device_array::{Array, DType, Order};
//! use cuwheel_exchange::{AnyArray, ExchangedArray, exception_of};
//! use pyo3::prelude::*;
//!
//! /// Return an array of zeros, shaped as `like` and on the same device and stream.
//! #[pyfunction]
//! fn zeros_like(py: Python<'_>, like: AnyArray<'_, '_>) -> PyResult<ExchangedArray> {
//!     let stream = like.stream();
//!     let array = Array::empty(like.shape(), DType::Float32, like.kind(), like.device(), stream, Order::C)
//!         .and_then(|array| array.fill_zeros(stream).map(|()| array))
//!         .map_err(|error| exception_of(py, error))?;
//!     Ok(ExchangedArray::new(array))
//! }
//! ```
//!
//! The order in which an object is asked is the exchange table of its type (DLPack 1.3), `__dlpack__`, and
//! `__cuda_array_interface__`; for an [`AnyArray`] the interface comes before `__dlpack__` where it names a stream. Not for
//! arithmetic, and not for arrays in host memory, which are told apart and left to the caller.

mod abi;
mod any_array;
mod capsule;
mod cuda_interface;
mod dunder;
mod error;
pub mod exception;
mod export;
mod foreign;
mod import;
mod lookup;
mod producer;
mod returned;
mod stream;
mod table;
mod tensor;
pub mod timing;
mod usual;

pub use any_array::{AnyArray, OwnedArray, ProducerStream, Producing, describe, describe_for_work};
pub use cuda_interface::cuda_array_interface;
/// What an [`AnyArray`] dereferences to: address, shape, strides, data type, device and stream, without Python.
pub use cuwheel_device_array::ArrayView;
pub use dunder::{DlpackArguments, dlpack};
pub use error::{cuda_error_class, exception as exception_of};
pub use export::{ExportError, dlpack_device};
pub use import::{DLPACK_VERSION, WorkOn, import};
pub use lookup::{EXCHANGE_VARIABLE, forget_types, has_table};
pub use producer::{Producer, table_capsule};
pub use returned::ExchangedArray;
pub use stream::StreamArgument;
pub use usual::{UsualArray, UsualArrays};
