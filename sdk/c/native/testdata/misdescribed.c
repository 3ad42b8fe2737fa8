// Components whose descriptions of requests are wrong.
#include "rlhost.h"

static int answer(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self;
    return rlh_answer_json(q, "null");
}

static const rlh_request no_type[] = {{"weigh", "item", "", answer}};
static const rlh_request no_such_type[] = {{"weigh", "item text, grams int", "", answer}};
static const rlh_request no_name[] = {{"Weigh", "", "", answer}};
static const rlh_component kinds[] = {
    {.kind = "no_type", .requests = no_type, .request_count = 1},
    {.kind = "no_such_type", .requests = no_such_type, .request_count = 1},
    {.kind = "no_name", .requests = no_name, .request_count = 1},
};

int main(void) { return rlh_serve(kinds, 3); }
