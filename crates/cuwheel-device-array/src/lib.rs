//! Arrays in the memory of CUDA devices: element types, shapes and strides, memory of all kinds, streams and copies.
//!
//! No Python, and no arithmetic on elements. An [`Array`] says everything about memory that others need to use it; what
//! crosses to other libraries is made from it without asking anyone.
//!
//! ```
//! use cuwheel_device_array::{DType, Layout, Order};
//!
//! let layout = Layout::contiguous(&[2, 3, 4], Order::C)?;
//! assert_eq!(layout.strides_elements(), Some(&[12, 4, 1][..]));
//! assert_eq!(layout.size_bytes(DType::Float32).unwrap(), 96);
//! # Ok::<(), cuwheel_device_array::LayoutError>(())
//! ```
//!
//! Memory is used in the order of a stream, and goes back in that order when the last array that shares it is dropped:
//!
//! ```no_run
//! use cuwheel_device_array::{Array, DType, Device, MemoryKind, Order, Stream};
//!
//! let device = Device::new(0);
//! let stream = Stream::create(device)?;
//! let ones = Array::empty(&[1024, 3], DType::Float32, MemoryKind::Device, device, &stream, Order::C)?;
//! ones.fill_bytes(&1.0_f32.to_ne_bytes(), &stream)?;
//! let columns = ones.transpose(None)?.contiguous_copy(MemoryKind::Pinned, device, &stream)?;
//! stream.synchronize(device)?;
//! # Ok::<(), cuwheel_device_array::Error>(())
//! ```
//!
//! An address or a handle that comes from elsewhere is trusted in `unsafe` functions only. Everything else can be called
//! with any arguments, in any thread, with and without a driver. As with NumPy, elements are plain memory: who lets two
//! threads or streams use the same ones at the same time, while one of them writes, gets neither value for sure.

mod array;
mod copy;
mod device;
mod driver;
mod dtype;
mod error;
mod event;
mod layout;
mod memory;
pub mod stream;
mod unusual;

pub use array::{Array, ArrayParts, ArrayView, Described};
pub use copy::{CopyError, HostRegion, HostRegionMut};
pub use device::{ContextGuard, Device};
pub use driver::{CudaError, CudaVersion, Driver, DriverError};
pub use dtype::{DType, DTypeError};
pub use error::{Classified, Error, ErrorKind};
pub use event::Event;
pub use layout::{Dims, Elements, Index, Layout, LayoutError, MAXIMUM_DIMENSIONS, Order, ReshapeError, Strides};
pub use memory::{
    Allocation, AllocationError, MemoryKind, PointerAttributes, defer_error, hold_until, pointer_attributes,
    take_deferred_error, unaffected_by_captures,
};
pub use stream::Stream;
pub use unusual::is_usual;
