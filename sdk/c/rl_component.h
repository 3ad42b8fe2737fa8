// Hand-written. Components in C: a struct for what it remembers, a function for each slot, one line RL_COMPONENT.
//
//	#include "rl_component.h"
//
//	typedef struct { double sum; } Purse;                                 // all zero at the start
//
//	static bool on_trajectories(void *self, const rl_message *m)          // for each message
//	{
//	    Purse *purse = self;
//	    const rl_column *reward = rl_column_of(m, 0);                         // the first of READS
//	    for (uint32_t t = 0; t < reward->rows; t++)
//	        for (uint32_t env = 0; env < reward->envs; env++) purse->sum += *RL_AT(float, reward, t, env, 0, 0);
//	    return rl_emit(0, m);                                             // pass it on, on the first signal
//	}
//
//	static const rl_want READS[] = {{"reward", RL_F32, 0}};
//	static const rl_signal_spec SIGNALS[] = {{"trajectories", "trajectory", "as they came"}};
//	static const rl_slot_spec SLOTS[] = {{"on_trajectories", "trajectory", "full blocks", on_trajectories, RL_WANTS(READS)}};
//
//	RL_COMPONENT(Purse, .name = "purse@1", RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS), RL_SAVED(Purse, sum))
//
//	clang --target=wasm32 -O3 -msimd128 -mbulk-memory -nostdlib -Wl,--no-entry,--stack-first -I sdk/c purse.c -o purse.wasm
//
// The header makes every export of component ABI v1 out of that. The member that RL_SAVED names is saved as its bytes; what comes
// from the table, metrics and timers are not for it. One component per file, in C11; no C library is needed.
#ifndef RL_COMPONENT_H
#define RL_COMPONENT_H

#include "rl_component_abi.h"
#include "rl_host_memory.h"

// rl_message is a message as a slot gets it and as rl_emit sends it: pass m itself on, or a struct of one's own.
typedef rl_component_message rl_message;

// rl_column is where a column of a block lies: rows, envs, agents, elems, and the strides of RL_AT.
typedef rl_column_binding rl_column;

// RL_AT is the address of an element of a column.
#define RL_AT(Type, column, t, env, agent, i)                                                                  \
    ((Type *)(uintptr_t)((column)->ptr + (t) * (column)->stride_t + (env) * (column)->stride_env +             \
                         (agent) * (column)->stride_agent + (i) * (column)->stride_elem))

// rl_want is a column that a slot looks at: its name, its RL_F32 or so (0 = any), and RL_COLUMN_WRITE, RL_COLUMN_OPTIONAL.
typedef struct rl_want {
    const char *name;
    uint8_t dtype;
    uint32_t flags;
} rl_want;

// rl_signal_spec is an output. schema is 0, or what senders and receivers of the payload have agreed on.
typedef struct rl_signal_spec {
    const char *name, *payload, *doc;
    uint64_t schema;
} rl_signal_spec;

// rl_slot_spec is an input. handle is called for each message; it returns true, or false after rl_fail, which ends the run.
typedef struct rl_slot_spec {
    const char *name, *payload, *doc;
    bool (*handle)(void *self, const rl_message *m);
    const rl_want *wants; // see RL_WANTS
    uint32_t want_count;
    uint64_t schema;
} rl_slot_spec;

// rl_request_spec is a request that the component answers; see rl_request.h. args are such as "lr number, warm bool?".
typedef struct rl_reply rl_reply;
typedef struct rl_request_spec {
    const char *name, *args, *doc;
    bool (*answer)(void *self, rl_config *args, rl_reply *reply);
} rl_request_spec;

// rl_ask_spec is a question that the component asks others; see rl_ask.h. answer gets each answer; it returns false after rl_fail, which
// ends the run.
typedef struct rl_answered rl_answered;
typedef struct rl_ask_spec {
    const char *name, *args, *doc;
    bool (*answer)(void *self, const rl_answered *answer);
} rl_ask_spec;

#define RL_COUNT(list) (uint32_t)(sizeof(list) / sizeof((list)[0]))
#define RL_WANTS(list) (list), RL_COUNT(list)
#define RL_SIGNALS(list) .signals = (list), .signal_count = RL_COUNT(list)
#define RL_SLOTS(list) .slots = (list), .slot_count = RL_COUNT(list)

// rl_component is everything that the SDK knows about the component. RL_COMPONENT fills in size.
typedef struct rl_component {
    const char *name; // name@version
    const char *doc;
    const rl_signal_spec *signals;
    uint32_t signal_count;
    const rl_slot_spec *slots;
    uint32_t slot_count;
    const rl_request_spec *requests;
    uint32_t request_count;
    const rl_ask_spec *asks;
    uint32_t ask_count;
    // setup (optional) reads the table; it returns false after rl_fail("key: reason").
    bool (*setup)(void *self, rl_config *config);
    // start (optional) is called before the first message, to declare metrics and begin timers; see rl_me.
    bool (*start)(void *self);
    // timer (optional) is called when the time of a timer has come.
    bool (*timer)(void *self, int32_t timer);
    // pause (optional) finishes what the component has begun, before it is saved at rest or replaced; resume ends that. A component
    // that has nothing under way between two calls needs neither.
    bool (*pause)(void *self);
    bool (*resume)(void *self);
    // stop (optional) is the last call; the host takes back what is leased.
    bool (*stop)(void *self);
    uint32_t size;            // of the struct
    uint32_t saved_at, saved; // of what is saved as its bytes, see RL_SAVED; by itself nothing is
} rl_component;

// RL_SAVED names the member that is saved.
#define RL_SAVED(Type, member) .saved_at = offsetof(Type, member), .saved = sizeof(((Type *)0)->member)

// rl_me says which instance this is, from start on, and rl_my_name what it is called, as far as there is room.
static rl_identity rl_me RL_QUIET;
static char rl_my_name[128] RL_QUIET;

static const rl_component rl_the_component;
static void *rl_self;

// ---- what the host offers ----------------------------------------------------------------------------------

// rl_column_of returns a column of a message's block, by its place in the slot's wants.
RL_INLINE const rl_column *rl_column_of(const rl_message *m, uint32_t want) { return (const rl_column *)rl_at(m->columns) + want; }

// rl_offer sends a message on a signal, by its place in the list, and returns what became of it: RL_OUTCOME_SENT, _PARKED or
// _DROPPED. It returns a negative status, after rl_fail, where that is a mistake of the program's.
RL_QUIET static int32_t rl_offer(uint32_t signal, const rl_message *m)
{
    int32_t outcome = rl_component_emit(signal, rl_address(m));
    if (outcome < 0) rl_fail("a message was not accepted: its block was released, or there were too many");
    return outcome > RL_OUTCOME_DROPPED ? RL_OUTCOME_SENT : outcome; // one of a later version counts as sent
}

// rl_emit is rl_offer where it does not matter what a full wire does. It returns false after rl_fail.
RL_QUIET static bool rl_emit(uint32_t signal, const rl_message *m) { return rl_offer(signal, m) >= 0; }

// rl_column_named looks up a column by its name, of the block of the message that is being handled or of a leased one, for a slot that
// wants at least one column, be it optional. access is 0 or RL_COLUMN_WRITE. It returns 0, or RL_STATUS_UNSUPPORTED where the block has none,
// _DENIED where no wire grants writing it, _STATE, _ARGUMENT.
RL_QUIET static int32_t rl_column_named(uint32_t block, const char *name, uint32_t access, rl_column *column)
{
    return rl_component_column(block, rl_address(name), rl_length(name), access, rl_address(column));
}

// rl_lease keeps the block of a message beyond its slot; rl_release ends that.
RL_QUIET static bool rl_lease(uint32_t block) { return rl_component_lease(block) == 0 || rl_fail("a block could not be leased"); }
RL_QUIET static bool rl_release(uint32_t block) { return rl_component_release(block) == 0 || rl_fail("a block is not leased"); }

// rl_log sends a line to the host's log; the pipeline must grant "log".
RL_QUIET static void rl_log(uint32_t level, const char *text) { rl_component_log(level, rl_address(text), rl_length(text)); }

// rl_metric declares a number of RL_METRIC_COUNTER, _GAUGE or _HISTOGRAM by name; rl_report gives it a value. The pipeline must
// grant "metric".
RL_QUIET static uint32_t rl_metric(uint32_t kind, const char *name)
{
    return (uint32_t)rl_component_declare(kind, rl_address(name), rl_length(name));
}
RL_QUIET static void rl_report(uint32_t metric, double value) { rl_component_report(metric, value); }

// rl_timer_start makes timer be called after nanoseconds, and then every so often unless that is 0; it returns the timer's number.
RL_QUIET static int32_t rl_timer_start(int64_t after, int64_t every) { return rl_component_timer(after, every); }

// rl_timer_cancel ends a timer; it returns false where that is over.
RL_QUIET static bool rl_timer_cancel(int32_t timer) { return rl_component_cancel((uint32_t)timer) == 0; }

// rl_stop_run asks the run to end at the next dataset boundary, for RL_STOP_FOR_OWN and so on. The pipeline must grant "stop".
RL_QUIET static bool rl_stop_run(uint32_t reason) { return rl_component_stop(reason) == 0; }

// rl_line_text and rl_line_number put a line together; rl_line_end logs it.
static struct {
    char text[256];
    uint32_t len;
} rl_line_made;

RL_QUIET static void rl_line_text(const char *text)
{
    while (*text && rl_line_made.len < sizeof rl_line_made.text - 1) rl_line_made.text[rl_line_made.len++] = *text++;
}

RL_QUIET static void rl_line_number(uint64_t n)
{
    char digits[21];
    uint32_t at = sizeof digits - 1;
    digits[at] = 0;
    do digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    rl_line_text(digits + at);
}

RL_QUIET static void rl_line_end(uint32_t level)
{
    rl_line_made.text[rl_line_made.len] = 0;
    rl_line_made.len = 0;
    rl_log(level, rl_line_made.text);
}

// ---- what messages say themselves --------------------------------------------------------------------------

// rl_episode is an episode of an agent that has ended: what a message of the payload episode says.
typedef struct rl_episode {
    float total;     // of the raw rewards
    uint32_t length; // env steps
    uint32_t env;    // global index of the environment
    uint16_t agent;
    bool terminated; // else truncated
} rl_episode;

RL_QUIET static rl_episode rl_episode_of(const rl_message *m)
{
    uint32_t bits = (uint32_t)m->inline_[0];
    rl_episode e = {0, (uint32_t)(m->inline_[0] >> 32), (uint32_t)m->inline_[1], (uint16_t)(m->inline_[1] >> 49),
                    m->inline_[1] >> 32 & 1};
    __builtin_memcpy(&e.total, &bits, sizeof bits);
    return e;
}

// rl_act_request is a message of the payload act_request: row m->t of a block waits for the actions of the component's policy. The
// answer is the message itself, on a signal with the payload actions, once they are written.
typedef struct rl_act_request {
    uint32_t policy; // what the column policy has where it acts, if there are several
    bool value_only; // the row behind the last step: there is no action to write
} rl_act_request;

RL_QUIET static rl_act_request rl_act_request_of(const rl_message *m)
{
    rl_act_request r = {(uint32_t)(m->inline_[1] >> 34) & 0xff, m->inline_[1] >> 32 & 1};
    return r;
}

// ---- what the guest exports --------------------------------------------------------------------------------

RL_EXPORT(rl_component_v1) void rl_component_v1(void) {}

RL_EXPORT(rl_last_error) int32_t rl_last_error(uint32_t buf, uint32_t cap)
{
    uint32_t n = rl_error.len < cap ? rl_error.len : cap;
    __builtin_memcpy(rl_at(buf), rl_error.text, n);
    if (n < cap) ((char *)rl_at(buf))[n] = 0;
    return (int32_t)rl_error.len;
}

// rl_config_error makes the host's "key: reason" of what the functions rl_arg_… say.
static int32_t rl_config_error(void)
{
    static const char head[] = "argument ";
    uint32_t n = sizeof head - 1;
    if (rl_error.len > n && !__builtin_memcmp(rl_error.text, head, n)) {
        __builtin_memmove(rl_error.text, rl_error.text + n, rl_error.len - n);
        rl_error.len -= n;
    }
    return RL_STATUS_CONFIG;
}

// rl_known_keys says whether every key of the table was asked for.
static bool rl_known_keys(const rl_config *config)
{
    rl_text key, value;
    for (uint32_t n = 0; n < 64 && rl_line(config, n, &key, &value); n++) {
        if (config->asked >> n & 1 || !key.len) continue;
        rl_fail("");
        rl_error_add(key.at, key.len);
        rl_error_add(": is not known", 14);
        return false;
    }
    return true;
}

RL_EXPORT(rl_configure) int32_t rl_configure(uint32_t text, uint32_t len)
{
    rl_config config = {(const char *)rl_at(text), len, 0, false};
    if (!rl_self) rl_self = rl_new(1, rl_the_component.size ? rl_the_component.size : 1);
    if (!rl_self) return RL_STATUS_MEMORY;
    rl_error.len = 0;
    if (rl_the_component.setup && !rl_the_component.setup(rl_self, &config)) return rl_config_error();
    return config.failed || !rl_known_keys(&config) ? rl_config_error() : 0;
}

// rl_writer writes a manifest, or finds out how long it is.
typedef struct rl_writer {
    uint8_t *to; // NULL: nothing is written
    uint32_t strings, strings_at;
} rl_writer;

static void rl_write_record(rl_writer *w, uint32_t at, const void *record, uint32_t n)
{
    if (w->to) __builtin_memcpy(w->to + at, record, n);
}

static uint32_t rl_write_text(rl_writer *w, const char *text, uint32_t len)
{
    static const char nul = 0;
    if (!len) return 0;
    uint32_t at = w->strings;
    rl_write_record(w, w->strings_at + at, text, len);
    rl_write_record(w, w->strings_at + at + len, &nul, 1);
    w->strings += len + 1;
    return at;
}

static uint32_t rl_write_string(rl_writer *w, const char *text) { return text ? rl_write_text(w, text, rl_length(text)) : 0; }

static void rl_write_port(rl_writer *w, uint32_t at, const char *name, const char *payload, const char *doc, uint64_t schema, uint32_t flags)
{
    rl_port_desc port = {0};
    port.name = rl_write_string(w, name);
    port.payload = rl_write_string(w, payload);
    port.doc = rl_write_string(w, doc);
    port.schema = schema;
    port.flags = flags;
    rl_write_record(w, at, &port, sizeof port);
}

static void rl_write_request(rl_writer *w, uint32_t at, const char *name, const char *args, const char *doc)
{
    rl_request_desc request = {0};
    request.name = rl_write_string(w, name);
    request.doc = rl_write_string(w, doc);
    request.args = rl_write_string(w, args);
    rl_write_record(w, at, &request, sizeof request);
}

// rl_write_manifest returns the manifest's length.
static uint32_t rl_write_manifest(uint8_t *to)
{
    const rl_component *c = &rl_the_component;
    static const char nul = 0;
    uint32_t columns = 0, at = sizeof(rl_component_spec);
    for (uint32_t i = 0; i < c->slot_count; i++) columns += c->slots[i].want_count;
    rl_writer w = {to, 1, at + (c->signal_count + c->slot_count) * (uint32_t)sizeof(rl_port_desc) + columns * (uint32_t)sizeof(rl_column_desc) +
                              (c->request_count + c->ask_count) * (uint32_t)sizeof(rl_request_desc)};
    rl_write_record(&w, w.strings_at, &nul, 1);
    for (uint32_t i = 0; i < c->signal_count; i++, at += sizeof(rl_port_desc))
        rl_write_port(&w, at, c->signals[i].name, c->signals[i].payload, c->signals[i].doc, c->signals[i].schema, 0);
    for (uint32_t i = 0; i < c->slot_count; i++, at += sizeof(rl_port_desc))
        rl_write_port(&w, at, c->slots[i].name, c->slots[i].payload, c->slots[i].doc, c->slots[i].schema, c->slots[i].want_count ? RL_PORT_BLOCKS : 0);
    for (uint32_t i = 0; i < c->slot_count; i++)
        for (uint32_t k = 0; k < c->slots[i].want_count; k++, at += sizeof(rl_column_desc)) {
            const rl_want *want = &c->slots[i].wants[k];
            rl_column_desc column = {0};
            column.slot = i;
            column.name = rl_write_string(&w, want->name);
            column.dtype = want->dtype;
            column.flags = want->flags;
            rl_write_record(&w, at, &column, sizeof column);
        }
    for (uint32_t i = 0; i < c->request_count; i++, at += sizeof(rl_request_desc))
        rl_write_request(&w, at, c->requests[i].name, c->requests[i].args, c->requests[i].doc);
    for (uint32_t i = 0; i < c->ask_count; i++, at += sizeof(rl_request_desc))
        rl_write_request(&w, at, c->asks[i].name, c->asks[i].args, c->asks[i].doc);
    uint32_t whole = rl_length(c->name), name = 0;
    while (name < whole && c->name[name] != '@') name++;
    rl_component_spec head = {0};
    head.size = sizeof head;
    head.abi_major = RL_COMPONENT_ABI_MAJOR;
    head.abi_minor = RL_COMPONENT_ABI_MINOR;
    head.port_bytes = sizeof(rl_port_desc);
    head.column_bytes = sizeof(rl_column_desc);
    head.message_bytes = sizeof(rl_component_message);
    head.binding_bytes = sizeof(rl_column_binding);
    head.signals = c->signal_count;
    head.slots = c->slot_count;
    head.columns = columns;
    head.requests = c->request_count;
    head.request_bytes = sizeof(rl_request_desc);
    head.asks = c->ask_count;
    head.flags = c->saved ? 0 : RL_COMPONENT_STATELESS;
    head.name = rl_write_text(&w, c->name, name);
    if (name < whole) head.version = rl_write_string(&w, c->name + name + 1);
    head.doc = rl_write_string(&w, c->doc);
    head.strings_at = w.strings_at;
    head.strings_len = w.strings;
    rl_write_record(&w, 0, &head, sizeof head);
    return w.strings_at + w.strings;
}

RL_EXPORT(rl_manifest) int32_t rl_manifest(uint32_t buf, uint32_t cap)
{
    uint32_t n = rl_write_manifest(NULL);
    if (n <= cap) rl_write_manifest((uint8_t *)rl_at(buf));
    return (int32_t)n;
}

RL_EXPORT(rl_start) int32_t rl_start(uint32_t identity, uint32_t len)
{
    if (len < sizeof rl_me) return RL_STATUS_ARGUMENT;
    __builtin_memcpy(&rl_me, rl_at(identity), sizeof rl_me);
    uint32_t n = rl_me.name_len < sizeof rl_my_name ? rl_me.name_len : (uint32_t)sizeof rl_my_name - 1;
    __builtin_memcpy(rl_my_name, rl_at(identity + rl_me.name_at), n);
    return rl_the_component.start && !rl_the_component.start(rl_self) ? RL_STATUS_INTERNAL : 0;
}

RL_EXPORT(rl_slot) int32_t rl_slot(uint32_t slot, uint32_t message)
{
    if (slot >= rl_the_component.slot_count) return RL_STATUS_ARGUMENT;
    return rl_the_component.slots[slot].handle(rl_self, (const rl_message *)rl_at(message)) ? 0 : RL_STATUS_INTERNAL;
}

RL_EXPORT(rl_timer) int32_t rl_timer(uint32_t timer)
{
    return rl_the_component.timer && !rl_the_component.timer(rl_self, (int32_t)timer) ? RL_STATUS_INTERNAL : 0;
}

RL_EXPORT(rl_pause) int32_t rl_pause(void)
{
    return rl_the_component.pause && !rl_the_component.pause(rl_self) ? RL_STATUS_INTERNAL : 0;
}

RL_EXPORT(rl_resume) int32_t rl_resume(void)
{
    return rl_the_component.resume && !rl_the_component.resume(rl_self) ? RL_STATUS_INTERNAL : 0;
}

RL_EXPORT(rl_stop) int32_t rl_stop(void) { return rl_the_component.stop && !rl_the_component.stop(rl_self) ? RL_STATUS_INTERNAL : 0; }

RL_EXPORT(rl_snapshot) int32_t rl_snapshot(uint32_t buf, uint32_t cap)
{
    uint32_t n = rl_the_component.saved;
    if (n && n <= cap) __builtin_memcpy(rl_at(buf), (uint8_t *)rl_self + rl_the_component.saved_at, n);
    return (int32_t)n;
}

RL_EXPORT(rl_restore) int32_t rl_restore(uint32_t buf, uint32_t len)
{
    if (len != rl_the_component.saved) {
        rl_fail("the state is that of another version");
        return RL_STATUS_VERSION;
    }
    __builtin_memcpy((uint8_t *)rl_self + rl_the_component.saved_at, rl_at(buf), len);
    return 0;
}

// RL_COMPONENT makes the component out of the author's struct and functions; fields of rl_component follow.
#define RL_COMPONENT(Type, ...) static const rl_component rl_the_component = {.size = sizeof(Type), __VA_ARGS__};

#endif
