/* What the C shim offers to Rust; src/sys.rs declares the same.
 *
 * Every function needs a thread that is attached to the interpreter. Every function but cuwheel_numpy_import needs that
 * one to have succeeded before. Arguments are borrowed references, never NULL, to objects of the kind that the name
 * says.
 *
 * What an array points to is read without a lock. With the GIL nothing can change meanwhile, for nothing here runs
 * Python code. In free-threaded Python no other thread may give the array another shape, strides or data type in place
 * during the call: NumPy frees the old ones at once.
 */
#ifndef CUWHEEL_NUMPY_SHIM_H
#define CUWHEEL_NUMPY_SHIM_H

#include <cuwheel_numpy.h>

/* The largest number of dimensions of any NumPy version; src/sys.rs reads it here. */
#define CUWHEEL_NUMPY_MAX_DIMENSIONS 64

/* What cuwheel_numpy_kind returns; src/sys.rs reads them here. */
#define CUWHEEL_NUMPY_EXACT_ARRAY 1
#define CUWHEEL_NUMPY_ARRAY 2
#define CUWHEEL_NUMPY_SCALAR 3

/* What a descriptor says about one item. */
struct cuwheel_numpy_element {
    int type_number;
    char kind;
    char byte_order;
    Py_ssize_t itemsize;
    Py_ssize_t alignment;
};

/* The state of an array. Of shape and strides, the first dimension_count values are set. */
struct cuwheel_numpy_array {
    void *data;
    int dimension_count;
    int flags;
    struct cuwheel_numpy_element element;
    Py_ssize_t shape[CUWHEEL_NUMPY_MAX_DIMENSIONS];
    Py_ssize_t strides[CUWHEEL_NUMPY_MAX_DIMENSIONS];
};

/* What an array is, in as few words as tell arrays of numbers apart. */
struct cuwheel_numpy_outline {
    int dimension_count;
    int flags;
    int type_number;
    char byte_order;
};

/* The unit of a date or of a duration is `count` times the one that `unit`, an NPY_DATETIMEUNIT, stands for. */
struct cuwheel_numpy_datetime {
    int unit;
    int count;
};

/* Imports NumPy; may be called again, and by several threads at once. Returns 0, or -1 with an exception set. */
int cuwheel_numpy_import(void);

/* These return 1 or 0. */
int cuwheel_numpy_is_array(PyObject *object);
int cuwheel_numpy_is_exact_array(PyObject *object);
int cuwheel_numpy_is_scalar(PyObject *object);
int cuwheel_numpy_is_descriptor(PyObject *object);

/* Returns CUWHEEL_NUMPY_EXACT_ARRAY, CUWHEEL_NUMPY_ARRAY for instances of subclasses, CUWHEEL_NUMPY_SCALAR, or 0. */
int cuwheel_numpy_kind(PyObject *object);

/* Fills in *state and returns 0, or returns -1, without an exception, if there are too many dimensions. */
int cuwheel_numpy_read_array(PyObject *array, struct cuwheel_numpy_array *state);

void cuwheel_numpy_read_outline(PyObject *array, struct cuwheel_numpy_outline *outline);
void cuwheel_numpy_read_descriptor(PyObject *descriptor, struct cuwheel_numpy_element *element);

/* Fills in *datetime and returns 1, or returns 0 if the descriptor is not for dates or durations. */
int cuwheel_numpy_read_datetime(PyObject *descriptor, struct cuwheel_numpy_datetime *datetime);

/* These return a new reference, or NULL with an exception set. */
PyObject *cuwheel_numpy_array_descriptor(PyObject *array);
PyObject *cuwheel_numpy_scalar_descriptor(PyObject *scalar);

#endif
