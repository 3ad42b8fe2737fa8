// host.c: the link to the host. Its methods belong to the main thread, except wake, wire_send, state_send and
// state_take. Calls that can wait run without the interpreter's lock.
#include "native.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    PyObject_HEAD
    rlh_host *host;
    PyObject *on_frame, *on_gone, *on_woken;
    rlh_port *ports; // the library keeps none of it after binding
    int ends;        // the process ends with its host
} Host;

static PyTypeObject *host_type;

// fail_softly prints an exception of a callback, which has no caller.
static void fail_softly(PyObject *where) {
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(where);
}

static void on_frame(void *user, const char *json, size_t len, const int *fds, size_t fd_count) {
    PyGILState_STATE state = PyGILState_Ensure();
    Host *o = user;
    PyObject *files = PyTuple_New((Py_ssize_t)fd_count);
    for (size_t i = 0; files && i < fd_count; i++)
        PyTuple_SetItem(files, (Py_ssize_t)i, PyLong_FromLong(fds[i]));
    PyObject *result = files ? PyObject_CallFunction(o->on_frame, "y#O", json, (Py_ssize_t)len, files) : NULL;
    fail_softly(o->on_frame);
    Py_XDECREF(result);
    Py_XDECREF(files);
    PyGILState_Release(state);
}

// EXIT_GRACE is how long a plugin whose host is gone may take to end by itself.
#define EXIT_GRACE 3

static void on_gone(void *user) {
    Host *o = user;
    if (o->ends) { // a component that never releases the interpreter's lock must end all the same
        signal(SIGALRM, SIG_DFL);
        alarm(EXIT_GRACE);
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunctionObjArgs(o->on_gone, NULL);
    fail_softly(o->on_gone);
    Py_XDECREF(result);
    PyGILState_Release(state);
}

static void on_woken(void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    Host *o = user;
    PyObject *result = PyObject_CallFunctionObjArgs(o->on_woken, NULL);
    fail_softly(o->on_woken);
    Py_XDECREF(result);
    PyGILState_Release(state);
}

static PyObject *host_open(PyTypeObject *type, PyObject *args, PyObject *kw) {
    static char *names[] = {"wire", "into", "out", "frame", "gone", "woken", "ends", NULL};
    (void)type;
    int wire, in, out, ends = 1;
    PyObject *frame, *gone, *woken;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "iiiOOO|p", names, &wire, &in, &out, &frame, &gone, &woken, &ends))
        return NULL;
    Host *o = PyObject_New(Host, host_type);
    if (!o)
        return NULL;
    o->host = NULL;
    o->ports = NULL;
    o->ends = ends;
    o->on_frame = frame;
    o->on_gone = gone;
    o->on_woken = woken;
    Py_INCREF(frame);
    Py_INCREF(gone);
    Py_INCREF(woken);
    rlh_handlers handlers = {.user = o, .woken = on_woken, .frame = on_frame, .gone = on_gone};
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_host_open(&o->host, wire, in, out, &handlers);
    Py_END_ALLOW_THREADS
    if (code < 0) {
        Py_DECREF(o);
        return raise_code(code, "the host's rings");
    }
    return (PyObject *)o;
}

static void host_dealloc(PyObject *self) {
    Host *o = (Host *)self;
    if (o->host) {
        Py_BEGIN_ALLOW_THREADS
        rlh_host_close(o->host);
        Py_END_ALLOW_THREADS
    }
    free(o->ports);
    Py_CLEAR(o->on_frame);
    Py_CLEAR(o->on_gone);
    Py_CLEAR(o->on_woken);
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static rlh_host *open_host(PyObject *self) {
    rlh_host *host = ((Host *)self)->host;
    if (!host)
        raise_code(RLH_ERR_CLOSED, "the link");
    return host;
}

static PyObject *host_close(PyObject *self, PyObject *unused) {
    (void)unused;
    Host *o = (Host *)self;
    rlh_host *host = o->host;
    o->host = NULL;
    if (host) {
        Py_BEGIN_ALLOW_THREADS
        rlh_host_close(host);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

// bind(holder, sender, on_loan, slots): on_loan has one truth value for each signal.
static PyObject *host_bind(PyObject *self, PyObject *args) {
    unsigned int holder, sender, slots;
    PyObject *on_loan;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "IIOI:bind", &holder, &sender, &on_loan, &slots))
        return NULL;
    Py_ssize_t count = PySequence_Size(on_loan);
    if (count < 0)
        return NULL;
    rlh_port *ports = calloc((size_t)count + 1, sizeof *ports);
    if (!ports)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(on_loan, i);
        ports[i] = (rlh_port){.name = "", .payload = "", .doc = "", .on_loan = item ? PyObject_IsTrue(item) : 0};
        Py_XDECREF(item);
    }
    if (PyErr_Occurred()) {
        free(ports);
        return NULL;
    }
    free(((Host *)self)->ports);
    ((Host *)self)->ports = ports;
    int err;
    Py_BEGIN_ALLOW_THREADS // it waits for the wire's thread, which may be about to call on_frame
    err = rlh_host_bind(host, holder, sender, ports, (size_t)count, slots);
    Py_END_ALLOW_THREADS
    return none_or(err);
}

// receive(timeout) returns a message, or None after the timeout or wake.
static PyObject *host_receive(PyObject *self, PyObject *seconds) {
    rlh_host *host = open_host(self);
    int64_t timeout = read_timeout(seconds);
    if (!host || timeout == -2)
        return NULL;
    rlh_message m;
    int code = rlh_receive(host, &m, 0);
    int64_t end = timeout < 0 ? INT64_MAX : monotonic_ns() + timeout;
    while (code == RLH_ERR_TIMEOUT) {
        int64_t left = timeout < 0 ? WAIT_SLICE : end - monotonic_ns();
        if (left <= 0)
            Py_RETURN_NONE;
        Py_BEGIN_ALLOW_THREADS
        code = rlh_receive(host, &m, left < WAIT_SLICE ? left : WAIT_SLICE);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals())
            return NULL;
    }
    if (code == RLH_ERR_WOKEN)
        Py_RETURN_NONE;
    return code < 0 ? raise_code(code, NULL) : message_new(&m);
}

static PyObject *host_finish(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    if (!host)
        return NULL;
    rlh_finish(host);
    Py_RETURN_NONE;
}

static PyObject *host_settle(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    if (!host)
        return NULL;
    rlh_settle(host);
    Py_RETURN_NONE;
}

static PyObject *host_wake(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    if (!host)
        return NULL;
    rlh_wake(host);
    Py_RETURN_NONE;
}

static PyObject *host_end(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    if (!host)
        return NULL;
    rlh_end(host);
    Py_RETURN_NONE;
}

static PyObject *host_begun(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    return host ? PyBool_FromLong(rlh_begun(host)) : NULL;
}

static PyObject *host_kept(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    return host ? PyLong_FromUnsignedLong(rlh_kept(host)) : NULL;
}

static int is_message(PyObject *o) {
    if (PyObject_TypeCheck(o, message_type))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a Message is wanted");
    return 0;
}

// emit(signal, message, request=None)
static PyObject *host_emit(PyObject *self, PyObject *args) {
    unsigned int signal;
    PyObject *message, *request = Py_None;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "IO|O:emit", &signal, &message, &request) || !is_message(message))
        return NULL;
    if (request != Py_None && !is_message(request))
        return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    if (request == Py_None)
        code = rlh_emit(host, signal, &((Message *)message)->m);
    else
        code = rlh_reply(host, signal, &((Message *)message)->m, &((Message *)request)->m);
    Py_END_ALLOW_THREADS
    return none_or(code);
}

// send(slot, kind, inline0, inline1, t=0, split=0): one of the link's own messages.
static PyObject *host_send(PyObject *self, PyObject *args) {
    unsigned short slot, kind;
    unsigned long long a, b;
    unsigned int t = 0, split = 0;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "HHKK|II:send", &slot, &kind, &a, &b, &t, &split))
        return NULL;
    rlh_message m = {0};
    m.slot = slot;
    m.kind = kind;
    m.t = t;
    m.split = split;
    m.inline_[0] = a;
    m.inline_[1] = b;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_send(host, &m);
    Py_END_ALLOW_THREADS
    return none_or(code);
}

static PyObject *host_boundary(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_host *host = open_host(self);
    if (!host)
        return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_boundary(host);
    Py_END_ALLOW_THREADS
    if (PyErr_CheckSignals())
        return NULL;
    return none_or(code);
}

static PyObject *host_stop_run(PyObject *self, PyObject *number) {
    rlh_host *host = open_host(self);
    long reason = PyLong_AsLong(number);
    if (!host || (reason == -1 && PyErr_Occurred()))
        return NULL;
    return none_or(rlh_stop_run(host, (int)reason));
}

static PyObject *found(PyObject *self, rlh_arena *arena) {
    if (!arena)
        Py_RETURN_NONE;
    return arena_wrap(arena, self);
}

// arena_key(handle): identifies the arena of a handle as long as it is mapped; 0 for none.
static PyObject *host_arena_key(PyObject *self, PyObject *number) {
    rlh_host *host = open_host(self);
    rlh_handle h = PyLong_AsUnsignedLongLong(number);
    if (!host || (h == (rlh_handle)-1 && PyErr_Occurred()))
        return NULL;
    rlh_arena *arena;
    Py_BEGIN_ALLOW_THREADS
    arena = rlh_arena_of(host, h);
    Py_END_ALLOW_THREADS
    return PyLong_FromVoidPtr(arena);
}

static PyObject *host_arena_of(PyObject *self, PyObject *number) {
    rlh_host *host = open_host(self);
    rlh_handle h = PyLong_AsUnsignedLongLong(number);
    if (!host || (h == (rlh_handle)-1 && PyErr_Occurred()))
        return NULL;
    rlh_arena *arena;
    Py_BEGIN_ALLOW_THREADS
    arena = rlh_arena_of(host, h);
    Py_END_ALLOW_THREADS
    return found(self, arena);
}

static PyObject *host_arena_named(PyObject *self, PyObject *args) {
    const char *name;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "s:arena_named", &name))
        return NULL;
    rlh_arena *arena;
    Py_BEGIN_ALLOW_THREADS
    arena = rlh_arena_named(host, name);
    Py_END_ALLOW_THREADS
    return found(self, arena);
}

// add_arena(name, blocks, block_bytes, schema or None)
static PyObject *host_add_arena(PyObject *self, PyObject *args) {
    const char *name, *schema;
    unsigned int blocks;
    Py_ssize_t bytes;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "sInz:add_arena", &name, &blocks, &bytes, &schema))
        return NULL;
    rlh_arena *arena = NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_add_arena(host, &arena, name, blocks, (size_t)bytes, schema);
    Py_END_ALLOW_THREADS
    if (code < 0)
        return raise_code(code, code == RLH_ERR_REFUSED ? rlh_reason(host) : name);
    return found(self, arena);
}

// wire_send(document, files)
static PyObject *host_wire_send(PyObject *self, PyObject *args) {
    const char *json;
    Py_ssize_t len;
    PyObject *files = NULL;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "y#|O:wire_send", &json, &len, &files))
        return NULL;
    int fds[RLH_MAX_FILES];
    Py_ssize_t count = files ? PySequence_Size(files) : 0;
    if (count < 0)
        return NULL;
    if (count > RLH_MAX_FILES)
        return raise_code(RLH_ERR_TOO_LONG, "files of a frame");
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(files, i);
        fds[i] = item ? (int)PyLong_AsLong(item) : -1;
        Py_XDECREF(item);
    }
    if (PyErr_Occurred())
        return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_wire_send(host, json, (size_t)len, fds, (size_t)count);
    Py_END_ALLOW_THREADS
    return none_or(code);
}

static PyObject *host_state_send(PyObject *self, PyObject *args) {
    unsigned long long call;
    const char *bytes;
    Py_ssize_t len;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "Ky#:state_send", &call, &bytes, &len))
        return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_state_send(host, call, bytes, (size_t)len);
    Py_END_ALLOW_THREADS
    return none_or(code);
}

static PyObject *host_state_take(PyObject *self, PyObject *args) {
    unsigned long long call;
    PyObject *seconds;
    rlh_host *host = open_host(self);
    if (!host || !PyArg_ParseTuple(args, "KO:state_take", &call, &seconds))
        return NULL;
    int64_t timeout = read_timeout(seconds);
    if (timeout == -2)
        return NULL;
    void *bytes = NULL;
    size_t len = 0;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rlh_state_take(host, call, &bytes, &len, timeout);
    Py_END_ALLOW_THREADS
    if (code < 0)
        return raise_code(code, "a saved state");
    PyObject *state = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)len);
    free(bytes);
    return state;
}

static PyMethodDef host_methods[] = {
    {"close", host_close, METH_NOARGS, "Ends the link and unmaps its memory."},
    {"bind", host_bind, METH_VARARGS, "Says who the plugin is; messages can be sent and received from then on."},
    {"receive", host_receive, METH_O, "Waits for the next message; None when the time is over or wake was called."},
    {"finish", host_finish, METH_NOARGS, "Finishes with the last message early."},
    {"settle", host_settle, METH_NOARGS, "Finishes with the last message and tells the host at once."},
    {"wake", host_wake, METH_NOARGS, "Ends a waiting receive. Any thread."},
    {"end", host_end, METH_NOARGS, "Makes everything that waits for the host raise Closed from now on. Any thread."},
    {"begun", host_begun, METH_NOARGS, "Whether the run has begun; receive returns None when it does."},
    {"kept", host_kept, METH_NOARGS, "How many claims there are on blocks of others' arenas."},
    {"emit", host_emit, METH_VARARGS, "Sends a message from a signal, or answers a request."},
    {"send", host_send, METH_VARARGS, "Sends one of the link's own messages."},
    {"boundary", host_boundary, METH_NOARGS, "Tells of a dataset boundary and waits until it is over."},
    {"stop_run", host_stop_run, METH_O, "Asks for the end of the run."},
    {"arena_key", host_arena_key, METH_O, "What names the arena of a handle, 0 if there is none."},
    {"arena_of", host_arena_of, METH_O, "The arena of a handle, or None."},
    {"arena_named", host_arena_named, METH_VARARGS, "The arena of a name, or None."},
    {"add_arena", host_add_arena, METH_VARARGS, "Asks the host for an arena."},
    {"wire_send", host_wire_send, METH_VARARGS, "Sends one frame. Any thread."},
    {"state_send", host_state_send, METH_VARARGS, "Sends a saved state. Any thread."},
    {"state_take", host_state_take, METH_VARARGS, "Waits for the state of a call. Any thread."},
    {NULL},
};
static PyType_Slot host_slots[] = {
    {Py_tp_doc, "The link to the host: Host(wire, into, out, frame, gone, woken)."},
    {Py_tp_new, host_open},
    {Py_tp_dealloc, host_dealloc},
    {Py_tp_methods, host_methods},
    {0},
};
static PyType_Spec host_spec = {"rlhost._native.Host", sizeof(Host), 0, Py_TPFLAGS_DEFAULT, host_slots};

int add_host(PyObject *module) { return add_type(module, &host_spec, &host_type); }
