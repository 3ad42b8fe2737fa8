// The part of gRPC over HTTP/2 that a plugin's control needs, on one connection.
#ifndef RLH_GRPC_H
#define RLH_GRPC_H

#include "service.h"

struct grpc;

// grpc_handlers are called on the thread that reads.
struct grpc_handlers {
    void *user;
    // call receives a call of the plugin's own service and answers with grpc_answer, now or later.
    void (*call)(void *user, struct call *call);
    // shutdown: the host has asked the plugin to end, and has been answered.
    void (*shutdown)(void *user);
};

// grpc_open starts on a connected, nonblocking socket and becomes its owner.
struct grpc *grpc_open(int fd, const struct grpc_handlers *handlers);
int grpc_fd(const struct grpc *g);
// grpc_read and grpc_write do as much as they can without blocking. They return false when the connection has ended.
bool grpc_read(struct grpc *g);
bool grpc_write(struct grpc *g);
bool grpc_wants_write(const struct grpc *g);
// grpc_answer sends the reply of a call, if the caller still waits for it, and frees the call.
void grpc_answer(struct call *call);
// grpc_close drops all pending calls: their stream becomes NULL.
void grpc_close(struct grpc *g);

#endif
