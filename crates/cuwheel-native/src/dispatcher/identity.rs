//! Numbers for objects that take part in types: classes and data types of structures.
//!
//! A fingerprint cannot hold the object, and its address may be another object's later on. Numbers are never used
//! again, and the objects are kept for as long as their numbers are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use cuwheel_dispatcher::Memo;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::fingerprint::Depth;

/// How many objects of a kind are kept. When there are more, all get new numbers; values are then typed once more.
const CAPACITY: usize = 4096;

/// How many data types are known by their address.
const IN_USE: usize = 64;

/// Objects by their address, and what they hash to: the names in a data type may be changed in place.
type Known = Memo<(usize, isize), (u64, Py<PyAny>)>;

static CLASSES: LazyLock<Known> = LazyLock::new(|| Memo::new(CAPACITY));
/// A short cut for the few that are in use at a time. Programs may make new ones at each call.
static DATA_TYPES: LazyLock<Known> = LazyLock::new(|| Memo::new(IN_USE));
/// By equality: a dictionary from [`structure_key`] to the number.
static EQUAL_DATA_TYPES: Mutex<Option<Py<PyDict>>> = Mutex::new(None);

fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);

    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The number of a class.
pub(super) fn of_class(class: &Bound<'_, PyAny>) -> u64 {
    // Classes do not change what they are; what they say they hash to is not asked.
    let key = (class.as_ptr().addr(), 0);
    CLASSES.get(&key, |(number, _)| *number).unwrap_or_else(|| {
        let number = next_number();
        // Another thread may have done the same: then one of the two numbers is used no more.
        drop(CLASSES.insert(key, (number, class.clone().unbind())));
        number
    })
}

/// The number of the data type of a structure: the same for data types that are equal, and equally aligned.
pub(super) fn of_structure(data_type: &Bound<'_, PyAny>) -> PyResult<u64> {
    let key = (data_type.as_ptr().addr(), data_type.hash()?);
    if let Some(number) = DATA_TYPES.get(&key, |(number, _)| *number) {
        return Ok(number);
    }
    let py = data_type.py();
    let numbers = equal_data_types(py);
    let structure = structure_key(data_type)?;
    let number = if let Some(number) = numbers.get_item(&structure)? {
        number.extract()?
    } else {
        let number = next_number();
        numbers.set_item(&structure, number)?;
        number
    };
    drop(DATA_TYPES.insert(key, (number, data_type.clone().unbind())));
    Ok(number)
}

/// The dictionary, or a new one if it is full.
fn equal_data_types(py: Python<'_>) -> Bound<'_, PyDict> {
    let known =
        EQUAL_DATA_TYPES.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|known| known.clone_ref(py));
    if let Some(known) = known
        && known.bind(py).len() < CAPACITY
    {
        return known.into_bound(py);
    }
    let new = PyDict::new(py);
    let former = EQUAL_DATA_TYPES.lock().unwrap_or_else(PoisonError::into_inner).replace(new.clone().unbind());
    // Not under the lock: it may run code.
    drop(former);
    new
}

/// NumPy takes structures for equal that differ in whether they are aligned, at any depth. Types tell them apart.
fn structure_key<'py>(data_type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let mut alignments = Vec::new();
    push_alignments(data_type, &mut alignments)?;
    (data_type, PyBytes::new(data_type.py(), &alignments)).into_pyobject(data_type.py())
}

fn push_alignments(data_type: &Bound<'_, PyAny>, alignments: &mut Vec<u8>) -> PyResult<()> {
    let py = data_type.py();
    let _depth = Depth::enter(py)?;
    let base = data_type.getattr(intern!(py, "base"))?;
    let fields = base.getattr(intern!(py, "fields"))?;
    if fields.is_none() {
        return Ok(());
    }
    alignments.push(u8::from(base.getattr(intern!(py, "isalignedstruct"))?.is_truthy()?));
    for name in base.getattr(intern!(py, "names"))?.try_iter()? {
        push_alignments(&fields.get_item(name?)?.get_item(0)?, alignments)?;
    }
    Ok(())
}
