// Declarations shared by the component, its configuration and the control connection.
#ifndef RLH_SERVICE_H
#define RLH_SERVICE_H

#include "internal.h"
#include "json.h"

uint32_t config_holder(const rlh_host *host);
bool config_check_only(const rlh_host *host);
bool config_wrong(const rlh_host *host);
const char *config_level(const rlh_host *host);
// config_finish reports keys that were never read and writes a Configured document up to the ports.
void config_finish(rlh_host *host, struct text *reply);

// ---- requests (requests.c)

// question_read copies and reads a frame of the wire; NULL where it has no request. question_free frees it.
rlh_question *question_read(const char *json, size_t len);
void question_free(rlh_question *q);
// question_answer has the component answer, and writes the frame with the answer. It returns false, and writes nothing,
// where nobody waits for it any more.
bool question_answer(rlh_question *q, rlh_host *host, const rlh_component *kind, void *self, struct text *frame);
// requests_write describes the requests and the asks of a kind: two members of a JSON object.
void requests_write(struct text *t, const rlh_component *kind);

// kept is a text that was given to the component, in a list.
struct kept {
    char *text;
    struct kept *next;
};
// text_kept adds a text to a list, which owns it, and returns it; NULL where there is none, or no memory.
const char *text_kept(struct kept **list, char *text);
void texts_free(struct kept *list);
// member_named returns the value of a name in an object. Of several the last counts, as for the host.
json_place member_named(const struct json *doc, json_place object, const char *name);

// question_list has questions on their way to the main thread, oldest first. Its owner has a lock.
struct question_list {
    rlh_question *first, *last;
};
void question_push(struct question_list *list, rlh_question *q);
rlh_question *question_pop(struct question_list *list);

// ---- questions to others (asks.c)

// told_read copies and reads a frame of the wire; NULL where it has no answer. told_free frees it.
struct told;
struct told *told_read(const char *json, size_t len);
void told_free(struct told *t);

// told_list has answers on their way to the main thread, oldest first. Its owner has a lock.
struct told_list {
    struct told *first, *last;
};
void told_push(struct told_list *list, struct told *t);
struct told *told_pop(struct told_list *list);

// asked is a question without an answer; number 0: none.
struct asked {
    int number;
    uint32_t ask;
};

// ---- the control connection (control.c, grpc.c)

// call is a control call on its way to the main thread and back.
struct call {
    char method[64];
    char *request; // the JSON document, ending with a zero byte
    size_t len;
    struct text reply;
    int code; // of gRPC
    char message[512];

    void *stream; // the control thread's; NULL once the caller is gone
    struct call *next;
};

// post_call hands a call to the main thread. Runs on the control thread.
typedef void (*post_call)(void *user, struct call *call);

struct control;
// control_open listens on a socket in the folder that go-plugin names.
int control_open(struct control **control, post_call post, void *user);
const char *control_path(const struct control *control);
// control_answer sends a call's reply and frees it. Any thread.
void control_answer(struct control *control, struct call *call);
// control_ended reports whether the host has asked the plugin to end, or has closed the connection.
bool control_ended(const struct control *control);
// control_close ends the thread after one last attempt to send, and removes the socket.
void control_close(struct control *control);
void call_free(struct call *call);

// ---- the component (component.c, serve.c)

// timer is free where run is NULL.
struct timer {
    rlh_timed *run;
    int number;
    int64_t at, every; // when it is due; 0: once
};

enum life { DESCRIBED, CONFIGURED, STARTED, STOPPED };

struct service {
    rlh_host *host;
    struct control *control;
    const rlh_component *kinds;
    size_t kind_count;

    // The instance; main thread.
    const rlh_component *kind; // NULL, or &configured
    rlh_component configured;  // with the ports that configure has set
    void *self;
    enum life life;
    struct text state; // of the current snapshot
    pthread_t main;
    bool begun;
    struct timer timers[RLH_MOST_TIMERS];
    int timer_count; // made so far
    struct asked asked[RLH_MOST_QUESTIONS];
    int ask_count; // asked so far
    bool in_slot;
    uint32_t kept;     // blocks, when the slot began
    bool in_call;      // a callback runs for a control call, whose answer takes a failure
    char failure[512];
    bool failed;       // rlh_fail has told the host; any thread

    // Calls on their way to the main thread.
    pthread_mutex_t mutex;
    pthread_cond_t posted;
    struct call *first, **last;
    struct question_list questions;
    struct told_list told;
    bool ended;
};

// service_call answers a control call.
void service_call(struct service *s, struct call *c);
// service_stop stops the component if it runs, and frees it.
void service_stop(struct service *s);
// service_fire runs the timers that are due, and returns when the next one is: a point in time, or RLH_FOREVER.
int64_t service_fire(struct service *s);
// service_told gives the component an answer, unless its question is forgotten.
void service_told(struct service *s, struct told *t);
// service_takes_failure keeps a failure for the answer of the current control call and reports whether there is one.
bool service_takes_failure(struct service *s, const char *reason);
// service_failed has the component take no more messages. Any thread.
void service_failed(struct service *s);

#endif
