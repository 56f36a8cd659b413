/* Includes Python and NumPy for a C shim, with the choices that make one binary run on every supported version.
 *
 * Include this first. Except for free-threaded Python, which has no limited API, the shim is compiled for the limited
 * API of CPython 3.11, and for the C API of NumPy 1.26; newer versions of both run it unchanged.
 *
 * CUWHEEL_ABI3 is defined for shims that must not depend on the interpreter that compiles them.
 */
#ifndef CUWHEEL_NUMPY_H
#define CUWHEEL_NUMPY_H

#include <pyconfig.h>

#if !defined(Py_GIL_DISABLED)
#define Py_LIMITED_API 0x030B0000
#elif defined(CUWHEEL_ABI3)
#error "free-threaded Python has no abi3: build without the Cargo feature abi3 (--no-default-features)"
#endif

/* NumPy 1.25 and 1.26 share one version of the C API. */
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/arrayobject.h>

#endif
