// queue_io.c: put and get of the queue between Python processes.
#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "plain.h"

// raise_std raises queue.Full or queue.Empty. put is how many messages of a list were put before.
static PyObject *raise_std(const char *name, Py_ssize_t put) {
    int full = !strcmp(name, "Full");
    PyObject *module = PyImport_ImportModule("queue");
    PyObject *error = module ? PyObject_CallMethod(module, name, "s", full ? "no room in the time given" : "no message in the time given") : NULL;
    PyObject *number = error && full ? PyLong_FromSsize_t(put) : NULL;
    if (error && (!full || (number && !PyObject_SetAttrString(error, "put", number))))
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(number);
    Py_XDECREF(error);
    Py_XDECREF(module);
    return NULL;
}

// note keeps the text of the exception that is set, because a message or an argument is not taken.
static void note(Queue *o) {
    PyObject *type, *value, *traceback, *before = o->last_error;
    PyErr_Fetch(&type, &value, &traceback);
    o->last_error = value ? PyObject_Str(value) : NULL;
    PyErr_Clear();
    Py_XDECREF(before);
    PyErr_Restore(type, value, traceback);
}

// ---- messages

// copy_of returns the bytes of a buffer object.
static PyObject *copy_of(PyObject *data) {
    PyObject *view = PyMemoryView_FromObject(data);
    PyObject *format = view ? PyObject_GetAttrString(view, "format") : NULL;
    PyObject *bytes = NULL;
    int found = format ? PyUnicode_FindChar(format, 'O', 0, PyUnicode_GetLength(format), 1) : -1;
    if (found == -1 && format) // no pointers in it
        bytes = PyObject_CallMethod(view, "tobytes", NULL);
    if (!view || found >= 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "a message is bytes or another buffer, not %R, where the codec is \"bytes\", and so is what "
                                      "dumps returns", Py_TYPE(data));
    }
    Py_XDECREF(format);
    Py_XDECREF(view);
    return bytes;
}

// dumped returns what the codec makes of a message.
static PyObject *dumped(Queue *o, PyObject *data) {
    if (o->coded == RAW)
        return Py_NewRef(data);
    return o->coded == PLAIN ? plain_dumped(data) : PyObject_CallMethod((PyObject *)o, "dumps", "(O)", data);
}

// encoded returns the bytes of a message.
static PyObject *encoded(Queue *o, PyObject *data) {
    PyObject *bytes = dumped(o, data);
    if (bytes && !PyBytes_Check(bytes)) {
        PyObject *buffer = bytes;
        bytes = copy_of(buffer);
        Py_DECREF(buffer);
    }
    if (!bytes)
        note(o);
    return bytes;
}

// loaded decodes the message in bytes, and releases them.
static PyObject *loaded(Queue *o, PyObject *bytes) {
    PyObject *message = bytes ? PyObject_CallMethod((PyObject *)o, "loads", "(O)", bytes) : NULL;
    Py_XDECREF(bytes);
    return message;
}

static inline PyObject *message_of(Queue *o, const rlh_item *item) {
    PyObject *message = o->coded == PLAIN ? plain_loaded(item->bytes, item->len, NULL)
                                          : PyBytes_FromStringAndSize(item->bytes, item->len);
    if (o->coded == CODED)
        message = loaded(o, message);
    if (!message)
        note(o);
    return message;
}

static inline int is_raw(const Queue *o, PyObject *data) { return o->coded == RAW && Py_TYPE(data) == &PyBytes_Type; }

// as_item points an item to bytes, which the caller still owns.
static int as_item(Queue *o, PyObject *bytes, rlh_item *item) {
    char *at;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(bytes, &at, &len))
        return -1;
    if ((size_t)len > rlh_queue_longest(o->ring)) {
        PyErr_Format(PyExc_ValueError, "message of %zd bytes, the queue takes up to %u", len, rlh_queue_longest(o->ring));
        note(o);
        return -1;
    }
    *item = (rlh_item){.bytes = at, .len = (uint32_t)len};
    return 0;
}

// ---- put

// put_items puts from one up to count items, as many as there is room for, or with whole all or none. It waits for
// room, at most until end, and returns how many were put, or a negative code, or EXCEPTION with an exception set.
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
        if (code == RLH_ERR_TIMEOUT && queue_waited(o))
            return EXCEPTION;
    }
    return code;
}

static PyObject *failed(int code, const char *name, Py_ssize_t put) {
    if (code == EXCEPTION)
        return NULL;
    return code == RLH_ERR_TIMEOUT ? raise_std(name, put) : raise_code(code, "queue");
}

static PyObject *put_one(Queue *o, PyObject *data, int64_t timeout) {
    if (timeout == -2 || enter(o))
        return NULL;
    int64_t end = 0;
    rlh_item item;
    PyObject *made = is_raw(o, data) ? NULL : encoded(o, data);
    if (made)
        data = made;
    int code = (made || is_raw(o, data)) && !as_item(o, data, &item) ? put_items(o, &item, 1, 0, timeout, &end) : EXCEPTION;
    Py_XDECREF(made);
    return leave(o, code < 0 ? failed(code, "Full", 0) : Py_NewRef(Py_None));
}

PyObject *queue_put(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    if (!names && n >= 1 && n <= 3)
        return put_one((Queue *)self, args[0], read_wait(n > 1 ? args[1] : NULL, n > 2 ? args[2] : NULL));
    if (read_arguments(&put_arguments, args, n, names, a))
        return NULL;
    return put_one((Queue *)self, a[0], read_wait(a[1], a[2]));
}

PyObject *queue_put_nowait(PyObject *self, PyObject *data) { return put_one((Queue *)self, data, 0); }

// _put_raw(bytes) puts an encoded message without waiting.
PyObject *queue_put_raw(PyObject *self, PyObject *bytes) {
    Queue *o = (Queue *)self;
    rlh_item item;
    if (enter(o))
        return NULL;
    int64_t end = 0;
    int code = as_item(o, bytes, &item) ? EXCEPTION : put_items(o, &item, 1, 0, 0, &end);
    return leave(o, code < 0 ? failed(code, "Full", 0) : Py_NewRef(Py_None));
}

// put_list puts the messages of a list that no other code uses, in batches, and sets how many of them were put.
static int put_list(Queue *o, PyObject *list, int whole, int64_t timeout, Py_ssize_t *put) {
    rlh_item few[RLH_MAX_RING_BATCH];
    Py_ssize_t count = PyList_Size(list);
    rlh_item *items = count <= RLH_MAX_RING_BATCH ? few : malloc((size_t)count * sizeof *items);
    int code = items ? 0 : RLH_ERR_MEMORY;
    for (Py_ssize_t i = 0; i < count && code == 0; i++) { // all of them before the first put
        PyObject *bytes = PyList_GetItem(list, i);
        if (!is_raw(o, bytes)) {
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
        code = put_items(o, items + *put, batch, whole, timeout, &end);
        if (code > 0)
            *put += code;
    }
    if (items != few)
        free(items);
    return code;
}

// put_many(messages, block, timeout, whole) returns how many were put: all, or where they need not be whole fewer.
PyObject *queue_put_many(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Queue *o = (Queue *)self;
    PyObject *a[4];
    if (read_arguments(&put_many_arguments, args, n, names, a))
        return NULL;
    if (!PyList_Check(a[0]) && !PyTuple_Check(a[0])) {
        PyErr_Format(PyExc_TypeError, "messages is a list or a tuple, not %R", Py_TYPE(a[0]));
        note(o);
        return NULL;
    }
    int64_t timeout = read_wait(a[1], a[2]);
    int whole = a[3] ? PyObject_IsTrue(a[3]) : 1;
    PyObject *list = timeout == -2 || whole < 0 ? NULL : PySequence_List(a[0]); // a copy: the caller's may change meanwhile
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
        return leave(o, failed(code, "Full", put));
    return leave(o, PyLong_FromSsize_t(put));
}

// ---- get

// Memory is the buffer of a get.
typedef struct {
    char *at;
    size_t room;
} Memory;

// borrow returns the queue's own memory, or new memory if another thread uses that or room is larger.
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

// enlarge replaces memory that was too short for a message. The next message may be another one.
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
        if (code == RLH_ERR_TIMEOUT && queue_waited(o))
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
    PyObject *data = code > 0 ? message_of(o, &item) : failed(code, "Empty", 0);
    give_back(o, memory);
    return leave(o, data);
}

PyObject *queue_get(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    if (!names && n <= 2)
        return get_one((Queue *)self, read_wait(n > 0 ? args[0] : NULL, n > 1 ? args[1] : NULL));
    return read_arguments(&get_arguments, args, n, names, a) ? NULL : get_one((Queue *)self, read_wait(a[0], a[1]));
}

PyObject *queue_get_nowait(PyObject *self, PyObject *unused) {
    (void)unused;
    return get_one((Queue *)self, 0);
}

// append_all appends the messages of items to a list, which is NULL at first, and returns it.
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

// get_up_to waits for one message and takes the others that are there.
static PyObject *get_up_to(Queue *o, Py_ssize_t most, int64_t timeout) {
    if (most > (Py_ssize_t)rlh_ring_cells(o->ring)) // what may come meanwhile has no end
        most = (Py_ssize_t)rlh_ring_cells(o->ring);
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
    // Messages already taken are returned despite a later error, which the next call meets again.
    if (list && code != EXCEPTION)
        return list;
    Py_XDECREF(list);
    return failed(code, "Empty", 0);
}

PyObject *queue_get_many(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Queue *o = (Queue *)self;
    PyObject *a[4];
    if (read_arguments(&get_many_arguments, args, n, names, a))
        return NULL;
    Py_ssize_t most = a[2] ? PyLong_AsSsize_t(a[2]) : RLH_MAX_RING_BATCH;
    if (most == -1 && PyErr_Occurred())
        return NULL;
    if (most < 1)
        return PyErr_Format(PyExc_ValueError, "max_messages_to_get is %zd, want 1 or more", most);
    if (a[0] && !PyBool_Check(a[0]))
        return PyErr_Format(PyExc_TypeError, "want %s, not %R first: numbers go by their names", get_many_arguments.usage, a[0]);
    int64_t timeout = read_wait(a[0], a[1]);
    if (timeout == -2 || enter(o))
        return NULL;
    return leave(o, get_up_to(o, most, timeout));
}

int queue_intern_names(void) { return intern_names(); }
