/* Gives Rust the parts of the NumPy C API that exist only as macros and inline functions.
 *
 * No decision is taken here and nothing is kept but NumPy's own function table.
 */
#include "shim.h"

#include <string.h>

/* A shim for the limited API would misread the objects of free-threaded Python, and the other way round. */
static int check_interpreter(void)
{
    PyObject *flags = PySys_GetObject("abiflags");
    int is_free_threaded = 0;
#ifdef Py_GIL_DISABLED
    const int compiled_for_free_threaded = 1;
#else
    const int compiled_for_free_threaded = 0;
#endif
    if (flags != NULL && PyUnicode_Check(flags)) {
        is_free_threaded = PyUnicode_FindChar(flags, 't', 0, PyUnicode_GetLength(flags), 1) >= 0;
    }
    if (is_free_threaded != compiled_for_free_threaded) {
        PyErr_SetString(PyExc_ImportError,
                        "the NumPy support was compiled for another kind of Python (with and without the GIL); "
                        "rebuild this package with the interpreter in use");
        return -1;
    }
    return 0;
}

/* Sets NumPy's function table. A failure may leave behind the table of a NumPy that cannot be used; hence the flag.
 * PyArray_ImportNumPyAPI would take such a table for a good one, and prints the exception instead of raising it. */
static int set_function_table(void)
{
    static int is_set = 0;

    if (!is_set && _import_array() == 0) {
        is_set = 1;
    }
    return is_set ? 0 : -1;
}

/* Threads that race import NumPy each, waiting for one another inside the import system alone. Then one of them at a
 * time sets the function table; with the GIL that needs no lock. */
int cuwheel_numpy_import(void)
{
    PyObject *numpy;
    int status;
#ifdef Py_GIL_DISABLED
    static PyMutex mutex;
#endif

    if (check_interpreter() < 0) {
        return -1;
    }
    numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) {
        return -1;
    }
    Py_DECREF(numpy);
#ifdef Py_GIL_DISABLED
    PyMutex_Lock(&mutex);
#endif
    status = set_function_table();
#ifdef Py_GIL_DISABLED
    PyMutex_Unlock(&mutex);
#endif
    return status;
}

int cuwheel_numpy_is_array(PyObject *object)
{
    return PyArray_Check(object) != 0;
}

int cuwheel_numpy_is_exact_array(PyObject *object)
{
    return PyArray_CheckExact(object) != 0;
}

int cuwheel_numpy_is_scalar(PyObject *object)
{
    return PyArray_IsScalar(object, Generic) != 0;
}

int cuwheel_numpy_is_descriptor(PyObject *object)
{
    return PyArray_DescrCheck(object) != 0;
}

/* What is most frequent, and cheapest to tell, comes first. */
int cuwheel_numpy_kind(PyObject *object)
{
    if (PyArray_CheckExact(object)) {
        return CUWHEEL_NUMPY_EXACT_ARRAY;
    }
    if (PyArray_IsScalar(object, Generic)) {
        return CUWHEEL_NUMPY_SCALAR;
    }
    return PyArray_Check(object) ? CUWHEEL_NUMPY_ARRAY : 0;
}

static void read_element(const PyArray_Descr *descriptor, struct cuwheel_numpy_element *element)
{
    element->type_number = descriptor->type_num;
    element->kind = descriptor->kind;
    element->byte_order = descriptor->byteorder;
    element->itemsize = PyDataType_ELSIZE(descriptor);
    element->alignment = PyDataType_ALIGNMENT(descriptor);
}

int cuwheel_numpy_read_array(PyObject *object, struct cuwheel_numpy_array *state)
{
    PyArrayObject *array = (PyArrayObject *)object;
    size_t dimension_count = (size_t)PyArray_NDIM(array);

    if (dimension_count > CUWHEEL_NUMPY_MAX_DIMENSIONS) {
        return -1;
    }
    state->data = PyArray_DATA(array);
    state->dimension_count = (int)dimension_count;
    state->flags = PyArray_FLAGS(array);
    read_element(PyArray_DESCR(array), &state->element);
    if (dimension_count > 0) {
        memcpy(state->shape, PyArray_DIMS(array), dimension_count * sizeof(Py_ssize_t));
        memcpy(state->strides, PyArray_STRIDES(array), dimension_count * sizeof(Py_ssize_t));
    }
    return 0;
}

void cuwheel_numpy_read_outline(PyObject *object, struct cuwheel_numpy_outline *outline)
{
    PyArrayObject *array = (PyArrayObject *)object;

    outline->dimension_count = PyArray_NDIM(array);
    outline->flags = PyArray_FLAGS(array);
    outline->type_number = PyArray_DESCR(array)->type_num;
    outline->byte_order = PyArray_DESCR(array)->byteorder;
}

void cuwheel_numpy_read_descriptor(PyObject *descriptor, struct cuwheel_numpy_element *element)
{
    read_element((PyArray_Descr *)descriptor, element);
}

int cuwheel_numpy_read_datetime(PyObject *object, struct cuwheel_numpy_datetime *datetime)
{
    PyArray_Descr *descriptor = (PyArray_Descr *)object;
    const PyArray_DatetimeDTypeMetaData *metadata;

    if (!PyTypeNum_ISDATETIME(descriptor->type_num)) {
        return 0;
    }
    metadata = (const PyArray_DatetimeDTypeMetaData *)PyDataType_C_METADATA(descriptor);
    if (metadata == NULL) {
        return 0;
    }
    datetime->unit = metadata->meta.base;
    datetime->count = metadata->meta.num;
    return 1;
}

PyObject *cuwheel_numpy_array_descriptor(PyObject *array)
{
    PyObject *descriptor = (PyObject *)PyArray_DESCR((PyArrayObject *)array);

    Py_INCREF(descriptor);
    return descriptor;
}

PyObject *cuwheel_numpy_scalar_descriptor(PyObject *scalar)
{
    return (PyObject *)PyArray_DescrFromScalar(scalar);
}

_Static_assert(sizeof(npy_intp) == sizeof(Py_ssize_t), "NumPy's sizes are not Python's");
