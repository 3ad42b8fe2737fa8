// Memory files, and the clock.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *rlh_strerror(int code) {
    switch (code) {
    case RLH_OK: return "no error";
    case RLH_ERR_EXHAUSTED: return "none is free";
    case RLH_ERR_BUSY: return "block is not free";
    case RLH_ERR_STALE: return "stale handle";
    case RLH_ERR_FOREIGN: return "handle of another arena";
    case RLH_ERR_RANGE: return "block out of range";
    case RLH_ERR_STATE: return "block is not committed";
    case RLH_ERR_SPENT: return "claim is spent";
    case RLH_ERR_CLAIMS: return "too many claims on one block";
    case RLH_ERR_CLOSED: return "closed";
    case RLH_ERR_READ_ONLY: return "the arena can only be read";
    case RLH_ERR_TIMEOUT: return "timeout";
    case RLH_ERR_WOKEN: return "woken";
    case RLH_ERR_TOO_LONG: return "too long";
    case RLH_ERR_INVALID: return "invalid";
    case RLH_ERR_MEMORY: return "out of memory";
    case RLH_ERR_SYSTEM: return "system call";
    case RLH_ERR_REFUSED: return "refused by the host";
    default: return "unknown error";
    }
}

int memory_create(const char *name, size_t bytes, int *fd, void **at) {
    int f = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (f < 0) return RLH_ERR_SYSTEM;
    if (ftruncate(f, (off_t)bytes) != 0) {
        close(f);
        return RLH_ERR_SYSTEM;
    }
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    if (p == MAP_FAILED) {
        close(f);
        return RLH_ERR_SYSTEM;
    }
    *fd = f;
    *at = p;
    return RLH_OK;
}

int memory_seal(int fd) {
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 ? RLH_OK : RLH_ERR_SYSTEM;
}

int memory_map(int fd, bool writable, size_t *bytes, void **at) {
    struct stat st;
    if (fstat(fd, &st) != 0) return RLH_ERR_SYSTEM;
    // Touching the missing part of a truncated file would kill this process.
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size <= 0) return RLH_ERR_INVALID;
    void *p = mmap(NULL, (size_t)st.st_size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED) return RLH_ERR_SYSTEM;
    madvise(p, (size_t)st.st_size, MADV_DONTDUMP); // shared memory stays out of core dumps
    *bytes = (size_t)st.st_size;
    *at = p;
    return RLH_OK;
}

void memory_unmap(void *at, size_t bytes) {
    if (at != NULL) munmap(at, bytes);
}

int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t deadline_after(int64_t timeout) {
    if (timeout < 0) return RLH_FOREVER;
    int64_t from = now();
    return timeout > INT64_MAX - from ? INT64_MAX : from + timeout;
}

int64_t left_until(int64_t deadline) {
    if (deadline < 0) return RLH_FOREVER;
    int64_t left = deadline - now();
    return left > 0 ? left : 0;
}

int memory_write(const char *name, const void *bytes, size_t n, int *fd) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (n > SIZE_MAX / 2) return RLH_ERR_TOO_LONG;
    void *at;
    size_t room = n == 0 ? page : (n + page - 1) / page * page;
    int err = memory_create(name, room, fd, &at);
    if (err != RLH_OK) return err;
    if (n > 0) memcpy(at, bytes, n);
    memory_unmap(at, room);
    err = memory_seal(*fd);
    if (err != RLH_OK) close(*fd);
    return err;
}

int memory_read(int fd, size_t n, void **bytes) {
    struct stat st;
    if (fstat(fd, &st) != 0) return RLH_ERR_SYSTEM;
    if (st.st_size < 0 || n > (size_t)st.st_size) return RLH_ERR_INVALID;
    char *to = malloc(n + 1);
    if (to == NULL) return RLH_ERR_MEMORY;
    for (size_t at = 0; at < n;) { // not mapped: a truncated file is an error, not a fault
        ssize_t got = pread(fd, to + at, n - at, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            free(to);
            return got < 0 ? RLH_ERR_SYSTEM : RLH_ERR_INVALID;
        }
        at += (size_t)got;
    }
    *bytes = to;
    return RLH_OK;
}
