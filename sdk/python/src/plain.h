// plain.h: the codec rlhost.plain, of which Python has the rare parts.
#ifndef RLHOST_PLAIN_H
#define RLHOST_PLAIN_H

#include "native.h"

// plain_dumped returns the bytes of a message, or NULL with the exception that says what it does not take.
PyObject *plain_dumped(PyObject *message);

// plain_loaded returns the message that len bytes encode, or NULL with an exception: of the module rlhost.plain where
// places is NULL, else as it comes.
PyObject *plain_loaded(const char *data, size_t len, PyObject *places);

#endif
