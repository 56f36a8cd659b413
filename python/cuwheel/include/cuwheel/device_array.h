/* cuwheel.DeviceArray for extension modules in C and C++.
 *
 *     #include <cuwheel/device_array.h>
 *
 *     static const CuwheelDeviceArrayAPI *api;
 *
 *     // In the function that executes the module; Python code has imported cuwheel._devicearray before.
 *     api = cuwheel_device_array_api("cuwheel._devicearray");
 *     if (api == NULL) return -1;
 *
 *     // With any object:
 *     CuwheelDeviceArray array;
 *     if (api->describe(object, &array) < 0) return NULL;
 *
 * The directory to include from is what cuwheel.get_include() returns. Nothing here needs CUDA's headers or NumPy's.
 */
#ifndef CUWHEEL_DEVICE_ARRAY_H
#define CUWHEEL_DEVICE_ARRAY_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The layout of the structures below. A library of another major version is refused; one of a newer minor version has
 * more members at the end of CuwheelDeviceArrayAPI. */
#define CUWHEEL_DEVICE_ARRAY_API_MAJOR 1
#define CUWHEEL_DEVICE_ARRAY_API_MINOR 0

/* Kinds of memory. */
enum {
    CUWHEEL_MEMORY_DEVICE = 0,  /* of a device; the host cannot read it */
    CUWHEEL_MEMORY_PINNED = 1,  /* of the host, for fast copies */
    CUWHEEL_MEMORY_MAPPED = 2,  /* of the host, for kernels to read and write */
    CUWHEEL_MEMORY_MANAGED = 3, /* of whoever touches it */
    CUWHEEL_MEMORY_HOST = 4     /* ordinary memory of the host */
};

/* What an array is. The pointers hold as long as the object lives; arrays never change. */
typedef struct CuwheelDeviceArray {
    void *data;             /* the first element; NULL if there is none */
    const int64_t *shape;   /* ndim numbers of elements */
    const int64_t *strides; /* ndim distances in elements; NULL if they are no whole numbers of elements */
    uint64_t stream;        /* the CUstream in whose order the memory is used; 0 is the legacy default stream */
    uint64_t item_bits;     /* the bits of an element, with all of its lanes */
    int32_t ndim;
    int32_t device;      /* the number of the device that the memory is on or belongs to */
    int32_t memory_kind; /* one of CUWHEEL_MEMORY_* */
    int32_t read_only;   /* not 0 if the elements must not be written */
    uint8_t dtype_code;  /* the data type as DLPack's DLDataType; 3 (opaque handle) for bytes without meaning */
    uint8_t dtype_bits;
    uint16_t dtype_lanes;
} CuwheelDeviceArray;

/* What the capsule `_DEVICEARRAY_API` holds. Call the functions with the thread attached (the GIL held). */
typedef struct CuwheelDeviceArrayAPI {
    uint32_t major;
    uint32_t minor;
    /* The class cuwheel.DeviceArray; borrowed, and alive as long as the process. */
    PyTypeObject *type;
    /* 1 if the object is a DeviceArray, else 0; never fails. */
    int (*check)(PyObject *object);
    /* Describes a DeviceArray: 0, or -1 with TypeError set if the object is something else. */
    int (*describe)(PyObject *object, CuwheelDeviceArray *array);
} CuwheelDeviceArrayAPI;

/* The functions, out of the loaded module of this name; NULL with ImportError set if there is none that fits.
 * Imports nothing: a module that is being imported can be asked too. */
static inline const CuwheelDeviceArrayAPI *cuwheel_device_array_api(const char *module_name) {
    const CuwheelDeviceArrayAPI *api = NULL;
    PyObject *name = NULL, *module = NULL, *capsule = NULL;
    const char *capsule_name;
    /* A variable, for compilers warn of comparisons with a constant that happens to be 0. */
    uint32_t oldest_minor = CUWHEEL_DEVICE_ARRAY_API_MINOR;

    name = PyUnicode_FromString(module_name);
    if (name == NULL) goto done;
    module = PyImport_GetModule(name);
    if (module == NULL) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ImportError, "%s is not loaded; import it before this module", module_name);
        goto done;
    }
    capsule = PyObject_GetAttrString(module, "_DEVICEARRAY_API");
    if (capsule == NULL) goto done;
    capsule_name = PyCapsule_GetName(capsule);
    if (capsule_name == NULL && PyErr_Occurred()) goto done;
    api = (const CuwheelDeviceArrayAPI *)PyCapsule_GetPointer(capsule, capsule_name);
    if (api == NULL) goto done;
    if (api->major != CUWHEEL_DEVICE_ARRAY_API_MAJOR || api->minor < oldest_minor) {
        PyErr_Format(PyExc_ImportError,
                     "%s has version %u.%u of its C API, and this module was compiled for %u.%u; compile it against "
                     "the installed version",
                     module_name, api->major, api->minor, (unsigned)CUWHEEL_DEVICE_ARRAY_API_MAJOR,
                     (unsigned)CUWHEEL_DEVICE_ARRAY_API_MINOR);
        api = NULL;
    }
done:
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return api;
}

#ifdef __cplusplus
}
#endif

#endif /* CUWHEEL_DEVICE_ARRAY_H */
