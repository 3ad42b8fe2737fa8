// arena.c: arenas. A block's memory is returned as an address, from which rlhost.arena makes arrays that keep the Arena
// object, and so the mapping, alive.
#include "native.h"

typedef struct {
    PyObject_HEAD
    rlh_arena *arena;
    const rlh_arena_info *info;
    PyObject *owner; // keeps the mapping; NULL if this object detaches it
    char *base;      // of block 0, once it is known
    PyObject *freed; // called with the handle of a block whose credit belongs to another process
    PyObject *credits; // by block: called when it becomes free
} Arena;

static PyTypeObject *arena_type;

PyObject *arena_wrap(rlh_arena *arena, PyObject *owner) {
    Arena *o = PyObject_New(Arena, arena_type);
    if (!o)
        return NULL;
    o->arena = arena;
    o->info = arena ? rlh_arena_get_info(arena) : NULL;
    o->base = NULL;
    o->owner = owner;
    o->freed = o->credits = NULL;
    Py_XINCREF(owner);
    return (PyObject *)o;
}

static void arena_dealloc(PyObject *self) {
    Arena *o = (Arena *)self;
    if (!o->owner && o->arena)
        rlh_arena_detach(o->arena);
    Py_CLEAR(o->owner);
    Py_CLEAR(o->freed);
    Py_CLEAR(o->credits);
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// located remembers where block 0 is, given the bytes of one block, and returns the address of those bytes.
static PyObject *located(Arena *o, rlh_handle h, const void *bytes) {
    if (!o->base)
        o->base = (char *)(uintptr_t)bytes - (size_t)rlh_handle_block(h) * o->info->stride;
    return PyLong_FromUnsignedLongLong((uintptr_t)bytes);
}

static int read_handle(PyObject *number, rlh_handle *h) {
    *h = PyLong_AsUnsignedLongLong(number);
    return *h == (rlh_handle)-1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *arena_loan(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Arena *o = (Arena *)self;
    rlh_handle h;
    void *bytes;
    int code;
    if (n == 0) {
        code = rlh_loan(o->arena, &h, &bytes);
    } else {
        unsigned long block = PyLong_AsUnsignedLong(args[0]);
        if (block == (unsigned long)-1 && PyErr_Occurred())
            return NULL;
        code = rlh_loan_block(o->arena, (uint32_t)(block > UINT32_MAX ? UINT32_MAX : block), &h, &bytes);
    }
    if (code < 0)
        return raise_code(code, o->info->name);
    PyObject *address = located(o, h, bytes);
    if (!address)
        return NULL;
    Py_DECREF(address);
    return PyLong_FromUnsignedLongLong(h);
}

static PyObject *arena_lease(PyObject *self, PyObject *number) {
    Arena *o = (Arena *)self;
    rlh_handle h;
    const void *bytes;
    if (read_handle(number, &h))
        return NULL;
    int code = rlh_lease(o->arena, h, &bytes);
    return code < 0 ? raise_code(code, o->info->name) : located(o, h, bytes);
}

static PyObject *arena_loaned(PyObject *self, PyObject *number) {
    Arena *o = (Arena *)self;
    rlh_handle h;
    void *bytes;
    if (read_handle(number, &h))
        return NULL;
    int code = rlh_loaned(o->arena, h, &bytes);
    return code < 0 ? raise_code(code, o->info->name) : located(o, h, bytes);
}

// with_handle makes a method from a function of arena and handle.
#define WITH_HANDLE(method, call)                                       \
    static PyObject *method(PyObject *self, PyObject *number) {        \
        rlh_handle h;                                                  \
        if (read_handle(number, &h))                                   \
            return NULL;                                               \
        int code = call(((Arena *)self)->arena, h);                    \
        if (code < 0)                                                  \
            return raise_code(code, ((Arena *)self)->info->name);      \
        Py_RETURN_NONE;                                                \
    }
WITH_HANDLE(arena_commit, rlh_commit)
WITH_HANDLE(arena_abort, rlh_abort)
WITH_HANDLE(arena_retain, rlh_retain)
WITH_HANDLE(arena_release, rlh_release)
WITH_HANDLE(arena_revoke, rlh_revoke)

// credit runs a block's receiver. The interpreter reports its exceptions, which go no further.
static void credit(void *user, rlh_arena *arena, uint32_t block) {
    (void)arena;
    PyGILState_STATE state = PyGILState_Ensure();
    Arena *o = user;
    PyObject *key = PyLong_FromUnsignedLong(block);
    PyObject *run = key && o->credits ? PyDict_GetItemWithError(o->credits, key) : NULL;
    PyObject *result = run ? PyObject_CallFunctionObjArgs(run, key, NULL) : NULL;
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(run);
    Py_XDECREF(result);
    Py_XDECREF(key);
    PyGILState_Release(state);
}

static PyObject *arena_on_free(PyObject *self, PyObject *args) {
    Arena *o = (Arena *)self;
    unsigned int block;
    PyObject *run;
    if (!PyArg_ParseTuple(args, "IO:on_free", &block, &run))
        return NULL;
    if (!o->credits) {
        if (!(o->credits = PyDict_New()))
            return NULL;
        Py_INCREF(self); // the library keeps a pointer to it from here on
    }
    PyObject *key = PyLong_FromUnsignedLong(block);
    if (!key)
        return NULL;
    int failed = PyDict_SetItem(o->credits, key, run);
    Py_DECREF(key);
    if (failed)
        return NULL;
    return none_or(rlh_on_free(o->arena, block, run == Py_None ? NULL : credit, o));
}

static void freed(void *user, rlh_handle h) {
    PyGILState_STATE state = PyGILState_Ensure();
    Arena *o = user;
    PyObject *result = o->freed ? PyObject_CallFunction(o->freed, "K", (unsigned long long)h) : NULL;
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(o->freed);
    Py_XDECREF(result);
    PyGILState_Release(state);
}

static PyObject *arena_credited(PyObject *self, PyObject *number) {
    rlh_handle h;
    if (read_handle(number, &h))
        return NULL;
    rlh_arena_credited(((Arena *)self)->arena, h);
    Py_RETURN_NONE;
}

static PyObject *arena_attach(PyObject *type, PyObject *args, PyObject *kw) {
    static char *names[] = {"words_fd", "data_fd", "id", "name", "blocks", "block_bytes", "holder",
                            "read_only", "schema", "freed", NULL};
    (void)type;
    int words, data, read_only = 0;
    unsigned int id, blocks, holder;
    Py_ssize_t bytes;
    const char *name, *schema = "";
    PyObject *on_freed = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "iiIsInI|psO:attach", names, &words, &data, &id, &name, &blocks, &bytes,
                                     &holder, &read_only, &schema, &on_freed))
        return NULL;
    rlh_arena_info info = {.id = id, .blocks = blocks, .block_bytes = (size_t)bytes, .read_only = read_only,
                           .name = name, .schema = schema};
    Arena *o = (Arena *)arena_wrap(NULL, NULL);
    if (!o)
        return NULL;
    if (on_freed && on_freed != Py_None) {
        o->freed = on_freed;
        Py_INCREF(on_freed);
    }
    int code = rlh_arena_attach(&o->arena, words, data, &info, holder, o->freed ? freed : NULL, o);
    if (code < 0) {
        o->arena = NULL;
        Py_DECREF(o);
        return raise_code(code, name);
    }
    o->info = rlh_arena_get_info(o->arena);
    return (PyObject *)o;
}

static PyObject *arena_count(PyObject *self, PyObject *unused) {
    (void)unused;
    rlh_arena_stats s;
    rlh_arena_count(((Arena *)self)->arena, &s);
    return Py_BuildValue("{sIsIsIsIsIsIsI}", "free", s.free, "write", s.write, "live", s.live, "zombie", s.zombie,
                         "closed", s.closed, "loans", s.loans, "claims", s.claims);
}

static PyObject *get_key(PyObject *o, void *x) { (void)x; return PyLong_FromVoidPtr(((Arena *)o)->arena); }
static PyObject *get_id(PyObject *o, void *x) { (void)x; return PyLong_FromUnsignedLong(((Arena *)o)->info->id); }
static PyObject *get_blocks(PyObject *o, void *x) { (void)x; return PyLong_FromUnsignedLong(((Arena *)o)->info->blocks); }
static PyObject *get_bytes(PyObject *o, void *x) { (void)x; return PyLong_FromSize_t(((Arena *)o)->info->block_bytes); }
static PyObject *get_stride(PyObject *o, void *x) { (void)x; return PyLong_FromSize_t(((Arena *)o)->info->stride); }
static PyObject *get_read_only(PyObject *o, void *x) { (void)x; return PyBool_FromLong(((Arena *)o)->info->read_only); }
static PyObject *get_name(PyObject *o, void *x) { (void)x; return PyUnicode_FromString(((Arena *)o)->info->name); }
static PyObject *get_schema(PyObject *o, void *x) {
    (void)x;
    const char *schema = ((Arena *)o)->info->schema;
    return PyUnicode_FromString(schema ? schema : "");
}
static PyObject *get_base(PyObject *o, void *x) {
    (void)x;
    return PyLong_FromUnsignedLongLong((uintptr_t)((Arena *)o)->base);
}

static PyGetSetDef arena_getset[] = {
    {"key", get_key, NULL, "what names the arena as long as it is mapped", NULL},
    {"id", get_id, NULL, "number that is in handles", NULL},
    {"blocks", get_blocks, NULL, "how many", NULL},
    {"block_bytes", get_bytes, NULL, "bytes of one", NULL},
    {"stride", get_stride, NULL, "bytes from one to the next", NULL},
    {"read_only", get_read_only, NULL, "whether blocks can only be read", NULL},
    {"name", get_name, NULL, "in messages for people", NULL},
    {"schema", get_schema, NULL, "JSON, or empty", NULL},
    {"base", get_base, NULL, "address of block 0; 0 before the first loan or lease", NULL},
    {NULL},
};
static PyMethodDef arena_methods[] = {
    {"attach", (PyCFunction)(void (*)(void))arena_attach, METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "Maps an arena from its two files, which stay the caller's."},
    {"loan", (PyCFunction)(void (*)(void))arena_loan, METH_FASTCALL, "Lends any block, or that of an index: its handle."},
    {"commit", arena_commit, METH_O, "Makes a loan readable; one claim is left to the caller."},
    {"abort", arena_abort, METH_O, "Gives a loan back unwritten."},
    {"lease", arena_lease, METH_O, "Claims a block: the address of its bytes."},
    {"loaned", arena_loaned, METH_O, "The address of a block that its asker has on loan."},
    {"retain", arena_retain, METH_O, "Claims a block once more."},
    {"release", arena_release, METH_O, "Gives one claim back."},
    {"revoke", arena_revoke, METH_O, "Makes a block unreachable for new claims."},
    {"on_free", arena_on_free, METH_VARARGS, "Makes a function the receiver of a block's credit, None for nobody."},
    {"credited", arena_credited, METH_O, "Runs the receiver of a block that another process has freed."},
    {"count", arena_count, METH_NOARGS, "Blocks by state, and the loans and claims of this process."},
    {NULL},
};
static PyType_Slot arena_slots[] = {
    {Py_tp_doc, "Blocks of shared memory."},
    {Py_tp_dealloc, arena_dealloc},
    {Py_tp_getset, arena_getset},
    {Py_tp_methods, arena_methods},
    {0},
};
static PyType_Spec arena_spec = {"rlhost._native.Arena", sizeof(Arena), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, arena_slots};

int add_arena_type(PyObject *module) { return add_type(module, &arena_spec, &arena_type); }
