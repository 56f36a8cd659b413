//! What can be launched, with the shape of its launches: objects that Python calls with the arguments in an array.
//!
//! PyO3 has classes called with a tuple, and making it, reading it and dropping it takes longer than all that this library
//! does for a launch. So these two classes are made by hand; programs see no difference.

use std::ffi::{CStr, CString, c_int, c_uint, c_ulong, c_void};
use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::hint::cold_path;
use std::mem::{self, offset_of};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{ptr, slice};

use cuwheel_device_array::Stream;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyClass, ffi, intern};
use smallvec::SmallVec;

use super::attributes;
use super::configure::{LaunchShape, Linear};
use crate::exception;

/// Arguments of a call.
pub(super) type Args<'a, 'py> = [Borrowed<'a, 'py, PyAny>];

/// The arguments in a tuple.
pub(super) fn arguments<'a, 'py>(tuple: &'a Bound<'py, PyTuple>) -> SmallVec<[Borrowed<'a, 'py, PyAny>; 8]> {
    tuple.iter_borrowed().collect()
}

/// What can be launched.
pub(super) trait Launcher: PyClass<Frozen = True> + Sync {
    /// What there is to say of the class of its configured objects.
    const TEXTS: ClassTexts;
    /// Whether what it keeps can lead back to a configured object.
    const HAS_CYCLES: bool;

    /// Where the class of its configured objects is kept.
    fn class() -> &'static PyOnceLock<Py<PyType>>;

    /// Launches with these arguments.
    fn launch(&self, py: Python<'_>, shape: &LaunchShape, args: &Args<'_, '_>) -> PyResult<()>;

    /// Where a configured object is kept that nobody has any more, if one is: not for launchers with cycles.
    fn idle(&self) -> Option<&Idle> {
        None
    }

    /// Whether both launch the same.
    fn is_same(this: &Py<Self>, other: &Py<Self>) -> bool;

    /// Hashes what [`is_same`](Self::is_same) compares.
    fn hash(this: &Py<Self>, state: &mut DefaultHasher);

    /// The launcher, as `repr` names it.
    fn label(&self) -> &str;
}

/// The texts of a class.
pub(super) struct ClassTexts {
    pub(super) class: &'static str,
    pub(super) doc: &'static CStr,
    /// The attribute with the launcher.
    pub(super) member: &'static CStr,
    pub(super) member_doc: &'static CStr,
}

/// A launcher with the shape of its launches.
pub(super) struct Configured<L> {
    pub(super) launcher: Py<L>,
    pub(super) shape: LaunchShape,
}

/// The same as an object of Python.
#[repr(C)]
struct Object<L> {
    head: ffi::PyObject,
    /// What Python calls.
    call: ffi::vectorcallfunc,
    weak_references: *mut ffi::PyObject,
    configured: Configured<L>,
}

/// A configured object of a launcher that nobody has any more, for the next that is asked for: `kernel[grid, block](…)` in a
/// loop asks for the same each time. It has lost its reference to the launcher, and its shape holds nothing.
#[derive(Debug, Default)]
pub(super) struct Idle(AtomicPtr<ffi::PyObject>);

impl Idle {
    /// Takes the object out, or null.
    #[inline]
    fn take(&self) -> *mut ffi::PyObject {
        self.0.swap(ptr::null_mut(), Ordering::AcqRel)
    }

    /// Keeps an object, and frees the one before.
    ///
    /// # Safety
    /// The thread is attached. The object was taken apart as the type says, and nobody else knows it.
    #[inline]
    unsafe fn keep(&self, object: *mut ffi::PyObject) {
        let former = self.0.swap(object, Ordering::AcqRel);
        if !former.is_null() {
            // SAFETY: the thread is attached; nobody else has the object, whose parts hold nothing.
            unsafe { ffi::PyObject_Free(former.cast()) };
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // SAFETY: a launcher goes where the thread is attached.
        unsafe { self.keep(ptr::null_mut()) };
    }
}

/// `Py_TPFLAGS_HAVE_VECTORCALL`: a part of the limited API from 3.12 on, and the same since 3.9.
const HAVE_VECTORCALL: c_ulong = 1 << 11;

/// The bit of a count of arguments that says that there is room before them.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// Adds the class to the module. Should the library be imported under a second name, the class keeps the first.
pub(super) fn add_class<L: Launcher>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = L::class().get_or_try_init(module.py(), || make_class::<L>(module))?;
    module.add(L::TEXTS.class, class)
}

impl<L: Launcher> Configured<L> {
    /// The object for Python.
    #[inline]
    pub(super) fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        const { assert!(align_of::<Object<L>>() <= 16, "Python's memory has this alignment") };
        let class = L::class().get(py).ok_or_else(|| exception::fetch(py))?;
        let idle = self.launcher.get().idle().map_or(ptr::null_mut(), Idle::take);
        // SAFETY: the thread is attached, and objects of the class are `Object<L>`, since their size is that. What is written
        // was never initialised, or holds nothing; nothing else knows the object yet.
        unsafe {
            if !idle.is_null() {
                let object = ffi::PyObject_Init(idle, class.as_ptr().cast()).cast::<Object<L>>();
                (&raw mut (*object).configured).write(self);
                return Ok(Bound::from_owned_ptr(py, object.cast()));
            }
            let object = ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0).cast::<Object<L>>();
            if object.is_null() {
                return Err(exception::fetch(py));
            }
            (&raw mut (*object).call).write(called_with_array::<L>);
            (&raw mut (*object).weak_references).write(ptr::null_mut());
            (&raw mut (*object).configured).write(self);
            Ok(Bound::from_owned_ptr(py, object.cast()))
        }
    }

    /// What the brackets of `launcher[grid, block]` ask for, as an object for Python.
    #[inline]
    pub(super) fn in_brackets<'py>(
        launcher: Bound<'py, L>,
        brackets: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, idle) = (launcher.py(), launcher.get().idle());
        let linear = idle.and_then(|_| Linear::in_brackets(brackets));
        if let Some(idle) = idle.filter(|_| linear.is_some()) {
            let object = idle.take().cast::<Object<L>>();
            // SAFETY: the thread is attached; what is idle is an object of the class, of which only the launcher is missing,
            // and nobody else knows it.
            unsafe {
                if !object.is_null() && (*object).configured.shape.linear == linear {
                    ffi::PyObject_Init(object.cast(), ffi::Py_TYPE(object.cast()));
                    (&raw mut (*object).configured.launcher).write(launcher.unbind());
                    return Ok(Bound::from_owned_ptr(py, object.cast()));
                }
                idle.keep(object.cast());
            }
        }
        let shape = LaunchShape { linear, ..LaunchShape::in_brackets(brackets)? };
        Self { launcher: launcher.unbind(), shape }.into_object(py)
    }

    fn repr(&self) -> String {
        format!("<{} {} with {}>", L::TEXTS.class, self.launcher.get().label(), self.shape)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.shape == other.shape && L::is_same(&self.launcher, &other.launcher)
    }

    fn hash(&self) -> u64 {
        let mut state = DefaultHasher::new();
        L::hash(&self.launcher, &mut state);
        self.shape.hash(&mut state);
        state.finish()
    }

    fn reduce(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        (self.launcher.getattr(py, intern!(py, "configure"))?, self.shape.state(py)?).into_py_any(py)
    }

    /// The attributes: names, docstrings, and what they are.
    fn attributes() -> [(&'static CStr, &'static CStr, Attribute<L>); 9] {
        type Sizes = (u32, u32, u32);
        [
            (L::TEXTS.member, L::TEXTS.member_doc, |this, py| this.launcher.clone_ref(py).into_py_any(py)),
            (c"grid", c"The number of blocks along x, y and z.", |this, py| {
                Sizes::from(this.shape.config.grid.sizes()).into_py_any(py)
            }),
            (c"block", c"The number of threads in each block along x, y and z.", |this, py| {
                Sizes::from(this.shape.config.block.sizes()).into_py_any(py)
            }),
            (c"stream", c"The handle of the stream that was named, or None.", |this, py| {
                this.shape.stream.as_ref().map(Stream::handle).into_py_any(py)
            }),
            (c"shared_bytes", c"Bytes of dynamic shared memory for each block.", |this, py| {
                this.shape.config.shared_bytes.into_py_any(py)
            }),
            (c"cluster", c"The number of blocks in each cluster along x, y and z, or None.", |this, py| {
                this.shape.config.cluster.map(|cluster| Sizes::from(cluster.sizes())).into_py_any(py)
            }),
            (c"cooperative", c"Whether all blocks run at the same time.", |this, py| {
                this.shape.config.cooperative.into_py_any(py)
            }),
            (c"attributes", c"What else the driver is told, a dictionary.", |this, py| {
                attributes::dictionary(py, &this.shape.config.attributes)?.into_py_any(py)
            }),
            (c"release_gil", c"Whether other threads of Python run while the driver is called.", |this, py| {
                this.shape.releases_gil.into_py_any(py)
            }),
        ]
    }
}

/// An attribute of configured objects.
type Attribute<L> = fn(&Configured<L>, Python<'_>) -> PyResult<Py<PyAny>>;

fn make_class<L: Launcher>(module: &Bound<'_, PyModule>) -> PyResult<Py<PyType>> {
    let py = module.py();
    let name = CString::new(format!("{}.{}", module.name()?, L::TEXTS.class))
        .map_err(|error| exception::new::<PyValueError>(py, error.to_string()))?;
    let attributes = Configured::<L>::attributes().map(|(name, doc, get)| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get_attribute::<L>),
        set: None,
        doc: doc.as_ptr(),
        closure: get as *mut c_void,
    });
    let reduce = ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce::<L> },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"".as_ptr(),
    };
    let member = |name: &'static CStr, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset.cast_signed(),
        flags: ffi::Py_READONLY,
        doc: ptr::null(),
    };
    let members = [
        member(c"__vectorcalloffset__", offset_of!(Object<L>, call)),
        member(c"__weaklistoffset__", offset_of!(Object<L>, weak_references)),
        ffi::PyMemberDef::default(),
    ];
    // Python keeps the addresses; the class is made once.
    let attributes: &'static mut [ffi::PyGetSetDef] =
        Box::leak(attributes.into_iter().chain([ffi::PyGetSetDef::default()]).collect());
    let methods = Box::leak(Box::new([reduce, ffi::PyMethodDef::zeroed()]));
    let members = Box::leak(Box::new(members));
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots: SmallVec<[ffi::PyType_Slot; 16]> = SmallVec::from_slice(&[
        slot(ffi::Py_tp_doc, L::TEXTS.doc.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, deallocate::<L> as *mut c_void),
        slot(ffi::Py_tp_call, called_with_tuple::<L> as *mut c_void),
        slot(ffi::Py_tp_repr, repr::<L> as *mut c_void),
        slot(ffi::Py_tp_hash, hash::<L> as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare::<L> as *mut c_void),
        slot(ffi::Py_tp_getset, attributes.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
    ]);
    let mut flags = ffi::Py_TPFLAGS_DEFAULT | HAVE_VECTORCALL | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
    if L::HAS_CYCLES {
        flags |= ffi::Py_TPFLAGS_HAVE_GC;
        slots.push(slot(ffi::Py_tp_traverse, traverse::<L> as *mut c_void));
    }
    slots.push(ffi::PyType_Slot::default());
    let mut spec = ffi::PyType_Spec {
        // Before 3.12 the class keeps the address.
        name: CString::into_raw(name),
        basicsize: c_int::try_from(size_of::<Object<L>>()).unwrap_or(c_int::MAX),
        itemsize: 0,
        flags: c_uint::try_from(flags).unwrap_or_default(),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the thread is attached; the functions are those that the slots are for, and what the slots point to lives as
    // long as the process. The result is a new reference, or null with an exception set.
    let class = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyType_FromSpec(&raw mut spec)) };
    Ok(class.ok_or_else(|| exception::fetch(py))?.cast_into::<PyType>()?.unbind())
}

/// What Python passes to functions of a class is an object of it.
///
/// # Safety
/// `this` is an object of the class of `L`, which is alive for as long as the result is used.
#[inline]
unsafe fn configured<'a, L>(this: *mut ffi::PyObject) -> &'a Configured<L> {
    // SAFETY: as the caller promises: objects of the class are `Object<L>`. Nothing is changed once one is made.
    unsafe { &(*this.cast::<Object<L>>()).configured }
}

/// The result of `body` for Python: a new reference, or null with an exception set.
///
/// # Safety
/// The thread is attached.
#[inline]
unsafe fn answer(body: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe {
        Python::attach_unchecked(|py| match body(py) {
            Ok(object) => object.into_ptr(),
            Err(error) => raised(py, error),
        })
    }
}

/// # Safety
/// What Python promises to functions of this kind: the thread is attached; `this` is an object of the class; `arguments` holds
/// as many positional arguments as `count` says and then one for each of `names`, which is a tuple or null. The caller keeps
/// all alive. `arguments` may be null if there are none.
unsafe extern "C" fn called_with_array<L: Launcher>(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let count = count & !ARGUMENTS_OFFSET;
    // SAFETY: as the caller promises. PyO3 is not told that the thread is attached, which takes time: a reference that is
    // dropped here would stay until it is. So what drops some tells it.
    unsafe {
        let py = Python::assume_attached();
        let this = configured::<L>(this);
        let args: &Args<'_, '_> = if count == 0 { &[] } else { slice::from_raw_parts(arguments.cast(), count) };
        if let Some(names) = Borrowed::from_ptr_or_opt(py, names)
            && let Err(error) = refuse_names::<L>(&names)
        {
            return raised(py, error);
        }
        match this.launcher.get().launch(py, &this.shape, args) {
            Ok(()) => py.None().into_ptr(),
            Err(error) => raised(py, error),
        }
    }
}

#[cold]
fn raised(py: Python<'_>, error: PyErr) -> *mut ffi::PyObject {
    // What was tried before it was raised has left references behind.
    Python::attach(|_| ());
    error.restore(py);
    ptr::null_mut()
}

/// # Safety
/// What Python promises to `tp_call`: the thread is attached; `this` is an object of the class, `arguments` a tuple, and `names`
/// a dictionary or null.
unsafe extern "C" fn called_with_tuple<L: Launcher>(
    this: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe {
        answer(|py| {
            if let Some(names) = Borrowed::from_ptr_or_opt(py, names) {
                refuse_names::<L>(&names)?;
            }
            let args = Borrowed::from_ptr(py, arguments).cast::<PyTuple>()?;
            let args = self::arguments(&args);
            let result = called_with_array::<L>(this, args.as_ptr().cast(), args.len(), ptr::null_mut());
            Bound::from_owned_ptr_or_opt(py, result).map(Bound::unbind).ok_or_else(|| exception::fetch(py))
        })
    }
}

/// Arguments have no names. `names` is a tuple or a dictionary.
#[cold]
fn refuse_names<L: Launcher>(names: &Bound<'_, PyAny>) -> PyResult<()> {
    match names.try_iter()?.next() {
        None => Ok(()),
        Some(name) => {
            let (class, name) = (L::TEXTS.class, name?);
            let message = format!("{class}.__call__() got an unexpected keyword argument '{name}'");
            Err(exception::new::<PyTypeError>(names.py(), message))
        }
    }
}

/// # Safety
/// What Python promises to getters: the thread is attached, and `this` is an object of the class. `get` is what the attribute
/// was declared with.
unsafe extern "C" fn get_attribute<L: 'static>(this: *mut ffi::PyObject, get: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises: the class was made with such functions.
    unsafe {
        let get = std::mem::transmute::<*mut c_void, Attribute<L>>(get);
        answer(|py| get(configured::<L>(this), py))
    }
}

/// # Safety
/// As for [`get_attribute`].
unsafe extern "C" fn reduce<L: Launcher>(this: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe { answer(|py| configured::<L>(this).reduce(py)) }
}

/// # Safety
/// As for [`get_attribute`].
unsafe extern "C" fn repr<L: Launcher>(this: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe { answer(|py| configured::<L>(this).repr().into_py_any(py)) }
}

/// # Safety
/// As for [`get_attribute`].
unsafe extern "C" fn hash<L: Launcher>(this: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: as the caller promises.
    let hash = unsafe { configured::<L>(this) }.hash();
    #[expect(clippy::cast_possible_truncation, reason = "any part of a hash is one")]
    let hash = hash.cast_signed() as ffi::Py_hash_t;
    // -1 tells of an exception.
    if hash == -1 { -2 } else { hash }
}

/// # Safety
/// As for [`get_attribute`]; `other` is any object.
unsafe extern "C" fn compare<L: Launcher>(
    this: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
    operation: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises. There are no subclasses, and the class is asked for before the other is taken for an
    // object of it.
    unsafe {
        answer(|py| {
            let is_comparable = ffi::Py_TYPE(this) == ffi::Py_TYPE(other);
            let is_same = is_comparable && configured::<L>(this).is_same(configured::<L>(other));
            match operation {
                ffi::Py_EQ if is_comparable => is_same.into_py_any(py),
                ffi::Py_NE if is_comparable => (!is_same).into_py_any(py),
                _ => Ok(py.NotImplemented()),
            }
        })
    }
}

/// # Safety
/// What Python promises to `tp_traverse`: `this` is an object of the class.
unsafe extern "C" fn traverse<L: 'static>(
    this: *mut ffi::PyObject,
    visit: ffi::visitproc,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises; no reference is counted.
    unsafe {
        match visit(ffi::Py_TYPE(this).cast(), argument) {
            0 => visit(configured::<L>(this).launcher.as_ptr(), argument),
            stopped => stopped,
        }
    }
}

/// # Safety
/// What Python promises to `tp_dealloc`: the thread is attached, and `this` is an object of the class that nobody knows any
/// more, but for weak references.
unsafe extern "C" fn deallocate<L: Launcher>(this: *mut ffi::PyObject) {
    // SAFETY: as the caller promises. The value is dropped once, and the memory freed the way that it was allocated.
    unsafe {
        let class = ffi::Py_TYPE(this);
        if L::HAS_CYCLES {
            ffi::PyObject_GC_UnTrack(this.cast());
        }
        let object = this.cast::<Object<L>>();
        if !(*object).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(this);
        }
        let Configured { launcher, shape } = (&raw const (*object).configured).read();
        let holds_nothing = shape.stream.as_ref().is_none_or(|stream| stream.keep_alive().is_none());
        if let Some(idle) = launcher.get().idle().filter(|_| holds_nothing) {
            mem::forget(shape);
            idle.keep(this);
            ffi::Py_DECREF(launcher.into_ptr());
            ffi::Py_DECREF(class.cast());
            return;
        }
        ffi::Py_DECREF(launcher.into_ptr());
        if !holds_nothing {
            // A reference that is dropped goes at once where PyO3 knows that the thread is attached.
            cold_path();
            Python::attach_unchecked(|_| drop(shape));
        }
        if L::HAS_CYCLES {
            ffi::PyObject_GC_Del(this.cast());
        } else {
            ffi::PyObject_Free(this.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}
