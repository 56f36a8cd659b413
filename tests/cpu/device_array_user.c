/* An extension module that uses device arrays from C, as any may: through cuwheel/device_array.h. Also calls of deleters
 * from places where Python cannot be used. Compiled by the tests, as C and as C++. */
#define PY_SSIZE_T_CLEAN
#include <cuwheel/device_array.h>
#include <pthread.h>
#include <stdlib.h>

static const CuwheelDeviceArrayAPI *api;

/* The version, and the class. */
static PyObject *version(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("IIO", api->major, api->minor, (PyObject *)api->type);
}

static PyObject *check(PyObject *self, PyObject *object) {
    (void)self;
    return PyBool_FromLong(api->check(object));
}

static PyObject *numbers(const int64_t *values, int32_t count) {
    PyObject *tuple;
    int32_t index;
    if (values == NULL) Py_RETURN_NONE;
    tuple = PyTuple_New(count);
    for (index = 0; tuple != NULL && index < count; index++)
        PyTuple_SetItem(tuple, index, PyLong_FromLongLong(values[index]));
    return tuple;
}

static PyObject *describe(PyObject *self, PyObject *object) {
    CuwheelDeviceArray array;
    (void)self;
    if (api->describe(object, &array) < 0) return NULL;
    return Py_BuildValue("{sK sN sN sK sK si si si s(iii)}", "data", (unsigned long long)(uintptr_t)array.data, "shape",
                         numbers(array.shape, array.ndim), "strides", numbers(array.strides, array.ndim), "stream",
                         (unsigned long long)array.stream, "item_bits", (unsigned long long)array.item_bits, "device",
                         (int)array.device, "memory_kind", (int)array.memory_kind, "read_only", (int)array.read_only,
                         "dtype", (int)array.dtype_code, (int)array.dtype_bits, (int)array.dtype_lanes);
}

/* What the header's function says of another module. */
static PyObject *api_of(PyObject *self, PyObject *name) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    (void)self;
    if (text == NULL || cuwheel_device_array_api(text) == NULL) return NULL;
    Py_RETURN_NONE;
}

typedef void (*Deleter)(void *);
typedef struct {
    Deleter deleter;
    void *tensor;
} Deletion;

static Deletion at_exit;

static int parse(PyObject *arguments, Deletion *deletion) {
    unsigned long long deleter, tensor;
    if (!PyArg_ParseTuple(arguments, "KK", &deleter, &tensor)) return -1;
    deletion->deleter = (Deleter)(uintptr_t)deleter;
    deletion->tensor = (void *)(uintptr_t)tensor;
    return 0;
}

static void *run(void *argument) {
    Deletion *deletion = (Deletion *)argument;
    deletion->deleter(deletion->tensor);
    return NULL;
}

/* Calls a deleter on a thread that Python knows nothing of, while this one holds on to Python. */
static PyObject *delete_on_thread(PyObject *self, PyObject *arguments) {
    Deletion deletion;
    pthread_t thread;
    (void)self;
    if (parse(arguments, &deletion) < 0) return NULL;
    if (pthread_create(&thread, NULL, run, &deletion) != 0 || pthread_join(thread, NULL) != 0) abort();
    Py_RETURN_NONE;
}

static void run_at_exit(void) {
    if (Py_IsInitialized()) abort();
    run(&at_exit);
}

/* Calls a deleter after Python has ended. */
static PyObject *delete_after_python(PyObject *self, PyObject *arguments) {
    (void)self;
    if (parse(arguments, &at_exit) < 0) return NULL;
    if (atexit(run_at_exit) != 0) abort();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"version", version, METH_NOARGS, NULL},
    {"check", check, METH_O, NULL},
    {"describe", describe, METH_O, NULL},
    {"api_of", api_of, METH_O, NULL},
    {"delete_on_thread", delete_on_thread, METH_VARARGS, NULL},
    {"delete_after_python", delete_after_python, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "device_array_user", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_device_array_user(void) {
    api = cuwheel_device_array_api("cuwheel._devicearray");
    return api == NULL ? NULL : PyModule_Create(&definition);
}
