// queue.c: the queue between Python processes.
#include "native.h"
#include "arguments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// forks counts how often this process is the child of a fork: a queue's name as an owner is not inherited.
static unsigned forks;
static void after_fork(void) { forks++; }

#define ROOM_MAX ((size_t)1 << 20) // a get of longer messages takes memory of its own

typedef struct {
    PyObject_HEAD
    rlh_ring *ring;
    unsigned forks; // when it was attached, and when users were counted
    unsigned users; // calls under way: what they use stays until the last has returned
    int closing;    // _close has been called
    int coded;      // messages go through the methods _dumps and _loads of the Python class
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
    o->room = (size_t)rlh_queue_longest(o->ring) * RLH_MAX_RING_BATCH;
    if (o->room > ROOM_MAX)
        o->room = ROOM_MAX;
    o->memory = malloc(o->room);
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

static int enter_anew(Queue *o) {
    PyObject *result = PyObject_CallMethod((PyObject *)o, "_attach", NULL);
    if (!result)
        return -1;
    Py_DECREF(result);
    if (o->closing || !o->ring)
        return fail_closed();
    o->users++;
    return 0;
}

// enter begins a call: it attaches anew in the child of a fork, by the method _attach of the Python class. leave ends it.
static inline int enter(Queue *o) {
    if (o->closing || !o->ring)
        return fail_closed();
    if (o->forks != forks)
        return enter_anew(o);
    o->users++;
    return 0;
}

static void detach_last(Queue *o) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    queue_detach(o);
    PyObject *done = PyObject_CallMethod((PyObject *)o, "_detached", NULL);
    if (!done)
        PyErr_WriteUnraisable((PyObject *)o);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

static inline void *leave(Queue *o, void *result) {
    if (o->users > 0) // a fork in between has forgotten it
        o->users--;
    if (o->closing && o->users == 0 && o->ring)
        detach_last(o);
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

// ---- messages

// copy_of returns the bytes of an object that is a buffer, as it lies there.
static PyObject *copy_of(PyObject *data) {
    PyObject *view = PyMemoryView_FromObject(data);
    PyObject *format = view ? PyObject_GetAttrString(view, "format") : NULL;
    PyObject *bytes = NULL;
    int found = format ? PyUnicode_FindChar(format, 'O', 0, PyUnicode_GetLength(format), 1) : -1;
    if (found == -1 && format) // no pointers in it
        bytes = PyObject_CallMethod(view, "tobytes", NULL);
    if (!view || found >= 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "a message is bytes or another buffer, not %R; dumps= and loads= of rlhost.Queue turn "
                                      "other objects into bytes and back", Py_TYPE(data));
    }
    Py_XDECREF(format);
    Py_XDECREF(view);
    return bytes;
}

// encoded returns the bytes of a message.
static PyObject *encoded(Queue *o, PyObject *data) {
    PyObject *dumped = o->coded ? PyObject_CallMethod((PyObject *)o, "_dumps", "(O)", data) : NULL;
    if (o->coded && !dumped)
        return NULL;
    if (dumped)
        data = dumped;
    PyObject *bytes = PyBytes_Check(data) ? Py_NewRef(data) : copy_of(data);
    Py_XDECREF(dumped);
    return bytes;
}

// loaded returns the message that bytes stand for, which are its to give back.
static PyObject *loaded(Queue *o, PyObject *bytes) {
    PyObject *message = bytes ? PyObject_CallMethod((PyObject *)o, "_loads", "(O)", bytes) : NULL;
    Py_XDECREF(bytes);
    return message;
}

static inline PyObject *message_of(Queue *o, const rlh_item *item) {
    PyObject *bytes = PyBytes_FromStringAndSize(item->bytes, item->len);
    return o->coded ? loaded(o, bytes) : bytes;
}

static inline int is_plain(const Queue *o, PyObject *data) { return Py_TYPE(data) == &PyBytes_Type && !o->coded; }

// as_item points an item to bytes, which stay the caller's.
static int as_item(Queue *o, PyObject *bytes, rlh_item *item) {
    char *at;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(bytes, &at, &len))
        return -1;
    if ((size_t)len > rlh_queue_longest(o->ring)) {
        PyErr_Format(PyExc_ValueError, "message of %zd bytes, the queue takes up to %u", len, rlh_queue_longest(o->ring));
        return -1;
    }
    *item = (rlh_item){.bytes = at, .len = (uint32_t)len};
    return 0;
}

// ---- put

// put_items puts from one up to count items, as many as there is room for, or whole: all or none. It waits for room as
// long as it takes, at most until end, and returns how many were put, or a negative code, or EXCEPTION with an exception set.
#define EXCEPTION (-1000)
static int put_items(Queue *o, const rlh_item *items, size_t count, int whole, int64_t timeout, int64_t *end) {
    if (!o->ring)
        return RLH_ERR_CLOSED;
    int code = rlh_queue_put(o->ring, items, count, 0); // all of them or none
    while (code == RLH_ERR_TIMEOUT && count > 1 && !whole) {
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

static PyObject *put_one(Queue *o, PyObject *data, int64_t timeout) {
    if (timeout == -2 || enter(o))
        return NULL;
    int64_t end = 0;
    rlh_item item;
    PyObject *made = is_plain(o, data) ? NULL : encoded(o, data);
    if (made)
        data = made;
    int code = (made || is_plain(o, data)) && !as_item(o, data, &item) ? put_items(o, &item, 1, 0, timeout, &end) : EXCEPTION;
    Py_XDECREF(made);
    return leave(o, code < 0 ? failed(code, "Full") : Py_NewRef(Py_None));
}

static PyObject *queue_put(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    if (!names && n >= 1 && n <= 3)
        return put_one((Queue *)self, args[0], read_wait(n > 1 ? args[1] : NULL, n > 2 ? args[2] : NULL));
    if (read_arguments(&put_arguments, args, n, names, a))
        return NULL;
    return put_one((Queue *)self, a[0], read_wait(a[1], a[2]));
}

static PyObject *queue_put_nowait(PyObject *self, PyObject *data) { return put_one((Queue *)self, data, 0); }

// _put_raw(bytes) puts what was in the queue already, at once or not at all.
static PyObject *queue_put_raw(PyObject *self, PyObject *bytes) {
    Queue *o = (Queue *)self;
    rlh_item item;
    if (enter(o))
        return NULL;
    int64_t end = 0;
    int code = as_item(o, bytes, &item) ? EXCEPTION : put_items(o, &item, 1, 0, 0, &end);
    return leave(o, code < 0 ? failed(code, "Full") : Py_NewRef(Py_None));
}

// put_list puts the messages of a list that is nobody else's, in batches, and sets how many of them were put.
static int put_list(Queue *o, PyObject *list, int whole, int64_t timeout, Py_ssize_t *put) {
    rlh_item few[RLH_MAX_RING_BATCH];
    Py_ssize_t count = PyList_Size(list);
    rlh_item *items = count <= RLH_MAX_RING_BATCH ? few : malloc((size_t)count * sizeof *items);
    int code = items ? 0 : RLH_ERR_MEMORY;
    for (Py_ssize_t i = 0; i < count && code == 0; i++) { // before the first is put
        PyObject *bytes = PyList_GetItem(list, i);
        if (!is_plain(o, bytes)) {
            bytes = encoded(o, bytes);
            if (!bytes || PyList_SetItem(list, i, bytes))
                code = EXCEPTION;
        }
        if (code == 0 && as_item(o, bytes, &items[i]))
            code = EXCEPTION;
    }
    int64_t end = 0;
    while (code >= 0 && *put < count) {
        size_t batch = rlh_queue_batch(o->ring, items + *put, (size_t)(count - *put));
        if (whole && batch < (size_t)count) {
            PyErr_Format(PyExc_ValueError, "%zd messages, whole=True takes up to %zu of these", count, batch);
            code = EXCEPTION;
            break;
        }
        code = put_items(o, items + *put, batch, whole, timeout, &end);
        if (code > 0)
            *put += code;
    }
    if (items != few)
        free(items);
    return code;
}

// put_many(messages, block, timeout, whole) returns how many were put: all, or fewer when the time was over.
static PyObject *queue_put_many(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Queue *o = (Queue *)self;
    PyObject *a[4];
    if (read_arguments(&put_many_arguments, args, n, names, a))
        return NULL;
    if (!PyList_Check(a[0]) && !PyTuple_Check(a[0]))
        return PyErr_Format(PyExc_TypeError, "messages is a list or a tuple, not %R", Py_TYPE(a[0]));
    int64_t timeout = read_wait(a[1], a[2]);
    int whole = a[3] ? PyObject_IsTrue(a[3]) : 0;
    PyObject *list = timeout == -2 || whole < 0 ? NULL : PySequence_List(a[0]); // the other may change meanwhile
    if (!list)
        return NULL;
    if (enter(o)) {
        Py_DECREF(list);
        return NULL;
    }
    Py_ssize_t put = 0;
    int code = put_list(o, list, whole, timeout, &put);
    Py_DECREF(list);
    if (code < 0 && (code != RLH_ERR_TIMEOUT || whole))
        return leave(o, failed(code, "Full"));
    return leave(o, PyLong_FromSsize_t(put));
}

// ---- get

// Memory is what a get copies messages to.
typedef struct {
    char *at;
    size_t room;
} Memory;

// borrow returns the queue's own memory, or other memory while another thread has that or where room is larger.
static Memory borrow(Queue *o, size_t room) {
    if (o->busy || room > o->room)
        return (Memory){malloc(room), room};
    o->busy = 1;
    return (Memory){o->memory, o->room};
}

static void give_back(Queue *o, Memory m) {
    if (m.at == o->memory)
        o->busy = 0;
    else
        free(m.at);
}

// enlarge takes more memory in place of what a message was too long for. The message may be another one meanwhile.
static int enlarge(Queue *o, Memory *m) {
    size_t longest = rlh_queue_longest(o->ring), room = m->room < longest / 8 ? 8 * m->room : longest;
    give_back(o, *m);
    *m = borrow(o, room > m->room ? room : m->room);
    return m->at ? 0 : RLH_ERR_MEMORY;
}

// get_items takes from one up to count items into memory. Codes as for put_items.
static int get_items(Queue *o, rlh_item *items, size_t count, Memory *m, int64_t timeout) {
    int code = rlh_queue_get(o->ring, items, count, m->at, m->room, 0);
    int64_t end = 0;
    while (code == RLH_ERR_TIMEOUT) {
        if (timeout >= 0 && !end)
            end = monotonic_ns() + timeout;
        int64_t left = timeout < 0 ? WAIT_SLICE : end - monotonic_ns();
        if (left <= 0)
            return code;
        Py_BEGIN_ALLOW_THREADS
        code = rlh_queue_get(o->ring, items, count, m->at, m->room, left < WAIT_SLICE ? left : WAIT_SLICE);
        Py_END_ALLOW_THREADS
        if (code == RLH_ERR_TIMEOUT && waited(o))
            return EXCEPTION;
    }
    while (code == RLH_ERR_TOO_LONG && m->room < rlh_queue_longest(o->ring)) {
        code = enlarge(o, m);
        if (code == 0)
            code = rlh_queue_get(o->ring, items, count, m->at, m->room, 0);
    }
    return code;
}

static PyObject *get_one(Queue *o, int64_t timeout) {
    if (timeout == -2 || enter(o))
        return NULL;
    Memory memory = borrow(o, o->room);
    if (!memory.at)
        return leave(o, PyErr_NoMemory());
    rlh_item item;
    int code = get_items(o, &item, 1, &memory, timeout);
    PyObject *data = code > 0 ? message_of(o, &item) : failed(code, "Empty");
    give_back(o, memory);
    return leave(o, data);
}

static PyObject *queue_get(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    if (!names && n <= 2)
        return get_one((Queue *)self, read_wait(n > 0 ? args[0] : NULL, n > 1 ? args[1] : NULL));
    return read_arguments(&get_arguments, args, n, names, a) ? NULL : get_one((Queue *)self, read_wait(a[0], a[1]));
}

static PyObject *queue_get_nowait(PyObject *self, PyObject *unused) {
    (void)unused;
    return get_one((Queue *)self, 0);
}

// append_all returns the list with the messages of items behind those that it has; NULL at first.
static PyObject *append_all(Queue *o, PyObject *list, const rlh_item *items, int count) {
    int first = !list;
    if (first && !(list = PyList_New(count)))
        return NULL;
    for (int i = 0; i < count; i++) {
        PyObject *message = message_of(o, &items[i]);
        int failed = !message || (first ? PyList_SetItem(list, i, message) : PyList_Append(list, message));
        if (!first)
            Py_XDECREF(message);
        if (failed) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

// get_up_to waits for one message and takes with it what else is there.
static PyObject *get_up_to(Queue *o, Py_ssize_t most, int64_t timeout) {
    Memory memory = borrow(o, o->room);
    if (!memory.at)
        return PyErr_NoMemory();
    rlh_item items[RLH_MAX_RING_BATCH];
    PyObject *list = NULL;
    int code = 0;
    while (most > 0) {
        code = get_items(o, items, (size_t)(most < RLH_MAX_RING_BATCH ? most : RLH_MAX_RING_BATCH), &memory, timeout);
        if (code < 0)
            break;
        list = append_all(o, list, items, code);
        if (!list)
            break;
        most -= code;
        timeout = 0;
    }
    give_back(o, memory);
    if (code >= 0)
        return list;
    // What was taken is handed out, whatever came after it; the next call meets it again.
    if (list && code != EXCEPTION)
        return list;
    Py_XDECREF(list);
    return failed(code, "Empty");
}

static PyObject *queue_get_many(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Queue *o = (Queue *)self;
    PyObject *a[4];
    if (read_arguments(&get_many_arguments, args, n, names, a))
        return NULL;
    if (a[0] && PyBool_Check(a[0]))
        return PyErr_Format(PyExc_TypeError, "want %s: a number comes first", get_many_arguments.usage);
    Py_ssize_t most = a[0] ? PyLong_AsSsize_t(a[0]) : RLH_MAX_RING_BATCH;
    if (most == -1 && PyErr_Occurred())
        return NULL;
    if (most < 1)
        return PyErr_Format(PyExc_ValueError, "max_messages_to_get is %zd, want 1 or more", most);
    int64_t timeout = read_wait(a[1], a[2]);
    if (timeout == -2 || enter(o))
        return NULL;
    return leave(o, get_up_to(o, most, timeout));
}

// ---- the rest

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

static int count(PyObject *self, rlh_queue_stats *stats) {
    Queue *o = (Queue *)self;
    if (enter(o))
        return -1;
    rlh_queue_count(o->ring, stats);
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

static PyObject *queue_is_closed(PyObject *self, PyObject *unused) {
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
    {"_close", queue_close, METH_NOARGS, "Detaches, at once or when the calls under way have returned."},
    {"_recover", queue_recover, METH_O, "Repairs what a dead owner left half done."},
    {"_put_raw", queue_put_raw, METH_O, "Puts bytes at once, as they are."},
    {"put", KEYWORDS(queue_put),
     "put(data, block=True, timeout=None): one message, bytes or another buffer; queue.Full at the end of the timeout."},
    {"put_nowait", queue_put_nowait, METH_O, "put_nowait(data): put that does not wait."},
    {"put_many", KEYWORDS(queue_put_many),
     "put_many(messages, block=True, timeout=None, whole=False): puts a list or tuple and returns how many were put before the\n"
     "timeout was over. whole puts all of at most 255 next to each other, or none and raises queue.Full."},
    {"get", KEYWORDS(queue_get), "get(block=True, timeout=None): the oldest message; queue.Empty at the end of the timeout."},
    {"get_nowait", queue_get_nowait, METH_NOARGS, "get_nowait(): get that does not wait."},
    {"get_many", KEYWORDS(queue_get_many),
     "get_many(max_messages_to_get=255, block=True, timeout=None): waits for one message and returns a list of it and what\n"
     "else is there; queue.Empty at the end of the timeout."},
    {"recover", queue_recover_all, METH_NOARGS,
     "Repairs at once what dead processes left, and returns how many messages went back to the queue."},
    {"qsize", queue_qsize, METH_NOARGS, "How many messages wait at the moment."},
    {"data_size", queue_data_size, METH_NOARGS, "How many bytes the messages that wait have together."},
    {"empty", queue_empty, METH_NOARGS, "Whether no message waits at the moment."},
    {"full", queue_full, METH_NOARGS, "Whether there is no room for another message at the moment."},
    {"is_closed", queue_is_closed, METH_NOARGS,
     "Whether somebody has shut the queue, in any process, or this one has closed it."},
    {"shut", queue_shut, METH_NOARGS,
     "Says to all processes that nothing more is put; what waits can still be taken, and then get raises Closed."},
    {NULL},
};
static PyMemberDef queue_members[] = {
    {"_coded", T_INT, offsetof(Queue, coded), 0, "whether messages go through _dumps and _loads"},
    {NULL},
};
static PyType_Slot queue_slots[] = {
    {Py_tp_doc, "A queue of bytes between processes; see rlhost.Queue."},
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
    return intern_names() ? -1 : add_type(module, &queue_spec, &queue_type);
}
