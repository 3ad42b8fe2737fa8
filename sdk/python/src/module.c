// module.c: the module itself, its exceptions, and its messages.
#include "native.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static PyObject *error, *exhausted, *stale, *foreign, *not_committed, *out_of_range, *closed, *refused, *timed_out;

static PyObject *exception_of(int code) {
    switch (code) {
    case RLH_ERR_EXHAUSTED:
    case RLH_ERR_BUSY:
        return exhausted;
    case RLH_ERR_STALE:
        return stale;
    case RLH_ERR_FOREIGN:
        return foreign;
    case RLH_ERR_RANGE:
        return out_of_range;
    case RLH_ERR_STATE:
        return not_committed;
    case RLH_ERR_CLOSED:
        return closed;
    case RLH_ERR_REFUSED:
        return refused;
    case RLH_ERR_TIMEOUT:
        return timed_out;
    case RLH_ERR_MEMORY:
        return PyExc_MemoryError;
    case RLH_ERR_SYSTEM:
        return PyExc_OSError;
    }
    return error;
}

PyObject *raise_code(int code, const char *reason) {
    if (PyErr_Occurred())
        return NULL;
    if (code == RLH_ERR_SYSTEM)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (reason && *reason)
        return PyErr_Format(exception_of(code), "%s: %s", rlh_strerror(code), reason);
    PyErr_SetString(exception_of(code), rlh_strerror(code));
    return NULL;
}

PyObject *none_or(int code) {
    if (code < 0)
        return raise_code(code, NULL);
    Py_RETURN_NONE;
}

int64_t read_timeout(PyObject *seconds) {
    if (!seconds || seconds == Py_None)
        return RLH_FOREVER;
    double s = PyFloat_AsDouble(seconds);
    if (s == -1 && PyErr_Occurred())
        return -2;
    if (s != s || s < 0) {
        PyErr_SetString(PyExc_ValueError, "a timeout is None or a number of seconds from 0");
        return -2;
    }
    return s > 9e9 ? RLH_FOREVER : (int64_t)(s * 1e9);
}

int64_t monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    PyObject *made = PyType_FromSpec(spec);
    if (!made)
        return -1;
    *type = (PyTypeObject *)made;
    Py_INCREF(made);
    const char *dot = strrchr(spec->name, '.');
    return PyModule_AddObject(module, dot + 1, made);
}

// ---------------------------------------------------------------------------------------------------- messages

PyTypeObject *message_type;

PyObject *message_new(const rlh_message *m) {
    Message *o = PyObject_New(Message, message_type);
    if (!o)
        return NULL;
    o->m = *m;
    return (PyObject *)o;
}

// fill sets the fields given by keyword.
static int fill(rlh_message *m, PyObject *args, PyObject *kw) {
    static char *names[] = {"handle", "kind", "t", "split", "policy_version", "inline", "signal",
                            "slot", "sender", "sequence", NULL};
    unsigned long long handle = m->handle, version = m->policy_version, sequence = m->sequence;
    unsigned long long a = m->inline_[0], b = m->inline_[1];
    unsigned int t = m->t, split = m->split;
    unsigned short kind = m->kind, signal = m->signal, slot = m->slot, sender = m->sender;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$KHIIK(KK)HHHK", names, &handle, &kind, &t, &split, &version, &a, &b,
                                     &signal, &slot, &sender, &sequence))
        return -1;
    m->handle = handle;
    m->kind = kind;
    m->t = t;
    m->split = split;
    m->policy_version = version;
    m->inline_[0] = a;
    m->inline_[1] = b;
    m->signal = signal;
    m->slot = slot;
    m->sender = sender;
    m->sequence = sequence;
    return 0;
}

static PyObject *message_make(PyTypeObject *type, PyObject *args, PyObject *kw) {
    (void)type;
    rlh_message m = {0};
    return fill(&m, args, kw) ? NULL : message_new(&m);
}

static PyObject *message_replace(PyObject *o, PyObject *args, PyObject *kw) {
    rlh_message m = ((Message *)o)->m;
    return fill(&m, args, kw) ? NULL : message_new(&m);
}

static void plain_dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

static PyObject *message_inline(PyObject *o, void *unused) {
    (void)unused;
    const rlh_message *m = &((Message *)o)->m;
    return Py_BuildValue("(KK)", (unsigned long long)m->inline_[0], (unsigned long long)m->inline_[1]);
}

static PyObject *message_bytes(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyBytes_FromStringAndSize((const char *)&((Message *)o)->m, sizeof(rlh_message));
}

static PyObject *message_repr(PyObject *o) {
    const rlh_message *m = &((Message *)o)->m;
    return PyUnicode_FromFormat("Message(slot=%u, signal=%u, kind=%u, handle=%llu, t=%u, split=%u, policy_version=%llu, "
                                "inline=(%llu, %llu))",
                                m->slot, m->signal, m->kind, (unsigned long long)m->handle, m->t, m->split,
                                (unsigned long long)m->policy_version, (unsigned long long)m->inline_[0],
                                (unsigned long long)m->inline_[1]);
}

#define FIELD(name, type, field, doc) {name, type, offsetof(Message, m) + offsetof(rlh_message, field), READONLY, doc}
static PyMemberDef message_members[] = {
    FIELD("ctl", T_ULONGLONG, ctl, "the transport's own word"),
    FIELD("signal", T_USHORT, signal, "index of the signal it came from"),
    FIELD("slot", T_USHORT, slot, "index of the slot it goes to"),
    FIELD("sender", T_USHORT, sender, "component that emitted it"),
    FIELD("kind", T_USHORT, kind, "meaning of inline"),
    FIELD("handle", T_ULONGLONG, handle, "block that it carries, or 0"),
    FIELD("t", T_UINT, t, "row within the block"),
    FIELD("split", T_UINT, split, "split of the sender"),
    FIELD("policy_version", T_ULONGLONG, policy_version, "policy version that it speaks of"),
    FIELD("sequence", T_ULONGLONG, sequence, "counts the messages of one signal, from 1"),
    {NULL},
};
static PyGetSetDef message_getset[] = {
    {"inline", message_inline, NULL, "payload: two numbers of 64 bits", NULL},
    {NULL},
};
static PyMethodDef message_methods[] = {
    {"replace", (PyCFunction)(void (*)(void))message_replace, METH_VARARGS | METH_KEYWORDS, "A copy with other fields."},
    {"__bytes__", message_bytes, METH_NOARGS, "the 64 bytes"},
    {NULL},
};
static PyType_Slot message_slots[] = {
    {Py_tp_doc, "One message. It is a copy: it may be kept, unlike the claim on its block."},
    {Py_tp_new, message_make},
    {Py_tp_dealloc, plain_dealloc},
    {Py_tp_repr, message_repr},
    {Py_tp_members, message_members},
    {Py_tp_getset, message_getset},
    {Py_tp_methods, message_methods},
    {0},
};
static PyType_Spec message_spec = {"rlhost._native.Message", sizeof(Message), 0, Py_TPFLAGS_DEFAULT, message_slots};

int add_message(PyObject *module) { return add_type(module, &message_spec, &message_type); }

// ------------------------------------------------------------------------------------------------------ module

static int add_exception(PyObject *module, const char *name, PyObject *base, const char *doc, PyObject **made) {
    char full[64];
    snprintf(full, sizeof full, "rlhost.%s", name);
    *made = PyErr_NewExceptionWithDoc(full, doc, base, NULL);
    if (!*made)
        return -1;
    Py_INCREF(*made);
    return PyModule_AddObject(module, name, *made);
}

static int add_exceptions(PyObject *module) {
    if (add_exception(module, "Error", NULL, "What the host's memory or the link refuses.", &error))
        return -1;
    PyObject *both = PyTuple_Pack(2, error, PyExc_TimeoutError);
    if (!both)
        return -1;
    int failed = add_exception(module, "Exhausted", error, "No block is free.", &exhausted) ||
                 add_exception(module, "Stale", error, "The handle's use of its block is over.", &stale) ||
                 add_exception(module, "Foreign", error, "The handle belongs to another arena, or to none.", &foreign) ||
                 add_exception(module, "OutOfRange", error, "The arena has no block of that index.", &out_of_range) ||
                 add_exception(module, "NotCommitted", error, "The block is still being written.", &not_committed) ||
                 add_exception(module, "Closed", error, "The arena, queue or link has been closed.", &closed) ||
                 add_exception(module, "Refused", error, "The host does not grant it.", &refused) ||
                 add_exception(module, "TimedOut", both, "Nothing happened in the time given.", &timed_out);
    Py_DECREF(both);
    return failed ? -1 : 0;
}

static int add_constants(PyObject *module) {
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        {"FD_WIRE", RLH_FD_WIRE},
        {"LINK_POLICY_LOAD", RLH_LINK_POLICY_LOAD},
        {"LINK_POLICY_ACT", RLH_LINK_POLICY_ACT},
        {"LINK_POLICY_REPLY", RLH_LINK_POLICY_REPLY},
        {"LINK_POLICY_GREEDY", RLH_LINK_POLICY_GREEDY},
        {"LINK_POLICY_VALUE", RLH_LINK_POLICY_VALUE},
        {"LINK_ENV_BIND", RLH_LINK_ENV_BIND},
        {"LINK_ENV_RESET", RLH_LINK_ENV_RESET},
        {"LINK_ENV_STEP", RLH_LINK_ENV_STEP},
        {"LINK_ENV_STEP_ALONE", RLH_LINK_ENV_STEP_ALONE},
        {"LINK_ENV_STEPPED_ALONE", RLH_LINK_ENV_STEPPED_ALONE},
        {"LINK_ENV_REPLY", RLH_LINK_ENV_REPLY},
        {"LINK_ENV_METRIC", RLH_LINK_ENV_METRIC},
        {"LINK_ENV_MASK", RLH_LINK_ENV_MASK},
        {"LINK_ENV_SEEDS", RLH_LINK_ENV_SEEDS},
        {"LINK_ENV_FAULT_STATUS", RLH_LINK_ENV_FAULT_STATUS},
        {"LINK_ENV_FAULT_REFUSED", RLH_LINK_ENV_FAULT_REFUSED},
        {"RING_MESSAGES", RLH_RING_MESSAGES},
        {"RING_QUEUE", RLH_RING_QUEUE},
        {"MAX_RING_BATCH", RLH_MAX_RING_BATCH},
        {"MAX_RING_CELLS", RLH_MAX_RING_CELLS},
        {"MAX_RING_PAYLOAD", RLH_MAX_RING_PAYLOAD},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value))
            return -1;
    return 0;
}

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rlhost._native", "Rings, arenas and the link to the host, over the C library.", -1, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    if (add_exceptions(module) || add_constants(module) || add_message(module) || add_arena_type(module) ||
        add_host(module) || add_rings(module) || add_queue(module) || add_plain(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
