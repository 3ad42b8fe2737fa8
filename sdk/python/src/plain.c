// plain.c: containers, numbers and text of rlhost.plain. Arrays, integers of more than 64 bits and places are read and
// written by the module in Python, one call each.
#include "plain.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST 64 // containers in containers, as in plain.py

// ---- dumps

// An Out is what has been written. Small messages need no memory of their own.
typedef struct {
    char *at;
    size_t len, room;
    char few[512];
} Out;

static int write_bytes(Out *out, const void *bytes, size_t n) {
    if (n > out->room - out->len) {
        size_t room = out->room;
        while (n > room - out->len)
            room *= 2;
        char *more = out->at == out->few ? malloc(room) : realloc(out->at, room);
        if (!more) {
            PyErr_NoMemory();
            return -1;
        }
        if (out->at == out->few)
            memcpy(more, out->few, out->len);
        out->at = more;
        out->room = room;
    }
    memcpy(out->at + out->len, bytes, n);
    out->len += n;
    return 0;
}

static int write_word(Out *out, char kind, const void *word, size_t n) {
    char bytes[9] = {kind};
    memcpy(bytes + 1, word, n);
    return write_bytes(out, bytes, 1 + n);
}

static int write_count(Out *out, char kind, Py_ssize_t count) {
    if (count < 0)
        return -1;
    if ((size_t)count > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "rlhost.plain takes up to %u items or bytes of one, not %zd", UINT32_MAX, count);
        return -1;
    }
    uint32_t n = (uint32_t)count;
    return write_word(out, kind, &n, sizeof n);
}

static int write_sized(Out *out, char kind, const char *bytes, Py_ssize_t n) {
    return !bytes || write_count(out, kind, n) ? -1 : write_bytes(out, bytes, (size_t)n);
}

// call calls a function of the module rlhost.plain.
static PyObject *call(const char *function, const char *format, PyObject *a, Py_ssize_t at, PyObject *places) {
    PyObject *module = PyImport_ImportModule("rlhost.plain");
    PyObject *result = module ? PyObject_CallMethod(module, function, format, a, at, places) : NULL;
    Py_XDECREF(module);
    return result;
}

static int write_leaf(Out *out, PyObject *x) {
    PyObject *bytes = call("_leaf", "(O)", x, 0, NULL);
    int failed = !bytes || write_bytes(out, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    Py_XDECREF(bytes);
    return failed ? -1 : 0;
}

static int write_any(Out *out, PyObject *x, int depth);

static int write_sequence(Out *out, PyObject *x, int list, int depth) {
    Py_ssize_t count = list ? PyList_Size(x) : PyTuple_Size(x);
    if (write_count(out, list ? '[' : '(', count))
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i); // an error where the list has become shorter
        if (!item)
            return -1;
        Py_INCREF(item);
        int failed = write_any(out, item, depth - 1);
        Py_DECREF(item);
        if (failed)
            return -1;
    }
    return 0;
}

static int write_set(Out *out, PyObject *x, char kind, int depth) {
    PyObject *items = PyObject_GetIter(x), *item; // an error where the set changes meanwhile
    int failed = !items || write_count(out, kind, PySet_Size(x));
    while (!failed && (item = PyIter_Next(items))) {
        failed = write_any(out, item, depth - 1);
        Py_DECREF(item);
    }
    Py_XDECREF(items);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int write_dict(Out *out, PyObject *x, int depth) {
    Py_ssize_t count = PyDict_Size(x), written = 0, at = 0;
    PyObject *key, *value;
    if (write_count(out, '{', count))
        return -1;
    while (PyDict_Next(x, &at, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        int failed = write_any(out, key, depth - 1) || write_any(out, value, depth - 1);
        Py_DECREF(key);
        Py_DECREF(value);
        if (failed)
            return -1;
        written++;
    }
    if (written == count && PyDict_Size(x) == count)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "a dict has changed while rlhost.plain was writing it");
    return -1;
}

static int write_int(Out *out, PyObject *x) {
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow)
        return write_leaf(out, x);
    return write_word(out, 'i', &n, sizeof n);
}

static int write_text(Out *out, PyObject *x) {
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(x, &n);
    return write_sized(out, 's', text, n);
}

static int write_any(Out *out, PyObject *x, int depth) {
    if (depth == 0) {
        PyErr_Format(PyExc_TypeError, "rlhost.plain takes containers in containers up to %d deep", DEEPEST);
        return -1;
    }
    PyTypeObject *kind = Py_TYPE(x);
    if (x == Py_None)
        return write_bytes(out, "N", 1);
    if (kind == &PyBool_Type)
        return write_bytes(out, x == Py_True ? "T" : "F", 1);
    if (kind == &PyLong_Type)
        return write_int(out, x);
    if (kind == &PyFloat_Type) {
        double number = PyFloat_AsDouble(x);
        return write_word(out, 'f', &number, sizeof number);
    }
    if (kind == &PyUnicode_Type)
        return write_text(out, x);
    if (kind == &PyBytes_Type)
        return write_sized(out, 'b', PyBytes_AsString(x), PyBytes_Size(x));
    if (kind == &PyByteArray_Type)
        return write_sized(out, 'b', PyByteArray_AsString(x), PyByteArray_Size(x));
    if (kind == &PyTuple_Type || kind == &PyList_Type)
        return write_sequence(out, x, kind == &PyList_Type, depth);
    if (kind == &PySet_Type || kind == &PyFrozenSet_Type)
        return write_set(out, x, kind == &PySet_Type ? '<' : '|', depth);
    return kind == &PyDict_Type ? write_dict(out, x, depth) : write_leaf(out, x);
}

PyObject *plain_dumped(PyObject *message) {
    Out out = {.at = out.few, .room = sizeof out.few};
    PyObject *bytes = write_any(&out, message, DEEPEST) ? NULL : PyBytes_FromStringAndSize(out.at, (Py_ssize_t)out.len);
    if (out.at != out.few)
        free(out.at);
    return bytes;
}

// ---- loads

// An In is what is read. whole, for Python, is made when it is first wanted.
typedef struct {
    const char *data;
    size_t len, at;
    PyObject *whole, *places;
} In;

static PyObject *refuse(const char *what, size_t at) {
    return PyErr_Format(PyExc_ValueError, "%s at byte %zu", what, at);
}

static int read_bytes(In *in, void *into, size_t n) {
    if (n > in->len - in->at) {
        refuse("it ends", in->len);
        return -1;
    }
    memcpy(into, in->data + in->at, n);
    in->at += n;
    return 0;
}

// read_count reads how many items follow, each of a byte or more, or bytes.
static Py_ssize_t read_count(In *in) {
    uint32_t n;
    if (read_bytes(in, &n, sizeof n))
        return -1;
    if (n <= in->len - in->at)
        return (Py_ssize_t)n;
    PyErr_Format(PyExc_ValueError, "it has %u more at byte %zu of %zu", n, in->at, in->len);
    return -1;
}

static PyObject *read_leaf(In *in) {
    if (!in->whole)
        in->whole = PyBytes_FromStringAndSize(in->data, (Py_ssize_t)in->len);
    if (!in->whole)
        return NULL;
    PyObject *pair = call("_read_leaf", "(OnO)", in->whole, (Py_ssize_t)in->at, in->places ? in->places : Py_None);
    PyObject *value = pair ? PyTuple_GetItem(pair, 0) : NULL, *end = pair ? PyTuple_GetItem(pair, 1) : NULL;
    if (end)
        in->at = PyLong_AsSize_t(end);
    Py_XINCREF(value);
    Py_XDECREF(pair);
    if (value && in->at <= in->len)
        return value;
    Py_XDECREF(value);
    return PyErr_Occurred() ? NULL : refuse("it ends", in->len);
}

static PyObject *read_any(In *in, int depth);

static PyObject *read_sequence(In *in, int list, int depth) {
    Py_ssize_t count = read_count(in);
    PyObject *items = count < 0 ? NULL : list ? PyList_New(count) : PyTuple_New(count);
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = read_any(in, depth - 1);
        if (!item || (list ? PyList_SetItem(items, i, item) : PyTuple_SetItem(items, i, item)))
            Py_CLEAR(items);
    }
    return items;
}

static PyObject *read_set(In *in, int frozen, int depth) {
    Py_ssize_t count = read_count(in);
    PyObject *items = count < 0 ? NULL : frozen ? PyFrozenSet_New(NULL) : PySet_New(NULL);
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = read_any(in, depth - 1);
        if (!item || PySet_Add(items, item))
            Py_CLEAR(items);
        Py_XDECREF(item);
    }
    return items;
}

static PyObject *read_dict(In *in, int depth) {
    Py_ssize_t count = read_count(in);
    PyObject *items = count < 0 ? NULL : PyDict_New();
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *key = read_any(in, depth - 1), *value = key ? read_any(in, depth - 1) : NULL;
        if (!value || PyDict_SetItem(items, key, value))
            Py_CLEAR(items);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return items;
}

static PyObject *read_sized(In *in, int text) {
    Py_ssize_t n = read_count(in);
    if (n < 0)
        return NULL;
    const char *from = in->data + in->at;
    in->at += (size_t)n;
    return text ? PyUnicode_DecodeUTF8(from, n, NULL) : PyBytes_FromStringAndSize(from, n);
}

static PyObject *read_any(In *in, int depth) {
    char kind;
    long long integer;
    double number;
    if (depth == 0)
        return PyErr_Format(PyExc_ValueError, "it is more than %d deep", DEEPEST);
    if (read_bytes(in, &kind, 1))
        return NULL;
    switch (kind) {
    case 'N': return Py_NewRef(Py_None);
    case 'T': return Py_NewRef(Py_True);
    case 'F': return Py_NewRef(Py_False);
    case 'i': return read_bytes(in, &integer, sizeof integer) ? NULL : PyLong_FromLongLong(integer);
    case 'f': return read_bytes(in, &number, sizeof number) ? NULL : PyFloat_FromDouble(number);
    case 's': return read_sized(in, 1);
    case 'b': return read_sized(in, 0);
    case '(': return read_sequence(in, 0, depth);
    case '[': return read_sequence(in, 1, depth);
    case '<': return read_set(in, 0, depth);
    case '|': return read_set(in, 1, depth);
    case '{': return read_dict(in, depth);
    case 'I': case 'a': case 'g': case 'p': in->at--; return read_leaf(in);
    default: return refuse("there is nothing of its kinds", in->at - 1);
    }
}

static PyObject *read_all(const char *data, size_t len, PyObject *places) {
    In in = {.data = data, .len = len, .places = places};
    PyObject *message = read_any(&in, DEEPEST);
    Py_XDECREF(in.whole);
    if (!message || in.at == len)
        return message;
    Py_DECREF(message);
    return refuse("there is more", in.at);
}

PyObject *plain_loaded(const char *data, size_t len, PyObject *places) {
    PyObject *message = read_all(data, len, places);
    if (message || places || !PyErr_ExceptionMatches(PyExc_Exception))
        return message;
    PyErr_Clear(); // the module says it as its users expect
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)len);
    message = bytes ? call("loads", "(O)", bytes, 0, NULL) : NULL;
    Py_XDECREF(bytes);
    return message;
}

static PyObject *dumps(PyObject *module, PyObject *message) {
    (void)module;
    return plain_dumped(message);
}

static PyObject *loads(PyObject *module, PyObject *args) {
    (void)module;
    const char *data;
    Py_ssize_t len;
    PyObject *places;
    if (!PyArg_ParseTuple(args, "y#O:plain_loads", &data, &len, &places))
        return NULL;
    return plain_loaded(data, (size_t)len, places);
}

static PyMethodDef functions[] = {
    {"plain_dumps", dumps, METH_O, "plain_dumps(message): its bytes."},
    {"plain_loads", loads, METH_VARARGS, "plain_loads(bytes, places): the message; ValueError and other exceptions as they come."},
    {NULL},
};

int add_plain(PyObject *module) { return PyModule_AddFunctions(module, functions); }
