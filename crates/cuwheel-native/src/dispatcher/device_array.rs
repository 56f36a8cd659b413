//! Device arrays that derive from the class `_devicearray.DeviceArray`, which they do in numba-cuda up to 0.22.2.
//!
//! There `_numba_type_` makes a new type at each call. A few attributes tell as much, and cost less.

use cuwheel_dispatcher::{Fingerprint, Layout};
use cuwheel_numpy::NumPy;
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, intern};

use super::identity;
use crate::devicearray_base::DeviceArray;
use crate::{exception, numpy};

/// The fingerprint of a device array of numbers; `None` if `value` is no such device array, or none that its attributes
/// tell enough of.
pub(super) fn fingerprint(numpy: NumPy<'_>, value: &Bound<'_, PyAny>) -> PyResult<Option<Fingerprint>> {
    /// Numbers below are those of numbers; this is that of `object`.
    const OBJECT: u8 = 17;

    if !DeviceArray::is_type_of(value) {
        return Ok(None);
    }
    match attributes(numpy, value) {
        Ok(Some((dimension_count, layout, type_number))) if type_number < OBJECT => {
            let mut fingerprint = Fingerprint::new();
            let class = identity::of_class(value.get_type().as_any());
            fingerprint.device_array(class, dimension_count, layout, type_number);
            Ok(Some(fingerprint))
        }
        Ok(_) => Ok(None),
        Err(error) if exception::is_ordinary(value.py(), &error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number of dimensions, the layout, and NumPy's number of the items' type.
fn attributes(numpy: NumPy<'_>, value: &Bound<'_, PyAny>) -> PyResult<Option<(u32, Layout, u8)>> {
    let py = value.py();
    let flags = value.getattr(intern!(py, "flags"))?;
    let dimension_count: u32 = value.getattr(intern!(py, "ndim"))?.extract()?;
    let data_type = value.getattr(intern!(py, "dtype"))?;
    let Some(descriptor) = numpy.descriptor(numpy::borrow(&data_type)) else { return Ok(None) };
    let element = descriptor.element();
    let Ok(type_number) = u8::try_from(element.type_number()) else { return Ok(None) };
    if !element.is_native_byte_order() {
        return Ok(None);
    }
    let is = |flag: &Bound<'_, PyAny>| flags.get_item(flag)?.is_truthy();
    let is_c_contiguous = is(intern!(py, "C_CONTIGUOUS"))?;
    let layout = if is_repeated(value)? {
        Layout::Any
    } else {
        Layout::of(is_c_contiguous, !is_c_contiguous && is(intern!(py, "F_CONTIGUOUS"))?)
    };
    Ok(Some((dimension_count, layout, type_number)))
}

/// Whether some items are the same memory. Then the array is contiguous only in name: kernels count on strides that
/// contiguous arrays have.
fn is_repeated(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let strides = value.getattr(intern!(py, "strides"))?;
    Ok(strides.contains(0)? && value.getattr(intern!(py, "size"))?.is_truthy()?)
}
