// native.h: shared by the files of the extension module rlhost._native. The module is a thin layer over the C library
// of sdk/c/native: it adds Python's objects and exceptions, and releases the interpreter's lock around calls that can
// wait.
#ifndef RLHOST_NATIVE_H
#define RLHOST_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "rlhost.h"

// raise sets the exception of an error code and returns NULL. The text is that of the code, and of errno or the host's
// reason if there is one.
PyObject *raise_code(int code, const char *reason);

// none_or turns the result of a call without a value into None or the exception.
PyObject *none_or(int code);

// wait_slice is the longest wait between checks for signals, in nanoseconds.
#define WAIT_SLICE INT64_C(100000000)

// read_timeout turns None (forever) or seconds into nanoseconds; -2 is an error, with the exception set.
int64_t read_timeout(PyObject *seconds);
int64_t monotonic_ns(void);

// Message is one message of 64 bytes.
typedef struct {
    PyObject_HEAD
    rlh_message m;
} Message;
extern PyTypeObject *message_type;
PyObject *message_new(const rlh_message *m);

// arena_wrap returns the object of an arena that lives as long as owner; if owner is NULL the object detaches it.
PyObject *arena_wrap(rlh_arena *arena, PyObject *owner);

int add_message(PyObject *module);
int add_arena_type(PyObject *module);
int add_host(PyObject *module);
int add_rings(PyObject *module);
int add_queue(PyObject *module);
int add_plain(PyObject *module);

// add_type makes a type from its specification and adds it to the module under its last name.
int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type);

#endif
