/* What only NumPy's C API can tell. Functions of the old sources that use its macros move here, one by one. */
#include <cuwheel_numpy.h>

/* Imports NumPy's C API; before anything else of it, and on first use rather than at import. 0, or -1 with an exception set. */
int {= prefix =}_import_numpy(void)
{
    return _import_array();
}

/* Whether an object is an array of NumPy. */
int {= prefix =}_is_array(PyObject *object)
{
    return PyArray_Check(object);
}
