// queue.c: the queue between Python processes.
#include "queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

unsigned queue_forks;
static void after_fork(void) { queue_forks++; }

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
    if (o->page)
        munmap(o->page, PAGE_BYTES);
    o->ring = NULL;
    o->page = NULL;
}

static void queue_dealloc(PyObject *self) {
    queue_detach((Queue *)self); // each pending call holds a reference, so there is none
    free(((Queue *)self)->memory);
    Py_XDECREF(((Queue *)self)->last_error);
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// bind maps the page that all processes share.
static int bind(Queue *o, int fd, long long at) {
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    if (page == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    o->page = page;
    if (((rlh_queue_bound *)page)->most > 0)
        rlh_queue_bind(o->ring, page);
    return 0;
}

// _open(fd, owner, peers, page) attaches; in a fork it replaces the parent's attachment.
static PyObject *queue_open(PyObject *self, PyObject *args) {
    Queue *o = (Queue *)self;
    int fd, peers;
    unsigned int owner;
    long long page;
    if (!PyArg_ParseTuple(args, "iIiL:_open", &fd, &owner, &peers, &page))
        return NULL;
    queue_detach(o);
    o->users = 0; // the parent's calls are not here
    o->forks = queue_forks;
    int code = rlh_ring_attach(&o->ring, fd, RLH_RING_QUEUE, owner);
    if (code < 0) {
        o->ring = NULL;
        return raise_code(code, "queue");
    }
    if (bind(o, peers, page))
        return NULL;
    if (o->memory)
        Py_RETURN_NONE; // a call interrupted by a signal handler's fork may hold it
    o->room = (size_t)rlh_queue_longest(o->ring) * RLH_MAX_RING_BATCH;
    if (o->room > ROOM_MAX)
        o->room = ROOM_MAX;
    o->memory = malloc(o->room);
    if (!o->memory)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

// _detach() ends the waiting calls. The last pending call, or this one, detaches and then runs the method _detached of
// the Python class: until then the process is an owner of the queue whose cells must not be repaired.
static PyObject *queue_leave(PyObject *self, PyObject *unused) {
    (void)unused;
    Queue *o = (Queue *)self;
    if (o->forks != queue_forks)
        o->users = 0;
    if (!o->closing && o->ring)
        rlh_ring_cancel(o->ring);
    o->closing = 1;
    if (o->users > 0 || !o->ring)
        Py_RETURN_NONE;
    queue_detach(o);
    return PyObject_CallMethod(self, "_detached", NULL);
}

int queue_fail_closed(void) {
    raise_code(RLH_ERR_CLOSED, "queue");
    return -1;
}

int queue_enter_anew(Queue *o) {
    PyObject *result = PyObject_CallMethod((PyObject *)o, "_attach", NULL);
    if (!result)
        return -1;
    Py_DECREF(result);
    if (o->closing || !o->ring)
        return queue_fail_closed();
    o->users++;
    return 0;
}

void queue_detach_last(Queue *o) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    queue_detach(o);
    PyObject *done = PyObject_CallMethod((PyObject *)o, "_detached", NULL);
    if (!done)
        PyErr_WriteUnraisable((PyObject *)o);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

int queue_waited(Queue *o) {
    if (PyErr_CheckSignals())
        return -1;
    if (o->forks != queue_forks && enter(o)) // a signal's handler has forked, and this is the child
        return -1;
    if (o->closing)
        return queue_fail_closed();
    PyObject *result = PyObject_CallMethod((PyObject *)o, "_sweep", NULL);
    if (!result)
        return -1;
    Py_DECREF(result);
    return o->closing ? queue_fail_closed() : 0;
}

static void keep_lost(void *list, const rlh_item *item) {
    PyObject *data = PyBytes_FromStringAndSize(item->bytes, item->len);
    if (!data || PyList_Append(list, data))
        PyErr_WriteUnraisable(list);
    Py_XDECREF(data);
}

// _recover(owner) repairs the queue after a dead owner and returns the messages that it had not finished getting.
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

// recover() is a call like the others: the queue must stay attached for _sweep.
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

static int count(PyObject *self, rlh_queue_stats *stats) {
    Queue *o = (Queue *)self;
    if (enter(o))
        return -1;
    rlh_queue_count(o->ring, stats);
    uint32_t most = ((rlh_queue_bound *)o->page)->most;
    stats->full |= most > 0 && stats->items >= most;
    leave(o, NULL);
    return 0;
}

static Py_ssize_t queue_length(PyObject *self) {
    rlh_queue_stats stats;
    return count(self, &stats) ? -1 : (Py_ssize_t)stats.items;
}

static PyObject *queue_qsize(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_queue_stats stats;
    return count(self, &stats) ? NULL : PyLong_FromUnsignedLongLong(stats.items);
}

static PyObject *queue_data_size(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_queue_stats stats;
    return count(self, &stats) ? NULL : PyLong_FromUnsignedLongLong(stats.bytes);
}

static PyObject *queue_empty(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_queue_stats stats; // cells in use may be those of a dead producer
    return count(self, &stats) ? NULL : PyBool_FromLong(stats.items == 0);
}

static PyObject *queue_full(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_queue_stats stats;
    return count(self, &stats) ? NULL : PyBool_FromLong(stats.full);
}

static PyObject *queue_is_shut(PyObject *self, PyObject *unused) {
    (void)unused;
    Queue *o = (Queue *)self;
    return PyBool_FromLong(o->closing || !o->ring || rlh_ring_is_shut(o->ring));
}

static PyObject *queue_shut(PyObject *self, PyObject *unused) {
    (void)unused;
    Queue *o = (Queue *)self;
    if (enter(o))
        return NULL;
    rlh_ring_shut(o->ring);
    return leave(o, Py_NewRef(Py_None));
}

#define KEYWORDS(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS
static PyMethodDef queue_methods[] = {
    {"_open", queue_open, METH_VARARGS, "Attaches to a file under an owner's number."},
    {"_detach", queue_leave, METH_NOARGS, "Detaches, at once or when the calls under way have returned."},
    {"_recover", queue_recover, METH_O, "Repairs what a dead owner left half done."},
    {"_put_raw", queue_put_raw, METH_O, "Puts bytes at once, as they are."},
    {"put", KEYWORDS(queue_put),
     "put(message, block=True, timeout=10): one message; queue.Full at the end of the timeout, of which None has none."},
    {"put_nowait", queue_put_nowait, METH_O, "put_nowait(message): put that does not wait."},
    {"put_many", KEYWORDS(queue_put_many),
     "put_many(messages, block=True, timeout=10, whole=True): puts a list or tuple and returns how many: all, or none and raises\n"
     "queue.Full at the end of the timeout. More than 255, or than the queue takes, go in parts, and Full has put, their number by\n"
     "then. With whole=False as many as there is room for are put, and their number is returned."},
    {"get", KEYWORDS(queue_get), "get(block=True, timeout=10): the oldest message; queue.Empty at the end of the timeout."},
    {"get_nowait", queue_get_nowait, METH_NOARGS, "get_nowait(): get that does not wait."},
    {"get_many", KEYWORDS(queue_get_many),
     "get_many(block=True, timeout=10, max_messages_to_get=255): waits for one message and returns a list of it and what\n"
     "else is there; queue.Empty at the end of the timeout."},
    {"recover", queue_recover_all, METH_NOARGS,
     "Repairs at once what dead processes left, and returns how many messages went back to the queue."},
    {"qsize", queue_qsize, METH_NOARGS, "How many messages wait at the moment."},
    {"data_size", queue_data_size, METH_NOARGS, "How many bytes the messages that wait have together."},
    {"empty", queue_empty, METH_NOARGS, "Whether no message waits at the moment."},
    {"full", queue_full, METH_NOARGS, "Whether there is no room for another message at the moment."},
    {"_is_shut", queue_is_shut, METH_NOARGS,
     "Whether somebody has shut the queue, in any process, or this one has detached it."},
    {"shut", queue_shut, METH_NOARGS,
     "Says to all processes that nothing more is put; what waits can still be taken, and then get raises Closed."},
    {NULL},
};
static PyMemberDef queue_members[] = {
    {"_coded", T_INT, offsetof(Queue, coded), 0, "what messages go through"},
    {"last_error", T_OBJECT, offsetof(Queue, last_error), READONLY,
     "Why the last message that was not taken was not, as text; None where each has been taken."},
    {NULL},
};
static PyType_Slot queue_slots[] = {
    {Py_tp_doc, "A queue between processes; see rlhost.Queue."},
    {Py_tp_new, queue_make},
    {Py_tp_dealloc, queue_dealloc},
    {Py_tp_methods, queue_methods},
    {Py_tp_members, queue_members},
    {Py_sq_length, queue_length},
    {0},
};
static PyType_Spec queue_spec = {"rlhost._native.Queue", sizeof(Queue), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                 queue_slots};

int add_queue(PyObject *module) {
    pthread_atfork(NULL, NULL, after_fork);
    return queue_intern_names() ? -1 : add_type(module, &queue_spec, &queue_type);
}
