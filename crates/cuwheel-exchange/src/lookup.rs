//! Which types have an exchange table: asked once per type and thread.
//!
//! A type without a table is remembered as well, since looking in vain costs more than everything else: a library that
//! gives its type a table after arrays of it were seen is noticed by new threads, or after [`forget_types`].

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use crate::abi::{DLPackExchangeAPIHeader, TABLE_ATTRIBUTE, TABLE_CAPSULE};
use crate::table::Table;

/// If this environment variable is `0`, exchange tables of other libraries are not used: a way out when one is faulty.
pub const EXCHANGE_VARIABLE: &str = "CUWHEEL_DLPACK_EXCHANGE";

/// What is known about a type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// Its exchange table, if it has one that can be used.
    pub(crate) table: Option<Table>,
    /// Whether its arrays can be lazily conjugated or negated, which a description of their memory does not tell.
    pub(crate) has_lazy_views: bool,
}

/// Types that are remembered, a power of two; one more replaces another.
const ENTRIES: usize = 64;

/// A type is kept alive as long as it is remembered: its address would else be another type's.
struct Entry {
    class: Py<PyType>,
    known: Known,
    generation: u64,
}

thread_local! {
    static ENTRIES_OF_THREAD: RefCell<[Option<Entry>; ENTRIES]> = const { RefCell::new([const { None }; ENTRIES]) };
}

/// What is remembered from before a call of [`forget_types`] does not count.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Makes every thread ask types for their exchange tables again.
pub fn forget_types() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// What is known about the type of `object`.
pub(crate) fn known_of(object: &Bound<'_, PyAny>) -> PyResult<Known> {
    let class = object.get_type_ptr();
    let generation = GENERATION.load(Ordering::Relaxed);
    let slot = slot(class.addr());
    let remembered = ENTRIES_OF_THREAD.try_with(|entries| {
        let entries = entries.borrow();
        let entry = entries[slot].as_ref()?;
        (entry.class.as_ptr() == class.cast() && entry.generation == generation).then_some(entry.known)
    });
    match remembered {
        Ok(Some(known)) => Ok(known),
        _ => ask(&object.get_type(), slot, generation),
    }
}

/// Addresses of types are multiples of 16.
fn slot(address: usize) -> usize {
    (address >> 4 ^ address >> 10) % ENTRIES
}

#[cold]
fn ask(class: &Bound<'_, PyType>, slot: usize, generation: u64) -> PyResult<Known> {
    let py = class.py();
    let table = if is_enabled() { table_of(class)? } else { None };
    let known = Known { table, has_lazy_views: class.hasattr(intern!(py, "is_conj"))? };
    let entry = Entry { class: class.clone().unbind(), known, generation };
    let replaced = ENTRIES_OF_THREAD.try_with(|entries| entries.borrow_mut()[slot].replace(entry));
    // The last reference to a type may be the one that was replaced: its destruction runs Python code.
    drop(replaced);
    Ok(known)
}

fn is_enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| std::env::var_os(EXCHANGE_VARIABLE).is_none_or(|value| value != "0"))
}

/// Whether the arrays of a class are described by an exchange table that is used here.
pub fn has_table(class: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(is_enabled() && table_of(class)?.is_some())
}

fn table_of(class: &Bound<'_, PyType>) -> PyResult<Option<Table>> {
    let Some(attribute) = class.getattr_opt(intern!(class.py(), TABLE_ATTRIBUTE))? else { return Ok(None) };
    // Whatever else is there was not meant for us.
    let Ok(capsule) = attribute.cast::<PyCapsule>() else { return Ok(None) };
    let Ok(header) = capsule.pointer_checked(Some(TABLE_CAPSULE)) else { return Ok(None) };
    let header: NonNull<DLPackExchangeAPIHeader> = header.cast();
    // SAFETY: a capsule of this name holds an exchange table that lives as long as the process; only native code makes
    // capsules, and vouches for them.
    Ok(unsafe { Table::newest_known(header) })
}
