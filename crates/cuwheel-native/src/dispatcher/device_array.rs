//! Device arrays that derive from the class `_devicearray.DeviceArray`, which they do in numba-cuda up to 0.22.2.
//!
//! There `_numba_type_` makes a new type at each call. A few attributes tell as much, and cost less.

use cuwheel_dispatcher::{Layout, Memo, TypeCode};
use cuwheel_numpy::NumPy;
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, intern};

use super::identity;
use super::type_of::{ArrayKind, Typed, ask};
use crate::devicearray_base::DeviceArray;
use crate::{exception, numpy};

/// How many pairs of a class and a kind of array are remembered.
const CAPACITY: usize = 4096;

/// The types of device arrays by their class and kind.
pub(super) struct DeviceArrays {
    known: Memo<(u64, usize), Typed>,
}

impl Default for DeviceArrays {
    fn default() -> Self {
        Self { known: Memo::new(CAPACITY) }
    }
}

impl DeviceArrays {
    /// The code of the type of `value`; `None` if it is no such device array, or none that attributes tell enough of.
    pub(super) fn code(
        &self,
        numpy: NumPy<'_>,
        dispatcher: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<TypeCode>> {
        if !DeviceArray::is_type_of(value) {
            return Ok(None);
        }
        let kind = match kind_of(numpy, value) {
            Ok(Some(kind)) => kind,
            Ok(None) => return Ok(None),
            Err(error) if exception::is_ordinary(value.py(), &error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let key = (identity::of_class(value.get_type().as_any()), kind.position());
        if let Some(code) = self.known.get(&key, |typed| typed.code) {
            return Ok(Some(code));
        }
        let typed = ask(dispatcher, value)?.into_typed();
        let code = typed.code;
        drop(self.known.insert(key, typed));
        Ok(Some(code))
    }
}

fn kind_of(numpy: NumPy<'_>, value: &Bound<'_, PyAny>) -> PyResult<Option<ArrayKind>> {
    let py = value.py();
    let flags = value.getattr(intern!(py, "flags"))?;
    let dimension_count: usize = value.getattr(intern!(py, "ndim"))?.extract()?;
    let data_type = value.getattr(intern!(py, "dtype"))?;
    let Some(descriptor) = numpy.descriptor(numpy::borrow(&data_type)) else { return Ok(None) };
    let element = descriptor.element();
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
    Ok(ArrayKind::new(dimension_count, layout, element.type_number()))
}

/// Whether some items are the same memory. Then the array is contiguous only in name: kernels count on strides that
/// contiguous arrays have.
fn is_repeated(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let strides = value.getattr(intern!(py, "strides"))?;
    Ok(strides.contains(0)? && value.getattr(intern!(py, "size"))?.is_truthy()?)
}
