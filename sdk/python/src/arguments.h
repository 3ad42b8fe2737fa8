// arguments.h: the arguments of the queue's methods. They are read for each message, so the common ways to pass them
// are fast.
#ifndef RLHOST_ARGUMENTS_H
#define RLHOST_ARGUMENTS_H

#include "native.h"

// A signature names the arguments of a method; the first of them are required.
typedef struct {
    const char *usage, *names[4];
    Py_ssize_t required;
    PyObject *interned[4]; // interned, as callers mostly pass them
} Signature;

static Signature put_arguments = {"put(message, block=True, timeout=10)", {"message", "block", "timeout"}, 1, {NULL}};
static Signature put_many_arguments = {"put_many(messages, block=True, timeout=10, whole=True)",
                                       {"messages", "block", "timeout", "whole"}, 1, {NULL}};
static Signature get_arguments = {"get(block=True, timeout=10)", {"block", "timeout"}, 0, {NULL}};
static Signature get_many_arguments = {"get_many(block=True, timeout=10, max_messages_to_get=255)",
                                       {"block", "timeout", "max_messages_to_get"}, 0, {NULL}};

static int intern_names(void) {
    Signature *all[] = {&put_arguments, &put_many_arguments, &get_arguments, &get_many_arguments};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 4 && all[s]->names[i]; i++) {
            all[s]->interned[i] = PyUnicode_InternFromString(all[s]->names[i]);
            if (!all[s]->interned[i])
                return -1;
        }
    }
    return 0;
}

// place_of returns the place of a name, or one past all signatures.
static int place_of(const Signature *s, PyObject *name) {
    for (int i = 0; i < 4; i++) {
        if (s->interned[i] == name)
            return i;
    }
    int i = 0;
    while (i < 4 && s->names[i] && PyUnicode_CompareWithASCIIString(name, s->names[i]))
        i++;
    return i < 4 && s->names[i] ? i : 4;
}

// read_arguments puts each argument at its name's place, NULL where it was not given.
static inline int read_arguments(const Signature *s, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **into) {
    for (int i = 0; i < 4; i++)
        into[i] = i < n ? args[i] : NULL;
    int wrong = n > 4 || (n > 0 && !s->names[n - 1]);
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t k = 0; k < named && !wrong; k++) {
        int i = place_of(s, PyTuple_GetItem(names, k));
        wrong = i == 4 || into[i];
        if (!wrong)
            into[i] = args[n + k];
    }
    for (Py_ssize_t i = 0; i < s->required; i++)
        wrong |= !into[i];
    if (wrong)
        PyErr_Format(PyExc_TypeError, "want %s", s->usage);
    return wrong ? -1 : 0;
}

#define TIMEOUT_NOT_GIVEN (INT64_C(10) * 1000000000) // as in faster-fifo

// read_wait turns block and timeout into nanoseconds; -2 is an error, with the exception set.
static inline int64_t read_wait(PyObject *block, PyObject *timeout) {
    if (block && block != Py_True && block != Py_False) {
        PyErr_Format(PyExc_TypeError, "block is True or False, not %R; a number of seconds is timeout=%R", block, block);
        return -2;
    }
    int64_t ns = timeout ? read_timeout(timeout) : TIMEOUT_NOT_GIVEN;
    return block == Py_False && ns != -2 ? 0 : ns;
}

#endif
