//! The types of arrays that an exchange table describes: remembered by each thread, by what the table tells.
//!
//! A type depends on the class, the elements, the number of dimensions and the layout, which together are one number.

use std::cell::RefCell;

use cuwheel_device_array::{DType, Described};
use cuwheel_dispatcher::{Layout, TypeCode};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::type_of::{TypeOf, Typed};

/// Types that are remembered; one more may drive out another.
const PLACES: usize = 64;

/// What the type of an array depends on beside its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExchangeType {
    dtype: DType,
    ndim: usize,
    layout: Layout,
}

impl ExchangeType {
    #[inline]
    pub(super) fn new(described: &Described<'_>) -> Self {
        let elements = described.elements();
        let layout = Layout::of(elements.is_c_contiguous(), elements.is_f_contiguous());
        Self { dtype: described.dtype(), ndim: elements.ndim(), layout }
    }

    #[inline]
    fn place(self, class: usize) -> usize {
        let layout = match self.layout {
            Layout::Any => 0,
            Layout::C => 1,
            Layout::Fortran => 2,
        };
        ((class >> 4) ^ self.dtype.size_bytes().unwrap_or(0) ^ (self.ndim << 3) ^ (layout << 5)) % PLACES
    }
}

struct Entry {
    /// Answers are those of one [`TypeOf`].
    type_of: usize,
    class: Py<PyType>,
    described: ExchangeType,
    typed: Typed,
}

thread_local! {
    static TYPES: RefCell<[Option<Entry>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

/// The code of the type of such an array, if it is remembered.
#[inline]
pub(super) fn get(type_of: &TypeOf, value: &Bound<'_, PyAny>, described: ExchangeType) -> Option<TypeCode> {
    let class = value.get_type_ptr();
    let find = |types: &RefCell<[Option<Entry>; PLACES]>| {
        let types = types.borrow();
        let entry = types[described.place(class.addr())].as_ref()?;
        let is_it = entry.class.as_ptr() == class.cast()
            && entry.described == described
            && entry.type_of == std::ptr::from_ref(type_of).addr();
        is_it.then_some(entry.typed.code)
    };
    TYPES.try_with(find).ok().flatten()
}

/// Remembers the type of such an array.
pub(super) fn insert(type_of: &TypeOf, value: &Bound<'_, PyAny>, described: ExchangeType, typed: Typed) {
    let class = value.get_type();
    let place = described.place(class.as_type_ptr().addr());
    let type_of = std::ptr::from_ref(type_of).addr();
    let entry = Entry { type_of, class: class.unbind(), described, typed };
    let replaced = TYPES.try_with(|types| types.borrow_mut()[place].replace(entry));
    // Not while the table is borrowed: it may run code.
    drop(replaced);
}
