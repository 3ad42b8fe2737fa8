// rlhost.h: native plugins in C.
//
// A plugin is a program that the host starts. It is one component of the host's pipeline: messages arrive at its
// slots, it emits signals, and the data lies in arenas, memory that it shares with the host. A whole plugin:
//
//     #include "rlhost.h"
//
//     static void on_trajectories(rlh_host *host, void *self, const rlh_message *m) {
//         rlh_count(host, "blocks", 1);
//         rlh_emit(host, 0, m); // passed on to the slots connected to "trajectories"
//     }
//
//     static const rlh_port signals[] = {{"trajectories", "trajectory", "every block, unchanged", 0, 0}};
//     static const rlh_slot slots[] = {{{"on_trajectories", "trajectory", "blocks", 0, 0}, on_trajectories}};
//     static const rlh_component kind = {.kind = "count_blocks", .doc = "counts trajectory blocks",
//         .signals = signals, .signal_count = 1, .slots = slots, .slot_count = 1};
//
//     int main(void) { return rlh_serve(&kind, 1); }
//
//     cc -O2 -o plugin plugin.c sdk/c/native/*.c -lnghttp2 -lpthread
//
// The parts below stand alone: components (1), messages (2), arenas (3), columns (4), rings (5), the link (6),
// which bindings for other languages wrap, and channels (7); compiled with -DRLH_NO_CONTROL the library has no part 1
// and needs no libnghttp2.
//
// Functions that can fail return 0 or a negative RLH_ERR_ code. All of part 1 and 2 belongs to the main thread,
// the one that called rlh_serve, unless its comment says "any thread"; arenas and rings are for any thread.
// Strings are UTF-8 and end with a zero byte. Nothing is written to standard output, which belongs to the host.
#ifndef RLHOST_H
#define RLHOST_H

#include <stddef.h>
#include <stdint.h>

#include "rlhost_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// RLH_SDK names the library and its version to the host.
#define RLH_SDK "c 1.0"

// Errors. The host's own arenas have the first nine.
enum {
    RLH_OK = 0,
    RLH_ERR_EXHAUSTED = -1, // no block is free; rlh_on_free reports when one is
    RLH_ERR_BUSY = -2,      // the requested block is not free
    RLH_ERR_STALE = -3,     // the handle's use of its block is over, was revoked, or never began
    RLH_ERR_FOREIGN = -4,   // the handle belongs to another arena, or to none
    RLH_ERR_RANGE = -5,     // the arena has no block of that index
    RLH_ERR_STATE = -6,     // the block is still being written
    RLH_ERR_SPENT = -7,     // the loan or claim was released before
    RLH_ERR_CLAIMS = -8,    // the block has the most claims that can be counted
    RLH_ERR_CLOSED = -9,    // the arena, ring or link has been closed
    RLH_ERR_READ_ONLY = -10,
    RLH_ERR_TIMEOUT = -11,  // nothing happened within the timeout
    RLH_ERR_WOKEN = -12,    // rlh_wake was called
    RLH_ERR_TOO_LONG = -13, // more bytes than fit
    RLH_ERR_INVALID = -14,  // an argument, or data of another process, makes no sense
    RLH_ERR_MEMORY = -15,
    RLH_ERR_SYSTEM = -16,  // see errno
    RLH_ERR_REFUSED = -17, // the host refused; rlh_reason returns why
};

// rlh_strerror returns a short description of a code. Any thread.
const char *rlh_strerror(int code);

// RLH_FOREVER is the timeout that never expires. Timeouts are in nanoseconds; 0 does not wait.
#define RLH_FOREVER INT64_C(-1)

// rlh_host is the plugin's view of its host: the link to it, its arenas, and the plugin's configuration.
typedef struct rlh_host rlh_host;
typedef struct rlh_arena rlh_arena;
typedef struct rlh_ring rlh_ring;

// ------------------------------------------------------------------------------------------ 1. components

// rlh_port describes a signal, or the messages that a slot takes. A signal connects to slots of equal payload.
typedef struct rlh_port {
    const char *name;    // snake_case
    const char *payload; // such as "trajectory", "weights"
    const char *doc;     // one sentence
    // Not 0: messages name a block that their sender has on loan until it is answered.
    int on_loan;
    // What sender and receiver of the payload must agree on, such as the first 8 bytes of a hash of its description; 0: not said.
    uint64_t schema;
} rlh_port;

// rlh_slot_fn runs on the main thread for each message. The message, and a claim on the block that it carries,
// are valid during the call; rlh_retain or rlh_lease keeps the block longer.
typedef void (*rlh_slot_fn)(rlh_host *host, void *self, const rlh_message *m);

typedef struct rlh_slot {
    rlh_port port;
    rlh_slot_fn run;
} rlh_slot;

// rlh_question is a request that has come, with its arguments, and its answer so far.
typedef struct rlh_question rlh_question;

// rlh_request describes a request that the component answers: rlhost request, programs and other components ask it by its
// name. args has the arguments, such as "lr number, warm bool?": of type bool, integer, number, text, list, table or any;
// one with a ? may be left out. The host has checked them when answer runs, on the main thread between two slots, also while
// the component is paused. Where answer returns an error, the asker gets it and the component continues.
typedef struct rlh_request {
    const char *name; // snake_case
    const char *args; // NULL: none
    const char *doc;  // one sentence
    int (*answer)(rlh_host *host, void *self, rlh_question *q);
} rlh_request;

// rlh_told is the answer to a question that the component has asked, or why there is none. It lives during the call.
typedef struct rlh_told {
    int question;             // the number that rlh_ask has returned
    int fault;                // 0: there is an answer; else RLH_ANSWER_LATE, ...: the number of the code that users see
    const char *json;         // the answer, or NULL
    const char *text;         // of the fault, else ""
    const char *type, *place; // of an error of the other component, such as ValueError and coach.py:12, else ""
    struct told *own;         // the library's
} rlh_told;

// rlh_asking describes a question that the component asks others, with its arguments as in rlh_request: the key asks of the
// component's table says which component answers. told gets each answer, on the main thread between two slots, also while
// the component is paused.
typedef struct rlh_asking {
    const char *name; // snake_case
    const char *args; // NULL: none
    const char *doc;  // one sentence
    void (*told)(rlh_host *host, void *self, const rlh_told *t);
} rlh_asking;

// rlh_component is a kind of component. Callbacks run on the main thread, one at a time, in this order: configure,
// start, perhaps restore, begin, then slots and snapshots, and stop. Any may be NULL. A callback that returns an int
// returns 0, or an error, which ends the component with the text of rlh_fail or of the code.
typedef struct rlh_component {
    const char *kind; // snake_case, the name in the pipeline's file
    const char *doc;
    const rlh_port *signals;
    size_t signal_count;
    const rlh_slot *slots;
    size_t slot_count;
    // self_bytes is the size of self, which is zeroed, allocated before configure and freed after stop.
    size_t self_bytes;

    // configure reads the component's table with rlh_config and checks it; complaints go to rlh_config_error. It
    // takes no resources and may run again.
    int (*configure)(rlh_host *host, void *self);
    // start takes resources; arenas work from here on. begin makes the first step, such as an emit: a state has been
    // restored by then.
    int (*start)(rlh_host *host, void *self);
    void (*begin)(rlh_host *host, void *self);
    // snapshot passes the state to rlh_state_put, in one or several pieces; restore receives it in one. A kind without
    // them cannot be saved, nor can a component while it keeps blocks of others beyond a slot: see rlh_kept.
    int (*snapshot)(rlh_host *host, void *self);
    int (*restore)(rlh_host *host, void *self, const void *state, size_t bytes);
    // idle runs when no message waits; it returns the nanoseconds after which it must run again, or RLH_FOREVER.
    int64_t (*idle)(rlh_host *host, void *self);
    // stop releases everything, also after a failed start.
    void (*stop)(rlh_host *host, void *self);
    const rlh_request *requests;
    size_t request_count;
    const rlh_asking *asks;
    size_t ask_count;
} rlh_component;

// rlh_serve runs the plugin until the host ends it, and returns the exit status for main. Call it first: it takes
// standard output for the host; later prints go to the host's log.
int rlh_serve(const rlh_component *kinds, size_t count);

// rlh_config returns the value of a key of the component's table as text, or NULL. Keys of tables within the table
// are joined by dots, elements of arrays by commas. It lives as long as the component.
const char *rlh_config(rlh_host *host, const char *key);
// The next three parse it. A key that is missing leaves *value as it is, which makes that the default; a value of
// another type is reported as by rlh_config_error. They return 0, or RLH_ERR_INVALID.
int rlh_config_int(rlh_host *host, const char *key, int64_t *value);
int rlh_config_float(rlh_host *host, const char *key, double *value);
int rlh_config_bool(rlh_host *host, const char *key, int *value);
// rlh_config_error reports an error in one key: the reason, such as "is 0, want 1 or more", the remedy, and the host's
// code, such as "E020" (NULL: none). The library reports keys that were never read.
void rlh_config_error(rlh_host *host, const char *key, const char *reason, const char *help, const char *code);

// rlh_set_ports gives the component other signals and slots than its kind, where they depend on the table: configure calls
// it. The arrays, and the texts in them, must live as long as the component.
void rlh_set_ports(rlh_host *host, const rlh_port *signals, size_t signal_count, const rlh_slot *slots, size_t slot_count);

// rlh_args returns all arguments of a question as JSON, an object. The next three read one: one that was left out leaves
// *value as it is, which makes that the default. A value that does not fit, such as a whole number of more than 64 bits, is
// the question's error; they return 0, or RLH_ERR_INVALID. rlh_arg_text returns a text, anything else as JSON, or NULL where
// it was left out. Texts live as long as the question, which ends with the callback.
const char *rlh_args(const rlh_question *q);
int rlh_arg_int(rlh_question *q, const char *name, int64_t *value);
int rlh_arg_float(rlh_question *q, const char *name, double *value);
int rlh_arg_bool(rlh_question *q, const char *name, int *value);
const char *rlh_arg_text(rlh_question *q, const char *name);

// These add to the answer: text that is JSON, or a part of it such as {"level": ; a number, true or false, a text. They
// return 0, or an error for the callback to return: TOO_LONG beyond RLH_MAX_REQUEST_BYTES, MEMORY. The answer must be one
// JSON value in the end, so that a float which is no number is refused.
int rlh_answer_json(rlh_question *q, const char *json);
int rlh_answer_int(rlh_question *q, int64_t value);
int rlh_answer_float(rlh_question *q, double value);
int rlh_answer_bool(rlh_question *q, int value);
int rlh_answer_text(rlh_question *q, const char *text);

// rlh_raise makes an error the answer, with its type, such as "KeyError" or "", its text, and its place in the source. It
// returns RLH_ERR_REFUSED, for the callback to return. Errors that are only returned have the text of the code.
#define rlh_raise(q, type, ...) rlh_raise_at((q), (type), __FILE__, __LINE__, __VA_ARGS__)
int rlh_raise_at(rlh_question *q, const char *type, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// rlh_ask asks a question, given by its index in the component's asks, and returns at once with its number, from 1 on. args
// is a JSON object such as {"times": 2}, or NULL. Its told is called once, from the run's beginning on: at the latest after
// within nanoseconds, or half a minute where within is 0. Errors: INVALID (before start, an index of none, args that are no
// object), TOO_LONG, EXHAUSTED: RLH_MOST_QUESTIONS have no answer yet.
enum { RLH_MOST_QUESTIONS = 256 };
int rlh_ask(rlh_host *host, uint32_t ask, const char *args, int64_t within);

// The next four read an answer, or one value of an answer that is an object: key is its name, NULL for the answer itself.
// They return RLH_ERR_INVALID, and leave *value as it is, where there is no such value, or one of another type.
// rlh_told_text returns a text, anything else as JSON, or NULL where there is none; it lives as long as the answer.
int rlh_told_int(const rlh_told *t, const char *key, int64_t *value);
int rlh_told_float(const rlh_told *t, const char *key, double *value);
int rlh_told_bool(const rlh_told *t, const char *key, int *value);
const char *rlh_told_text(const rlh_told *t, const char *key);

// rlh_quote writes a text as JSON, with its quotes, for the arguments of a question. It returns RLH_ERR_TOO_LONG, and
// writes an empty text, where room bytes do not hold it and the zero byte at its end.
int rlh_quote(char *to, size_t room, const char *text);

// rlh_identity says which instance of the component this is.
typedef struct rlh_identity {
    const char *name; // component[i], or component
    const char *kind;
    uint32_t id; // Sender of its messages
    int64_t index, count;
    const char *run_name, *run_dir;
    uint64_t seed;   // of the run
    int synchronous; // not 0: the run must be reproducible bit by bit
} rlh_identity;
const rlh_identity *rlh_identify(rlh_host *host);

// Timers: rlh_after makes run be called once, when the nanoseconds have passed and the run has begun; rlh_every makes it
// be called each so many, at least one, and skips calls that could not be made in time. No slot runs meanwhile. They
// return the timer's number, from 1 on, or RLH_ERR_EXHAUSTED: there are RLH_MOST_TIMERS at once. rlh_cancel ends a
// timer, and returns RLH_ERR_SPENT where that is over. Timers end with the component.
enum { RLH_MOST_TIMERS = 64 };
typedef void rlh_timed(rlh_host *host, void *self);
int rlh_after(rlh_host *host, int64_t nanoseconds, rlh_timed *run);
int rlh_every(rlh_host *host, int64_t nanoseconds, rlh_timed *run);
int rlh_cancel(rlh_host *host, int timer);

// rlh_state_put adds bytes to the current snapshot.
int rlh_state_put(rlh_host *host, const void *bytes, size_t n);

// rlh_log writes a line to the host's log. Any thread.
enum { RLH_DEBUG, RLH_INFO, RLH_WARN, RLH_ERROR };
void rlh_log(rlh_host *host, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Metrics of the component: a counter goes up, a gauge is the last value, observations make a histogram. The host sees
// them within half a second. Names are up to 95 bytes; there can be 256 of them. Any thread.
void rlh_count(rlh_host *host, const char *name, uint64_t add);
void rlh_gauge(rlh_host *host, const char *name, double value);
void rlh_observe(rlh_host *host, const char *name, double value);

// rlh_fail ends the component with an error message for the user. The callback must still return. Any thread.
void rlh_fail(rlh_host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

// rlh_stop_run asks the host to end the run at the next dataset boundary. reason: RLH_LINK_STOP_OWN, ...
int rlh_stop_run(rlh_host *host, int reason);
// rlh_boundary is for learners: a dataset has been learned from and its weights are published. It returns when the host
// is done; snapshot runs within it.
int rlh_boundary(rlh_host *host);

// ------------------------------------------------------------------------------------------ 2. messages

// rlh_emit sends a message from a signal, given by its index. Of *m it uses handle, kind, t, split, policy_version,
// inline_, and sender, which receives an answer: this component's id, or that of a forwarded request. It fills in the
// rest. A block in it is claimed until the receivers have it, so the caller may release it at once; if the signal is
// on_loan the caller keeps the loan until it is answered. rlh_emit waits while RLH_LINK_WINDOW messages are not taken
// by the host. Errors: those of rlh_retain, CLOSED.
int rlh_emit(rlh_host *host, uint32_t signal, const rlh_message *m);
// rlh_reply emits a new message in answer to a request: it goes to the request's sender.
int rlh_reply(rlh_host *host, uint32_t signal, const rlh_message *m, const rlh_message *request);

// ------------------------------------------------------------------------------------------ 3. arenas

// rlh_handle names one use of one block: a number that keeps nothing alive. 0 names nothing.
typedef uint64_t rlh_handle;
static inline uint32_t rlh_handle_arena(rlh_handle h) { return (uint32_t)(h >> (RLH_BLOCK_BITS + RLH_GENERATION_BITS)); }
static inline uint32_t rlh_handle_block(rlh_handle h) { return (uint32_t)(h >> RLH_GENERATION_BITS) & RLH_MAX_BLOCK; }
static inline uint64_t rlh_handle_generation(rlh_handle h) { return h & RLH_MAX_GENERATION; }

// rlh_arena_of finds an arena by handle, rlh_arena_named by name; NULL if the host has none. Arenas stay
// until the plugin ends. Any thread.
rlh_arena *rlh_arena_of(rlh_host *host, rlh_handle h);
rlh_arena *rlh_arena_named(rlh_host *host, const char *name);
// rlh_add_arena asks the host for an arena of the plugin's own and waits for it. schema is a JSON document that
// describes the blocks, or NULL.
int rlh_add_arena(rlh_host *host, rlh_arena **arena, const char *name, uint32_t blocks, size_t block_bytes,
                  const char *schema);
// rlh_reason returns why the host last refused. It lives until the next refusal.
const char *rlh_reason(rlh_host *host);

// rlh_arena_info is constant.
typedef struct rlh_arena_info {
    uint32_t id, blocks;
    size_t block_bytes, stride;
    int read_only;      // blocks can be read, but not loaned
    const char *name;
    const char *schema; // JSON, or "" if there is none
} rlh_arena_info;
const rlh_arena_info *rlh_arena_get_info(const rlh_arena *arena);

// A loan is the single writer's claim. rlh_loan lends any free block: *bytes is where to write, contents undefined,
// until rlh_commit makes it readable, leaving the caller one claim on it, or rlh_abort returns it unwritten.
// Errors: EXHAUSTED or BUSY, RANGE, CLOSED, READ_ONLY; SPENT if the loan has ended.
int rlh_loan(rlh_arena *arena, rlh_handle *h, void **bytes);
int rlh_loan_block(rlh_arena *arena, uint32_t block, rlh_handle *h, void **bytes);
int rlh_commit(rlh_arena *arena, rlh_handle h);
int rlh_abort(rlh_arena *arena, rlh_handle h);

// A claim keeps a committed block as it is. rlh_lease claims it and gives its bytes, rlh_retain only claims it; each is
// released by one rlh_release, and so is the claim that rlh_commit left. The last claim of the last process frees the
// block. bytes may be NULL. Errors: FOREIGN, RANGE, STATE, STALE, CLAIMS, SPENT.
int rlh_lease(rlh_arena *arena, rlh_handle h, const void **bytes);
int rlh_retain(rlh_arena *arena, rlh_handle h);
// rlh_lease_writable is rlh_lease for a component that writes one column of the block where it lies; the rest is for
// reading. slot is the one that the block came to. REFUSED unless its wires grant that column: rlh_reason names the key.
int rlh_lease_writable(rlh_host *host, const char *slot, const char *column, rlh_handle h, void **bytes);
int rlh_release(rlh_arena *arena, rlh_handle h);
// rlh_kept returns how many claims the component has on blocks of arenas that are not its own. While it has some between two slots
// it is not asked for its state, since a run that goes on from a state has none of them.
uint32_t rlh_kept(const rlh_host *host);
// rlh_revoke makes the block unreachable for new claims; its holders keep it.
int rlh_revoke(rlh_arena *arena, rlh_handle h);
// rlh_loaned returns the bytes of a block on loan to another component, which asked this one to write a part (on_loan).
int rlh_loaned(rlh_arena *arena, rlh_handle h, void **bytes);

// rlh_on_free makes run the receiver of a block's credit: run is called each time the block becomes free, in any
// process, and may take it with rlh_loan_block at once. A block that is free already gives none. The call comes on the
// thread that frees the block, or on the main thread if another process did. NULL: no credits.
typedef void (*rlh_free_fn)(void *user, rlh_arena *arena, uint32_t block);
int rlh_on_free(rlh_arena *arena, uint32_t block, rlh_free_fn run, void *user);

// rlh_arena_count takes a snapshot of an arena; blocks that move meanwhile are counted before or after their move.
typedef struct rlh_arena_stats {
    uint32_t free, write, live, zombie, closed; // blocks by state
    uint32_t loans;                             // open loans of this process
    uint32_t claims;                            // of this process, on committed blocks
} rlh_arena_stats;
void rlh_arena_count(const rlh_arena *arena, rlh_arena_stats *stats);

// rlh_arena_attach maps an arena that no host announced to this plugin. *said is checked against the files, which stay
// the caller's. holder is this process's bit, 1 to RLH_MAX_HOLDER. freed is called for each block that becomes free and
// whose credit belongs to another process; it may be NULL.
typedef void (*rlh_freed_fn)(void *user, rlh_handle h);
int rlh_arena_attach(rlh_arena **arena, int words_fd, int data_fd, const rlh_arena_info *announced, uint32_t holder,
                     rlh_freed_fn freed, void *user);
void rlh_arena_detach(rlh_arena *arena);
// rlh_arena_credited runs the receiver of a block that another process has freed.
void rlh_arena_credited(rlh_arena *arena, rlh_handle h);

// ------------------------------------------------------------------------------------------ 4. columns

#define RLH_MAX_DIMS 8

// rlh_column_view says where a column, or a tensor, lies in each block of an arena. Element (t, env, i) is offset +
// t*stride_t + env*stride_env + i*stride_elem bytes from the block's start. All of it lies in the block: checked.
typedef struct rlh_column_view {
    const char *name;  // such as "reward"
    const char *dtype; // u8 i8 i16 i32 i64 u64 f16 bf16 f32 f64 bool, or "bytes"
    size_t elem_bytes;
    size_t rows, envs, elems;
    size_t shape[RLH_MAX_DIMS]; // of one environment's element
    size_t dims;
    size_t offset, stride_t, stride_env, stride_elem;
} rlh_column_view;

// rlh_columns returns the columns of the arena's schema, and how many. They live as long as the arena.
const rlh_column_view *rlh_columns(const rlh_arena *arena, size_t *count);
// rlh_column finds one by name, or returns NULL.
const rlh_column_view *rlh_column(const rlh_arena *arena, const char *name);

// rlh_at points to an element; indexes must be below rows, envs and elems. Use the typed ones only after a check of
// dtype.
static inline const void *rlh_at(const rlh_column_view *c, const void *block, size_t t, size_t env, size_t i) {
    return (const char *)block + c->offset + t * c->stride_t + env * c->stride_env + i * c->stride_elem;
}
// rlh_to is rlh_at for a block that may be written.
static inline void *rlh_to(const rlh_column_view *c, void *block, size_t t, size_t env, size_t i) {
    return (char *)block + c->offset + t * c->stride_t + env * c->stride_env + i * c->stride_elem;
}
static inline float rlh_f32_at(const rlh_column_view *c, const void *block, size_t t, size_t env, size_t i) {
    return *(const float *)rlh_at(c, block, t, env, i);
}
static inline int32_t rlh_i32_at(const rlh_column_view *c, const void *block, size_t t, size_t env, size_t i) {
    return *(const int32_t *)rlh_at(c, block, t, env, i);
}
static inline uint8_t rlh_u8_at(const rlh_column_view *c, const void *block, size_t t, size_t env, size_t i) {
    return *(const uint8_t *)rlh_at(c, block, t, env, i);
}

// ------------------------------------------------------------------------------------------ 5. rings

// A ring is a bounded FIFO in a file of shared memory, of one of two kinds: RLH_RING_MESSAGES has one producer and one
// consumer and carries rlh_messages; RLH_RING_QUEUE has any number of both, each of which may be killed at any moment,
// and carries any bytes: up to the payload of a cell, or, where it is of the third kind, RLH_RING_BYTES, as many as fit
// into the whole queue. Functions that wait spin for some microseconds, then sleep.

// rlh_ring_create makes a ring in a new sealed memory file. cells is a power of two from 2; payload the most bytes of
// one item (of messages: 64). rlh_ring_attach maps one and checks it; the file stays the caller's. owner, from 1 to
// 4095, names this process in a queue and must be unique among the living; 0 for messages.
int rlh_ring_create(int *fd, uint32_t kind, uint32_t cells, uint32_t payload);
int rlh_ring_attach(rlh_ring **ring, int fd, uint32_t kind, uint32_t owner);
// rlh_queue_create makes a queue for messages of any size, of bytes in total, from 1 to 4 GiB less 1.
// They are counted in cells of 48 bytes, of 112 and more in a queue of more than 3 MB. Attach it as RLH_RING_QUEUE.
int rlh_queue_create(int *fd, uint64_t bytes);
void rlh_ring_detach(rlh_ring *ring);
uint32_t rlh_ring_cells(const rlh_ring *ring);
uint32_t rlh_ring_payload(const rlh_ring *ring);
uint32_t rlh_ring_used(const rlh_ring *ring); // how many cells are in use at the moment
// rlh_ring_shut ends the puts: they fail with CLOSED, and gets do when the ring is empty.
void rlh_ring_shut(rlh_ring *ring);
int rlh_ring_is_shut(const rlh_ring *ring);
// rlh_ring_cancel makes this process's waiting and later calls on a queue return CLOSED; other processes continue.
// Detach once all of them have returned.
void rlh_ring_cancel(rlh_ring *ring);
// rlh_ring_kick wakes all sleepers of the ring.
void rlh_ring_kick(rlh_ring *ring);

// These put or get from one up to count messages, and return how many. One thread at a time may put, one get.
int rlh_messages_put(rlh_ring *ring, const rlh_message *m, size_t count, int64_t timeout);
int rlh_messages_get(rlh_ring *ring, rlh_message *m, size_t count, int64_t timeout);

// rlh_item is one item of a queue.
typedef struct rlh_item {
    const void *bytes;
    uint32_t len;
    uint32_t kind; // the user's
} rlh_item;

// rlh_queue_put puts count items next to each other, all or none, and returns count; TOO_LONG if that is more than
// rlh_queue_batch, the number of first items that one put can take: at most RLH_MAX_RING_BATCH, and as many as the ring
// has cells for. rlh_queue_get takes as many as there are, at most count, and as fit into room bytes of memory, to
// which the items then point; it returns how many, or TOO_LONG if the first does not fit. Any thread.
int rlh_queue_put(rlh_ring *ring, const rlh_item *items, size_t count, int64_t timeout);
int rlh_queue_get(rlh_ring *ring, rlh_item *items, size_t count, void *memory, size_t room, int64_t timeout);

size_t rlh_queue_batch(const rlh_ring *ring, const rlh_item *items, size_t count);

// What a queue holds at the moment: items, their bytes in total, and whether it is full. rlh_queue_longest is the most
// bytes of one.
typedef struct rlh_queue_stats {
    uint64_t items, bytes;
    int full;
} rlh_queue_stats;
void rlh_queue_count(const rlh_ring *ring, rlh_queue_stats *out);
uint32_t rlh_queue_longest(const rlh_ring *ring);

// rlh_queue_bound is how many items a queue may hold, in memory that all processes which put share: zeros at first, but
// for most. rlh_queue_bind makes the puts of an attached ring keep to it, and rlh_queue_recover repair it. The memory
// stays the caller's, until rlh_ring_detach at least.
typedef struct rlh_queue_bound {
    uint32_t most;   // items
    uint32_t holder; // the owner that puts, 0 if none does
    uint32_t room;   // items that may be put before they are counted again
} rlh_queue_bound;
void rlh_queue_bind(rlh_ring *ring, rlh_queue_bound *bound);

// rlh_queue_recover repairs what a dead owner left half done. lost, if not NULL, receives each item that the owner had
// taken and not finished. Call it only after the kernel has said that the process is dead; it may be repeated.
typedef void (*rlh_lost_fn)(void *user, const rlh_item *item);
void rlh_queue_recover(rlh_ring *ring, uint32_t owner, rlh_lost_fn lost, void *user);

// ------------------------------------------------------------------------------------------ 6. the link

// The layer below rlh_serve, for bindings to other languages, which handle the control calls themselves.

// rlh_handlers are called by the link; each may be NULL.
typedef struct rlh_handlers {
    void *user;
    // woken runs on the main thread inside rlh_boundary after rlh_wake: serve the posted calls.
    void (*woken)(void *user);
    // frame receives each frame of the wire that the library does not handle, such as "file", on the wire's thread.
    // json ends with a zero byte; the files are the callee's.
    void (*frame)(void *user, const char *json, size_t len, const int *fds, size_t fd_count);
    // gone runs on the wire's thread when the host is gone. NULL: the process ends.
    void (*gone)(void *user);
} rlh_handlers;

// rlh_host_open takes the three inherited files, RLH_FD_WIRE and the two after it, and starts a thread that reads the
// wire, so that arenas are known.
int rlh_host_open(rlh_host **host, int wire_fd, int in_fd, int out_fd, const rlh_handlers *handlers);
// rlh_host_bind sets the plugin's identity from its configuration: its holder bit, its number as a sender, and its
// signals and slots. Messages can be sent and received from then on.
int rlh_host_bind(rlh_host *host, uint32_t holder, uint32_t sender, const rlh_port *signals, size_t signal_count,
                  size_t slot_count);
// rlh_host_configure reads a Configuration document (JSON) for rlh_config and rlh_identify.
int rlh_host_configure(rlh_host *host, const char *json, size_t len);
// rlh_host_close releases the claims of messages still in transit, and unmaps everything.
void rlh_host_close(rlh_host *host);

// rlh_receive waits for the next message to a slot, or for the link's messages from RLH_LINK_ENV_BIND on. The call
// finishes the previous message: it is acknowledged to the host. Errors: TIMEOUT, WOKEN, CLOSED, INVALID.
int rlh_receive(rlh_host *host, rlh_message *m, int64_t timeout);
// rlh_finish finishes the last message early; rlh_settle also tells the host at once, as required before saving a state
// that includes the message. rlh_wake ends a waiting rlh_receive; rlh_end makes all waits for the host return CLOSED
// from now on. Any thread.
void rlh_finish(rlh_host *host);
void rlh_settle(rlh_host *host);
void rlh_wake(rlh_host *host);
void rlh_end(rlh_host *host);
// rlh_acknowledge acknowledges the finished messages now. A binding calls it before it sends a state, so that the state
// agrees with the host's count.
void rlh_acknowledge(rlh_host *host);
// rlh_begun reports whether the run has begun: a component must not act unasked before, so that a state can be restored
// first. rlh_receive returns WOKEN when it begins.
int rlh_begun(const rlh_host *host);
// rlh_send puts one of the link's own messages, from RLH_LINK_ENV_REPLY on, unchanged.
int rlh_send(rlh_host *host, const rlh_message *m);

// rlh_wire_send sends one frame, with up to RLH_MAX_FILES files. Any thread.
int rlh_wire_send(rlh_host *host, const char *json, size_t len, const int *fds, size_t fd_count);
// rlh_state_send sends a state; rlh_state_take waits for the state of a call: free() its bytes. Any thread.
int rlh_state_send(rlh_host *host, uint64_t call, const void *bytes, size_t n);
int rlh_state_take(rlh_host *host, uint64_t call, void **bytes, size_t *n, int64_t timeout);

// ------------------------------------------------------------------------------------------ 7. channels

// A channel is a queue of items with keys and weights that another process of this user serves under a name: rlhost
// channel serve, Channel.create in Python, a component of the kind channel. Needs no rlh_host. A connection is for one
// thread at a time.
typedef struct rlh_channel rlh_channel;

// rlh_channel_item is an item that was got. Its bytes, what was put, are valid until the connection's next get.
typedef struct rlh_channel_item {
    double weight;
    const void *bytes;
    size_t len;
} rlh_channel_item;

// rlh_channel_connect connects; SYSTEM with errno ENOENT or ECONNREFUSED where nobody serves a channel of that name.
// rlh_channel_disconnect ends that, and nothing of the channel.
int rlh_channel_connect(rlh_channel **channel, const char *name);
void rlh_channel_disconnect(rlh_channel *channel);
// rlh_channel_reason is the text of the last error.
const char *rlh_channel_reason(const rlh_channel *channel);

// rlh_channel_put adds an item at the end of a key, once there is room for it. rlh_channel_get takes the oldest of a key,
// once there is one. Errors: TIMEOUT, CLOSED (the channel is closed, and nothing is left of the key, or its server has
// ended), TOO_LONG, INVALID (a key of more than 1,024 bytes or of none, a weight below 0 or that is no number), REFUSED.
int rlh_channel_put(rlh_channel *channel, const char *key, double weight, const void *bytes, size_t len, int64_t timeout);
int rlh_channel_get(rlh_channel *channel, const char *key, rlh_channel_item *item, int64_t timeout);
// rlh_channel_get_batch takes the oldest items of a key that weigh no more than weight together, a heavier one alone, at
// most as many as there is room for in items, and returns how many; see docs/how-to/channels.md.
int rlh_channel_get_batch(rlh_channel *channel, const char *key, double weight, rlh_channel_item *items, size_t most, int64_t timeout);
// rlh_channel_close closes the channel for everybody: puts fail, and so do gets once nothing is left.
int rlh_channel_close(rlh_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
