// rings.c: new rings, and rings of messages for programs that act as a host.
#include "native.h"

#include <string.h>

static PyObject *ring_create(PyObject *module, PyObject *args) {
    unsigned int kind, cells, payload;
    (void)module;
    if (!PyArg_ParseTuple(args, "III:ring_create", &kind, &cells, &payload))
        return NULL;
    int fd = -1;
    int code = rlh_ring_create(&fd, kind, cells, payload);
    if (code < 0)
        return raise_code(code, "ring");
    return PyLong_FromLong(fd);
}

// --------------------------------------------------------------------------------------------------- messages

typedef struct {
    PyObject_HEAD
    rlh_ring *ring;
} Ring;

static PyTypeObject *ring_type;

static PyObject *ring_make(PyTypeObject *type, PyObject *args, PyObject *kw) {
    (void)type;
    (void)kw;
    int fd;
    if (!PyArg_ParseTuple(args, "i:MessageRing", &fd))
        return NULL;
    Ring *o = PyObject_New(Ring, ring_type);
    if (!o)
        return NULL;
    int code = rlh_ring_attach(&o->ring, fd, RLH_RING_MESSAGES, 0);
    if (code < 0) {
        o->ring = NULL;
        Py_DECREF(o);
        return raise_code(code, "ring");
    }
    return (PyObject *)o;
}

static void ring_dealloc(PyObject *self) {
    Ring *o = (Ring *)self;
    if (o->ring)
        rlh_ring_detach(o->ring);
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// put(bytes of one message, timeout=None)
static PyObject *ring_put(PyObject *self, PyObject *args) {
    const char *bytes;
    Py_ssize_t len;
    PyObject *seconds = NULL;
    if (!PyArg_ParseTuple(args, "y#|O:put", &bytes, &len, &seconds))
        return NULL;
    int64_t timeout = read_timeout(seconds);
    rlh_message m;
    if (timeout == -2)
        return NULL;
    if (len != sizeof m)
        return raise_code(RLH_ERR_INVALID, "a message has 64 bytes");
    memcpy(&m, bytes, sizeof m);
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_messages_put(((Ring *)self)->ring, &m, 1, timeout);
    Py_END_ALLOW_THREADS
    return none_or(code);
}

static PyObject *ring_get(PyObject *self, PyObject *args) {
    PyObject *seconds = NULL;
    if (!PyArg_ParseTuple(args, "|O:get", &seconds))
        return NULL;
    int64_t timeout = read_timeout(seconds);
    if (timeout == -2)
        return NULL;
    rlh_message m;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_messages_get(((Ring *)self)->ring, &m, 1, timeout);
    Py_END_ALLOW_THREADS
    if (code < 0)
        return raise_code(code, "ring");
    return message_new(&m);
}

static PyMethodDef ring_methods[] = {
    {"put", ring_put, METH_VARARGS, "Puts one message."},
    {"get", ring_get, METH_VARARGS, "Takes one message, or raises TimedOut."},
    {NULL},
};
static PyType_Slot ring_slots[] = {
    {Py_tp_doc, "One end of a ring of messages, for who plays a host: MessageRing(fd)."},
    {Py_tp_new, ring_make},
    {Py_tp_dealloc, ring_dealloc},
    {Py_tp_methods, ring_methods},
    {0},
};
static PyType_Spec ring_spec = {"rlhost._native.MessageRing", sizeof(Ring), 0, Py_TPFLAGS_DEFAULT, ring_slots};

static PyObject *queue_create(PyObject *module, PyObject *size) {
    (void)module;
    unsigned long long bytes = PyLong_AsUnsignedLongLong(size);
    if (bytes == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    int fd = -1, code = rlh_queue_create(&fd, bytes);
    return code < 0 ? raise_code(code, "queue") : PyLong_FromLong(fd);
}

static PyMethodDef functions[] = {
    {"ring_create", ring_create, METH_VARARGS, "ring_create(kind, cells, payload): the file of a new ring."},
    {"queue_create", queue_create, METH_O, "queue_create(bytes): the file of a new queue of messages of any size."},
    {NULL},
};

int add_rings(PyObject *module) {
    return PyModule_AddFunctions(module, functions) || add_type(module, &ring_spec, &ring_type) ? -1 : 0;
}
