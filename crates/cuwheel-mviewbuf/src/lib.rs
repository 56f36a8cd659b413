//! Byte extents of strided memory, and buffers given by an address and a length.
//!
//! This is the arithmetic behind the Python module `mviewbuf`. It knows nothing of Python, reads no memory, and never
//! wraps around: what does not fit is an error.
//!
//! ```
//! use cuwheel_mviewbuf::Extents;
//!
//! // A 3 by 4 array of 8-byte items whose rows are stored last to first.
//! let extents = Extents::of_array(&[3, 4], &[-32, 8], 8)?;
//! assert_eq!((extents.start(), extents.end()), (-64, 32));
//! # Ok::<(), cuwheel_mviewbuf::ExtentsError>(())
//! ```

mod extents;
mod pointer_buffer;

pub use extents::{Extents, ExtentsBuilder, ExtentsError};
pub use pointer_buffer::{PointerBuffer, PointerBufferError};
