// rings.c: the queue between Python processes, and rings of messages for who plays a host.
#include "native.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// forks counts how often this process is the child of a fork: a queue's name as an owner is not inherited.
static unsigned forks;
static void after_fork(void) { forks++; }

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

// ------------------------------------------------------------------------------------------------------- queue

typedef struct {
    PyObject_HEAD
    rlh_ring *ring;
    unsigned forks; // when it was attached, and when users were counted
    unsigned users; // calls under way: what they use stays until the last has returned
    int closing;    // _close has been called
    size_t room;    // bytes of memory
    char *memory;   // what one get copies to, of room bytes
    int busy;       // memory is in use by a thread
} Queue;

static PyTypeObject *queue_type;

static PyObject *queue_make(PyTypeObject *type, PyObject *args, PyObject *kw) {
    (void)args;
    (void)kw;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0); // zeros: attached to nothing
}

static void queue_detach(Queue *o) {
    if (o->ring)
        rlh_ring_detach(o->ring);
    o->ring = NULL;
}

static void queue_dealloc(PyObject *self) {
    queue_detach((Queue *)self); // each call under way holds a reference, so there is none
    free(((Queue *)self)->memory);
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// _open(fd, owner) attaches, in place of what the parent of a fork was attached to.
static PyObject *queue_open(PyObject *self, PyObject *args) {
    Queue *o = (Queue *)self;
    int fd;
    unsigned int owner;
    if (!PyArg_ParseTuple(args, "iI:_open", &fd, &owner))
        return NULL;
    queue_detach(o);
    o->users = 0; // those of the parent are not here
    o->forks = forks;
    int code = rlh_ring_attach(&o->ring, fd, RLH_RING_QUEUE, owner);
    if (code < 0) {
        o->ring = NULL;
        return raise_code(code, "queue");
    }
    if (o->memory)
        Py_RETURN_NONE; // a call that a signal handler's fork has interrupted may hold it
    size_t payload = rlh_ring_payload(o->ring);
    o->room = payload * RLH_MAX_RING_BATCH;
    if (o->room > 1 << 20)
        o->room = payload > 1 << 20 ? payload : 1 << 20;
    o->memory = malloc(o->room ? o->room : 1);
    if (!o->memory)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

// _close() ends the calls that wait. The last call that is under way detaches, or this one, and then runs the method
// _detached of the Python class: until then the process is an owner of the queue whose cells nobody may repair.
static PyObject *queue_close(PyObject *self, PyObject *unused) {
    (void)unused;
    Queue *o = (Queue *)self;
    if (o->forks != forks)
        o->users = 0;
    if (!o->closing && o->ring)
        rlh_ring_cancel(o->ring);
    o->closing = 1;
    if (o->users > 0 || !o->ring)
        Py_RETURN_NONE;
    queue_detach(o);
    return PyObject_CallMethod(self, "_detached", NULL);
}

static int fail_closed(void) {
    raise_code(RLH_ERR_CLOSED, "queue");
    return -1;
}

// enter begins a call: it attaches anew in the child of a fork, by the method _attach of the Python class. leave ends it.
static int enter(Queue *o) {
    if (o->closing || !o->ring)
        return fail_closed();
    if (o->forks != forks) {
        PyObject *result = PyObject_CallMethod((PyObject *)o, "_attach", NULL);
        if (!result)
            return -1;
        Py_DECREF(result);
        if (o->closing || !o->ring)
            return fail_closed();
    }
    o->users++;
    return 0;
}

static void *leave(Queue *o, void *result) {
    if (o->users > 0) // a fork in between has forgotten it
        o->users--;
    if (o->users > 0 || !o->closing || !o->ring)
        return result;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    queue_detach(o);
    PyObject *done = PyObject_CallMethod((PyObject *)o, "_detached", NULL);
    if (!done)
        PyErr_WriteUnraisable((PyObject *)o);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
    return result;
}

// waited says whether to wait on, after a slice of waiting was in vain: signals are looked after, and what dead
// processes left behind is repaired by the method _sweep of the Python class.
static int waited(Queue *o) {
    if (PyErr_CheckSignals())
        return -1;
    if (o->forks != forks && enter(o)) // a signal's handler has forked, and this is the child
        return -1;
    if (o->closing)
        return fail_closed();
    PyObject *result = PyObject_CallMethod((PyObject *)o, "_sweep", NULL);
    if (!result)
        return -1;
    Py_DECREF(result);
    return o->closing ? fail_closed() : 0;
}

static PyObject *raise_std(const char *name) {
    PyObject *module = PyImport_ImportModule("queue");
    PyObject *type = module ? PyObject_GetAttrString(module, name) : NULL;
    if (type)
        PyErr_SetString(type, strcmp(name, "Full") ? "no message in the time given" : "no room in the time given");
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

// as_item points an item to the bytes of an object; it stays the caller's.
static int as_item(Queue *o, PyObject *data, rlh_item *item) {
    char *bytes;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(data, &bytes, &len))
        return -1;
    if ((size_t)len > rlh_ring_payload(o->ring)) {
        PyErr_Format(PyExc_ValueError, "message of %zd bytes, the queue takes up to %u", len, rlh_ring_payload(o->ring));
        return -1;
    }
    *item = (rlh_item){.bytes = bytes, .len = (uint32_t)len};
    return 0;
}

// put_items puts from one up to count items, as many as there is room for, and waits for room for one as long as it
// takes, at most until end. It returns how many were put, or a negative code, or EXCEPTION with an exception set.
#define EXCEPTION (-1000)
static int put_items(Queue *o, const rlh_item *items, size_t count, int64_t timeout, int64_t *end) {
    int code = rlh_queue_put(o->ring, items, count, 0); // all of them or none
    while (code == RLH_ERR_TIMEOUT && count > 1) {
        count /= 2;
        code = rlh_queue_put(o->ring, items, count, 0);
    }
    while (code == RLH_ERR_TIMEOUT) {
        if (timeout >= 0 && !*end)
            *end = monotonic_ns() + timeout;
        int64_t left = timeout < 0 ? WAIT_SLICE : *end - monotonic_ns();
        if (left <= 0)
            return code;
        Py_BEGIN_ALLOW_THREADS
        code = rlh_queue_put(o->ring, items, count, left < WAIT_SLICE ? left : WAIT_SLICE);
        Py_END_ALLOW_THREADS
        if (code == RLH_ERR_TIMEOUT && waited(o))
            return EXCEPTION;
    }
    return code;
}

static PyObject *failed(int code, const char *name) {
    if (code == EXCEPTION)
        return NULL;
    return code == RLH_ERR_TIMEOUT ? raise_std(name) : raise_code(code, "queue");
}

// one_timeout reads the optional last argument.
static int64_t one_timeout(PyObject *const *args, Py_ssize_t n, Py_ssize_t at) {
    return read_timeout(n > at ? args[at] : NULL);
}

static PyObject *queue_put(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Queue *o = (Queue *)self;
    if (n < 1 || n > 2) {
        PyErr_SetString(PyExc_TypeError, "put(data, timeout=None)");
        return NULL;
    }
    int64_t timeout = one_timeout(args, n, 1), end = 0;
    if (timeout == -2 || enter(o))
        return NULL;
    rlh_item item;
    int code = as_item(o, args[0], &item) ? EXCEPTION : put_items(o, &item, 1, timeout, &end);
    return leave(o, code < 0 ? failed(code, "Full") : Py_NewRef(Py_None));
}

// put_many(list, timeout=None) returns how many of the list's messages were put: all, or fewer when the time was over.
static PyObject *queue_put_many(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Queue *o = (Queue *)self;
    if (n < 1 || n > 2 || !PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "put_many(list of bytes, timeout=None)");
        return NULL;
    }
    int64_t timeout = one_timeout(args, n, 1), end = 0;
    if (timeout == -2 || enter(o))
        return NULL;
    rlh_item items[RLH_MAX_RING_BATCH];
    PyObject *held[RLH_MAX_RING_BATCH]; // the list may change while the lock is not held
    uint32_t cells = rlh_ring_cells(o->ring);
    int most = cells < RLH_MAX_RING_BATCH ? (int)cells : RLH_MAX_RING_BATCH;
    Py_ssize_t put = 0;
    for (;;) {
        int batch = 0, code = 0;
        for (; batch < most && put + batch < PyList_Size(args[0]); batch++) {
            held[batch] = PyList_GetItem(args[0], put + batch);
            if (!held[batch] || as_item(o, held[batch], &items[batch])) {
                code = EXCEPTION;
                break;
            }
            Py_INCREF(held[batch]);
        }
        int done = 0;
        while (code >= 0 && done < batch) {
            code = put_items(o, items + done, (size_t)(batch - done), timeout, &end);
            if (code > 0)
                done += code;
        }
        for (int i = 0; i < batch; i++)
            Py_DECREF(held[i]);
        put += done;
        if (code == RLH_ERR_TIMEOUT)
            break;
        if (code < 0)
            return leave(o, failed(code, "Full"));
        if (batch == 0)
            break;
    }
    return leave(o, PyLong_FromSsize_t(put));
}

// get_items takes from one up to count items into memory. Codes as for put_items.
static int get_items(Queue *o, rlh_item *items, size_t count, char *memory, int64_t timeout) {
    int code = rlh_queue_get(o->ring, items, count, memory, o->room, 0);
    int64_t end = 0;
    while (code == RLH_ERR_TIMEOUT) {
        if (timeout >= 0 && !end)
            end = monotonic_ns() + timeout;
        int64_t left = timeout < 0 ? WAIT_SLICE : end - monotonic_ns();
        if (left <= 0)
            return code;
        Py_BEGIN_ALLOW_THREADS
        code = rlh_queue_get(o->ring, items, count, memory, o->room, left < WAIT_SLICE ? left : WAIT_SLICE);
        Py_END_ALLOW_THREADS
        if (code == RLH_ERR_TIMEOUT && waited(o))
            return EXCEPTION;
    }
    return code;
}

// borrow returns the queue's memory for one get, or other memory while another thread has that.
static char *borrow(Queue *o) {
    if (o->busy)
        return malloc(o->room);
    o->busy = 1;
    return o->memory;
}

static void give_back(Queue *o, char *memory) {
    if (memory == o->memory)
        o->busy = 0;
    else
        free(memory);
}

static PyObject *queue_get(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Queue *o = (Queue *)self;
    int64_t timeout = one_timeout(args, n, 0);
    if (timeout == -2 || enter(o))
        return NULL;
    char *memory = borrow(o);
    if (!memory)
        return leave(o, PyErr_NoMemory());
    rlh_item item;
    int code = get_items(o, &item, 1, memory, timeout);
    PyObject *data = code > 0 ? PyBytes_FromStringAndSize(item.bytes, item.len) : NULL;
    give_back(o, memory);
    return leave(o, code < 0 ? failed(code, "Empty") : data);
}

static int append_all(PyObject *list, const rlh_item *items, int count) {
    for (int i = 0; i < count; i++) {
        PyObject *data = PyBytes_FromStringAndSize(items[i].bytes, items[i].len);
        if (!data || PyList_Append(list, data)) {
            Py_XDECREF(data);
            return -1;
        }
        Py_DECREF(data);
    }
    return 0;
}

// get_many(most, timeout=None) waits for one message and takes with it what else is there.
static PyObject *queue_get_many(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Queue *o = (Queue *)self;
    Py_ssize_t most = n > 0 ? PyLong_AsSsize_t(args[0]) : RLH_MAX_RING_BATCH;
    if (most < 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "get_many takes 1 message or more");
        return NULL;
    }
    int64_t timeout = one_timeout(args, n, 1);
    if (timeout == -2 || enter(o))
        return NULL;
    char *memory = borrow(o);
    PyObject *list = memory ? PyList_New(0) : PyErr_NoMemory();
    rlh_item items[RLH_MAX_RING_BATCH];
    int code = 0;
    while (list && most > 0) {
        code = get_items(o, items, (size_t)(most < RLH_MAX_RING_BATCH ? most : RLH_MAX_RING_BATCH), memory, timeout);
        if (code < 0)
            break;
        if (append_all(list, items, code))
            Py_CLEAR(list);
        most -= code;
        timeout = 0;
    }
    if (memory)
        give_back(o, memory);
    // What was taken is handed out, whatever came after it; the next call meets it again.
    if (list && code < 0 && code != EXCEPTION && PyList_Size(list) > 0)
        return leave(o, list);
    if (list && code < 0) {
        Py_DECREF(list);
        list = failed(code, "Empty");
    }
    return leave(o, list);
}

static void keep_lost(void *list, const rlh_item *item) {
    PyObject *data = PyBytes_FromStringAndSize(item->bytes, item->len);
    if (!data || PyList_Append(list, data))
        PyErr_WriteUnraisable(list);
    Py_XDECREF(data);
}

// _recover(owner) repairs what a dead owner left and returns the messages that it had not finished taking.
static PyObject *queue_recover(PyObject *self, PyObject *number) {
    Queue *o = (Queue *)self;
    unsigned long owner = PyLong_AsUnsignedLong(number);
    if ((owner == (unsigned long)-1 && PyErr_Occurred()) || !o->ring)
        return PyErr_Occurred() ? NULL : raise_code(RLH_ERR_CLOSED, "queue");
    PyObject *list = PyList_New(0);
    if (list)
        rlh_queue_recover(o->ring, (uint32_t)owner, keep_lost, list);
    return list;
}

// recover() is a call like the others, because what _sweep uses must stay meanwhile.
static PyObject *queue_recover_all(PyObject *self, PyObject *unused) {
    (void)unused;
    Queue *o = (Queue *)self;
    if (enter(o))
        return NULL;
    PyObject *found = PyObject_CallMethod(self, "_sweep", NULL);
    Py_ssize_t count = found ? PyList_Size(found) : -1;
    Py_XDECREF(found);
    return leave(o, count < 0 ? NULL : PyLong_FromSsize_t(count));
}

static Py_ssize_t queue_length(PyObject *self) {
    Queue *o = (Queue *)self;
    if (enter(o))
        return -1;
    Py_ssize_t used = rlh_ring_used(o->ring);
    leave(o, NULL);
    return used;
}

static PyObject *queue_used(PyObject *self, PyObject *unused) {
    (void)unused;
    Py_ssize_t used = queue_length(self);
    return used < 0 ? NULL : PyLong_FromSsize_t(used);
}

static PyObject *queue_shut(PyObject *self, PyObject *unused) {
    (void)unused;
    Queue *o = (Queue *)self;
    if (enter(o))
        return NULL;
    rlh_ring_shut(o->ring);
    return leave(o, Py_NewRef(Py_None));
}

static PyMethodDef queue_methods[] = {
    {"_open", queue_open, METH_VARARGS, "Attaches to a file under an owner's number."},
    {"_close", queue_close, METH_NOARGS, "Detaches, at once or when the calls under way have returned."},
    {"_recover", queue_recover, METH_O, "Repairs what a dead owner left half done."},
    {"put", (PyCFunction)(void (*)(void))queue_put, METH_FASTCALL, "put(data, timeout=None): one message, or queue.Full."},
    {"put_many", (PyCFunction)(void (*)(void))queue_put_many, METH_FASTCALL,
     "put_many(messages, timeout=None): how many were put."},
    {"get", (PyCFunction)(void (*)(void))queue_get, METH_FASTCALL, "get(timeout=None): one message, or queue.Empty."},
    {"get_many", (PyCFunction)(void (*)(void))queue_get_many, METH_FASTCALL,
     "get_many(most=255, timeout=None): a list of 1 to most messages, or queue.Empty."},
    {"recover", queue_recover_all, METH_NOARGS,
     "Repairs at once what dead processes left, and returns how many messages went back to the queue."},
    {"qsize", queue_used, METH_NOARGS, "How many messages wait at the moment."},
    {"shut", queue_shut, METH_NOARGS, "Says that nothing more is put; what waits can still be taken."},
    {NULL},
};
static PyType_Slot queue_slots[] = {
    {Py_tp_doc, "A queue of bytes between processes; see rlhost.Queue."},
    {Py_tp_new, queue_make},
    {Py_tp_dealloc, queue_dealloc},
    {Py_tp_methods, queue_methods},
    {Py_sq_length, queue_length},
    {0},
};
static PyType_Spec queue_spec = {"rlhost._native.Queue", sizeof(Queue), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                 queue_slots};

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

static PyMethodDef functions[] = {
    {"ring_create", ring_create, METH_VARARGS, "ring_create(kind, cells, payload): the file of a new ring."},
    {NULL},
};

int add_rings(PyObject *module) {
    pthread_atfork(NULL, NULL, after_fork);
    if (PyModule_AddFunctions(module, functions))
        return -1;
    return add_type(module, &queue_spec, &queue_type) || add_type(module, &ring_spec, &ring_type) ? -1 : 0;
}
