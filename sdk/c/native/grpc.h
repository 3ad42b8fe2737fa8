// gRPC over HTTP/2 on one connection, as much of it as a plugin's control needs.
#ifndef RLH_GRPC_H
#define RLH_GRPC_H

#include "service.h"

struct grpc;

// grpc_handlers are called on the thread that reads.
struct grpc_handlers {
    void *user;
    // call gets a call of the plugin's own service; it answers with grpc_answer, now or later.
    void (*call)(void *user, struct call *call);
    // shutdown: the host wants the plugin to end. The answer is on its way.
    void (*shutdown)(void *user);
};

// grpc_open begins on a connected socket that does not block, which it takes over.
struct grpc *grpc_open(int fd, const struct grpc_handlers *handlers);
int grpc_fd(const struct grpc *g);
// grpc_read reads and handles what there is; grpc_write writes what it can. They return false when the connection has
// ended.
bool grpc_read(struct grpc *g);
bool grpc_write(struct grpc *g);
bool grpc_wants_write(const struct grpc *g);
// grpc_answer sends the reply of a call, if somebody still waits for it, and frees the call.
void grpc_answer(struct call *call);
// grpc_close forgets all calls that wait for an answer: their stream becomes NULL.
void grpc_close(struct grpc *g);

#endif
