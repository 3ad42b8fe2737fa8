// queue.h: what the files of the queue between Python processes share.
#ifndef RLHOST_QUEUE_H
#define RLHOST_QUEUE_H

#include "native.h"

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

// EXCEPTION stands for a code where an exception is set.
#define EXCEPTION (-1000)

// queue_forks counts how often this process is the child of a fork: a queue's name as an owner is not inherited.
extern unsigned queue_forks;

int queue_fail_closed(void);
int queue_enter_anew(Queue *o);
void queue_detach_last(Queue *o);

// enter begins a call: it attaches anew in the child of a fork, by the method _attach of the Python class. leave ends it.
static inline int enter(Queue *o) {
    if (o->closing || !o->ring)
        return queue_fail_closed();
    if (o->forks != queue_forks)
        return queue_enter_anew(o);
    o->users++;
    return 0;
}

static inline void *leave(Queue *o, void *result) {
    if (o->users > 0) // a fork in between has forgotten it
        o->users--;
    if (o->closing && o->users == 0 && o->ring)
        queue_detach_last(o);
    return result;
}

// queue_waited says whether to wait on, after a slice of waiting was in vain: signals are looked after, and what dead
// processes left behind is repaired by the method _sweep of the Python class.
int queue_waited(Queue *o);

PyObject *queue_put(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *queue_put_nowait(PyObject *self, PyObject *data);
PyObject *queue_put_raw(PyObject *self, PyObject *bytes);
PyObject *queue_put_many(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *queue_get(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *queue_get_nowait(PyObject *self, PyObject *unused);
PyObject *queue_get_many(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
int queue_intern_names(void);

#endif
