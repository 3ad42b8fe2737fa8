// queue.h: shared by the files of the queue between Python processes.
#ifndef RLHOST_QUEUE_H
#define RLHOST_QUEUE_H

#include "native.h"

#define ROOM_MAX ((size_t)1 << 20) // a get of longer messages allocates its own memory

typedef struct {
    PyObject_HEAD
    rlh_ring *ring;
    unsigned forks; // queue_forks when it was attached, and when users were counted
    unsigned users; // pending calls: the queue stays attached until the last has returned
    int closing;    // _close has been called
    int coded;      // what messages go through: RAW, CODED or PLAIN
    PyObject *last_error; // text of the last message that was not taken, or NULL
    void *page;     // of the peers' file, from _PAGE of queue.py on: it begins with the queue's bound
    size_t room;    // bytes of memory
    char *memory;   // buffer of one get, of room bytes
    int busy;       // memory is in use by a thread
} Queue;

// Messages are bytes or other buffers, what the methods dumps and loads of the Python class make, or rlhost.plain's.
enum { RAW, CODED, PLAIN };

#define PAGE_BYTES 4096

// EXCEPTION stands for a code where an exception is set.
#define EXCEPTION (-1000)

// queue_forks counts the forks that led to this process: a queue's name as an owner is not inherited.
extern unsigned queue_forks;

int queue_fail_closed(void);
int queue_enter_anew(Queue *o);
void queue_detach_last(Queue *o);

// enter begins a call: it attaches again in the child of a fork, by the method _attach of the Python class. leave ends
// it.
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

// queue_waited returns whether to continue waiting after a slice in vain. It handles signals, and the method _sweep of
// the Python class repairs the queue after dead processes.
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
