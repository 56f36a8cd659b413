//! What native code needs to know of NumPy arrays, scalars and data types, through NumPy's C API.
//!
//! Three layers: [`sys`] declares the C shim, [`result`] turns its status codes into errors, and the types here are
//! safe to use. No binding library is named, so any can be used on top; no Python object is created on the way,
//! except where a function says so. NumPy is imported when [`NumPy::import`] is first called, never earlier.
//!
//! ```no_run
//! # fn example(pointer: std::ptr::NonNull<cuwheel_numpy::sys::PyObject>) -> Result<(), cuwheel_numpy::Error> {
//! use cuwheel_numpy::{NumPy, Object};
//!
//! // SAFETY: this thread is attached to the interpreter, no other thread changes arrays in place, and `pointer` refers
//! // to an object that our caller keeps alive.
//! let (numpy, object) = unsafe { (NumPy::import()?, Object::from_ptr(pointer)) };
//! if let Some(array) = numpy.array(object) {
//!     let state = array.state()?;
//!     println!("type number {}, shape {:?}", state.element().type_number(), state.shape());
//! }
//! # Ok(())
//! # }
//! ```

mod element;
pub mod result;
mod state;
pub mod sys;
mod wrapper;

pub use element::{DatetimeUnit, Element};
pub use result::Error;
pub use state::{ArrayFlags, ArrayOutline, ArrayState};
pub use wrapper::{Array, Descriptor, Kind, NumPy, Object, OwnedDescriptor, Scalar};
