/* What needs the C API of NumPy. Compiled for the limited API, so that one binary serves CPython 3.11 and NumPy 1.26 and all
 * that are newer.
 */
#include <cuwheel_numpy.h>

/* Comes before every other function, and is called again only if it failed. */
int shim_import_numpy(void)
{
    return _import_array();
}

/* Adds up the elements of an array of float32, of any shape and strides. */
int shim_sum(PyObject *object, double *sum)
{
    PyArrayObject *array = (PyArrayObject *)object;
    PyArrayIterObject *elements;

    if (!PyArray_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a NumPy array is needed");
        return -1;
    }
    if (PyArray_TYPE(array) != NPY_FLOAT || !PyArray_ISBEHAVED_RO(array)) {
        PyErr_SetString(PyExc_TypeError, "the elements have to be float32, aligned and in native byte order");
        return -1;
    }
    elements = (PyArrayIterObject *)PyArray_IterNew(object);
    if (elements == NULL) {
        return -1;
    }
    *sum = 0.0;
    while (PyArray_ITER_NOTDONE(elements)) {
        *sum += *(const npy_float *)PyArray_ITER_DATA(elements);
        PyArray_ITER_NEXT(elements);
    }
    Py_DECREF(elements);
    return 0;
}
