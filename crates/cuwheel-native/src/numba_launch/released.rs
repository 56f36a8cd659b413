//! numba-cuda's classes as they were released: taken at the end of its module, before any program can have replaced a part of
//! them.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// The classes that take part in a launch, and what stands for their methods: whoever replaces one of these is called.
pub(crate) struct Released {
    pub(super) types: Py<PyAny>,
    kernel: Py<PyType>,
    dispatcher: Py<PyType>,
    configuration: Py<PyType>,
    launch: Py<PyAny>,
    prepare_args: Py<PyAny>,
    call: Py<PyAny>,
}

static RELEASED: PyOnceLock<Released> = PyOnceLock::new();

/// Notes the classes of the module that `omitted_type` is defined in, if it is numba-cuda's.
pub(crate) fn note(omitted_type: &Bound<'_, PyType>) -> PyResult<()> {
    let py = omitted_type.py();
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let module = modules.call_method1(intern!(py, "get"), (omitted_type.getattr(intern!(py, "__module__"))?,))?;
    let class = |name: &str| -> PyResult<Option<Bound<'_, PyType>>> {
        Ok(module.getattr_opt(name)?.and_then(|class| class.cast_into().ok()))
    };
    let (Some(kernel), Some(dispatcher), Some(configuration), Some(types)) = (
        class("_Kernel")?,
        class("CUDADispatcher")?,
        class("_LaunchConfiguration")?,
        module.getattr_opt(intern!(py, "types"))?,
    ) else {
        return Ok(());
    };
    let method = |class: &Bound<'_, PyType>, name: &str| class.getattr(name).map(Bound::unbind);
    let released = Released {
        launch: method(&kernel, "launch")?,
        prepare_args: method(&kernel, "_prepare_args")?,
        call: method(&dispatcher, "call")?,
        types: types.unbind(),
        kernel: kernel.unbind(),
        dispatcher: dispatcher.unbind(),
        configuration: configuration.unbind(),
    };
    RELEASED.get_or_init(py, || released);
    Ok(())
}

impl Released {
    /// The classes, if numba-cuda was imported.
    pub(super) fn get(py: Python<'_>) -> Option<&'static Self> {
        RELEASED.get(py)
    }

    /// Whether this is a kernel of numba-cuda itself: a class derived from it may do anything.
    pub(super) fn is_kernel(&self, object: &Bound<'_, PyAny>) -> bool {
        is_of(object, &self.kernel)
    }

    /// Whether this is a dispatcher of numba-cuda itself.
    pub(super) fn is_dispatcher(&self, object: &Bound<'_, PyAny>) -> bool {
        is_of(object, &self.dispatcher)
    }

    /// Whether this is a launch configuration of numba-cuda itself.
    #[inline]
    pub(super) fn is_configuration(&self, object: &Bound<'_, PyAny>) -> bool {
        is_of(object, &self.configuration)
    }

    /// Whether kernels are launched as they were in the release.
    #[inline]
    pub(super) fn launches(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(is_still(&self.kernel, intern!(py, "launch"), &self.launch)?
            && is_still(&self.kernel, intern!(py, "_prepare_args"), &self.prepare_args)?)
    }

    /// Whether dispatchers are called as they were in the release.
    #[inline]
    pub(super) fn calls(&self, py: Python<'_>) -> PyResult<bool> {
        is_still(&self.dispatcher, intern!(py, "call"), &self.call)
    }
}

fn is_of(object: &Bound<'_, PyAny>, class: &Py<PyType>) -> bool {
    object.get_type_ptr().addr() == class.as_ptr().addr()
}

/// Whether a method of a class is the one that it was.
#[inline]
fn is_still(class: &Py<PyType>, name: &Bound<'_, PyString>, method: &Py<PyAny>) -> PyResult<bool> {
    Ok(class.bind(name.py()).getattr(name)?.is(method))
}
