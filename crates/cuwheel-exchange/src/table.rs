//! A producer's exchange table, checked once and then called.
//!
//! Not for finding tables: see [`crate::lookup`]. Nothing here synchronises with a device.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use pyo3::prelude::*;

use crate::abi::{DLDevice, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor, VERSION};
use crate::exception;
use crate::foreign::ForeignTensor;

/// How far a chain of older tables is followed; longer ones are taken for a cycle.
const LONGEST_CHAIN: usize = 16;

/// An exchange table of a major version that this crate knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table(&'static DLPackExchangeAPI);

impl Table {
    /// The first table in the chain from `newest` on that can be used.
    ///
    /// # Safety
    /// `newest` must point to an exchange table as DLPack defines it, and it and the older ones that it points to must
    /// stay as they are until the process ends.
    pub(crate) unsafe fn newest_known(newest: NonNull<DLPackExchangeAPIHeader>) -> Option<Self> {
        let mut next = Some(newest);
        for _ in 0..LONGEST_CHAIN {
            let header = next?;
            // SAFETY: it is a header, as the caller promises of all in the chain.
            let DLPackExchangeAPIHeader { version, prev_api } = unsafe { header.read() };
            if version.major == VERSION.major {
                // SAFETY: a header of this major version is the head of a whole table, which stays, as the caller
                // promises.
                return Some(Self(unsafe { header.cast::<DLPackExchangeAPI>().as_ref() }));
            }
            next = NonNull::new(prev_api);
        }
        None
    }

    /// Whether both are one table.
    #[inline]
    pub(crate) fn is(self, other: Self) -> bool {
        ptr::eq(self.0, other.0)
    }

    /// Describes an array in `place` without owning it, if the producer can. The result holds until other code runs.
    ///
    /// What the producer has just written is read where it is: copying it at once would have to wait for it.
    #[inline]
    pub(crate) fn view<'a>(
        self,
        object: &Bound<'_, PyAny>,
        place: &'a mut MaybeUninit<DLTensor>,
    ) -> Option<PyResult<&'a DLTensor>> {
        let describe = self.0.dltensor_from_py_object_no_sync?;
        // SAFETY: the thread is attached, as the type of `object` witnesses; `object` is of the type that the table was
        // found on; the producer fills the structure when it returns 0.
        let status = unsafe { describe(object.as_ptr().cast(), place.as_mut_ptr()) };
        Some(match status {
            // SAFETY: filled, as said.
            0 => Ok(unsafe { place.assume_init_ref() }),
            _ => Err(exception::fetch(object.py())),
        })
    }

    /// A tensor that owns a share of an array, if the producer can make one.
    #[inline]
    pub(crate) fn managed(self, object: &Bound<'_, PyAny>) -> Option<PyResult<ForeignTensor>> {
        let export = self.0.managed_tensor_from_py_object_no_sync?;
        let mut tensor = ptr::null_mut();
        // SAFETY: as in `view`; a tensor that is handed out belongs to us.
        let status = unsafe { export(object.as_ptr().cast(), &raw mut tensor) };
        Some(match NonNull::new(tensor).filter(|_| status == 0) {
            // SAFETY: the producer made the tensor and hands its ownership to us.
            Some(tensor) => Ok(unsafe { ForeignTensor::from_versioned(tensor) }),
            None => Err(exception::fetch(object.py())),
        })
    }

    /// The handle of the stream on which the producer works on `device` just now, if it says.
    #[inline]
    pub(crate) fn current_stream(self, py: Python<'_>, device: DLDevice) -> Option<PyResult<usize>> {
        let query = self.0.current_work_stream?;
        let mut stream: *mut c_void = ptr::null_mut();
        // SAFETY: the thread is attached, as `py` witnesses, and `stream` takes one pointer.
        let status = unsafe { query(device.device_type, device.device_id, &raw mut stream) };
        Some(if status == 0 { Ok(stream.addr()) } else { Err(exception::fetch(py)) })
    }
}
