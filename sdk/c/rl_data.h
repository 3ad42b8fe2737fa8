// Hand-written. Files of the folder that the user grants: data = "./maps" in the table, --data ./maps on a command line. It is read only,
// and stays as it was when the module was loaded.
//
//	#include "rl_data.h"
//
//	static char map[4096];
//	long n = rl_data("level1.txt", map, sizeof map);
//	if (n < 0) return rl_fail(rl_data_error(n));
//	if (n > (long)sizeof map) return rl_fail("level1.txt is too long");
//
// With a C library for WASI fopen("/data/level1.txt", "r") does the same. A native program reads below the folder that the variable
// RL_DATA names.
#ifndef RL_DATA_H
#define RL_DATA_H

#include <stdint.h>

// What rl_data returns instead of a length.
#define RL_DATA_NOT_GRANTED (-8)
#define RL_DATA_NO_FILE (-44)

#ifdef __cplusplus
extern "C" {
#endif

#define RL_DATA static __attribute__((unused))

// rl_data_error says what a negative length means.
RL_DATA const char *rl_data_error(long n)
{
    switch (n) {
    case RL_DATA_NOT_GRANTED: return "no folder of data is granted: data = \"DIR\" in the table, --data DIR on a command line";
    case RL_DATA_NO_FILE: return "there is no such file in the folder of data";
    }
    return "the file of data cannot be read";
}

#if defined(__wasm__)

#define RL_WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
RL_WASI(path_open) int32_t rl_wasi_path_open(int32_t fd, int32_t lookup, const char *path, uint32_t len, int32_t flags, uint64_t rights,
                                             uint64_t inherited, int32_t fdflags, int32_t *opened);
RL_WASI(fd_filestat_get) int32_t rl_wasi_fd_filestat_get(int32_t fd, uint64_t *stat);
RL_WASI(fd_read) int32_t rl_wasi_fd_read(int32_t fd, const uint32_t *vectors, uint32_t n, uint32_t *read);
RL_WASI(fd_close) int32_t rl_wasi_fd_close(int32_t fd);

// rl_data reads a file, by its path in the folder, and returns its length. If it does not fit into cap bytes nothing is written.
RL_DATA long rl_data(const char *path, void *buf, unsigned long cap)
{
    enum { FOLDER = 3, READ = 1 << 1 };
    uint32_t len = 0, done = 0;
    while (path[len]) len++;
    int32_t fd, failed = rl_wasi_path_open(FOLDER, 0, path, len, 0, READ, 0, 0, &fd);
    if (failed) return -failed;
    uint64_t stat[8];
    failed = rl_wasi_fd_filestat_get(fd, stat);
    uint64_t size = failed ? 0 : stat[4];
    while (!failed && size <= cap && done < size) {
        uint32_t read = 0, vector[2] = {(uint32_t)(uintptr_t)buf + done, (uint32_t)size - done};
        failed = rl_wasi_fd_read(fd, vector, 1, &read);
        if (!failed && read == 0) failed = 29; // shorter than it says
        done += read;
    }
    rl_wasi_fd_close(fd);
    return failed ? -failed : (long)size;
}

#else

#include <stdio.h>
#include <stdlib.h>

RL_DATA long rl_data(const char *path, void *buf, unsigned long cap)
{
    char full[4096];
    const char *folder = getenv("RL_DATA");
    if (!folder) return RL_DATA_NOT_GRANTED;
    if (snprintf(full, sizeof full, "%s/%s", folder, path) >= (int)sizeof full) return RL_DATA_NO_FILE;
    FILE *f = fopen(full, "rb");
    if (!f) return RL_DATA_NO_FILE;
    long size = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
    if (size >= 0 && (unsigned long)size <= cap) {
        rewind(f);
        if (fread(buf, 1, (size_t)size, f) != (size_t)size) size = -1;
    }
    fclose(f);
    return size;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
