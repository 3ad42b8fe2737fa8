// Hand-written. Memory of a guest: what rl_alloc and the SDK's own tables come from. Where there is a C library it is
// the library's heap, for two heaps would both begin where the linker says; without one it is this file's.
//
// Free memory is an address-ordered list of regions whose nodes lie in the free memory itself; a block in use
// has no header, because whoever frees it says its size. So a page that the host has mapped a window over is
// never touched by the allocator until it is freed.
#ifndef RL_MEMORY_H
#define RL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RL_PAGE 65536u
#define RL_GRAIN 16u

#if defined(__wasm__) && !defined(__wasi__)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_region {
    struct rl_region *next;
    uint32_t size; // bytes, this head included
} rl_region;

extern unsigned char __heap_base; // put there by the linker
static rl_region *rl_free_list;
static bool rl_heap_ready;

// rl_give puts memory into the free list and joins it with its neighbours.
static void rl_give(uint32_t at, uint32_t size)
{
    rl_region *before = NULL, *after = rl_free_list;
    while (after && (uint32_t)(uintptr_t)after < at) {
        before = after;
        after = after->next;
    }
    rl_region *r = (rl_region *)(uintptr_t)at;
    r->size = size;
    r->next = after;
    if (after && at + size == (uint32_t)(uintptr_t)after) {
        r->size += after->size;
        r->next = after->next;
    }
    if (!before) {
        rl_free_list = r;
    } else if ((uint32_t)(uintptr_t)before + before->size == at) {
        before->size += r->size;
        before->next = r->next;
    } else {
        before->next = r;
    }
}

// rl_take cuts size bytes at a multiple of align out of the first region that has them; 0 if none has.
static uint32_t rl_take(uint32_t size, uint32_t align)
{
    for (rl_region **link = &rl_free_list; *link; link = &(*link)->next) {
        rl_region *r = *link;
        uint32_t start = (uint32_t)(uintptr_t)r, have = r->size;
        uint32_t pad = (0u - start) & (align - 1);
        if (pad > have || size > have - pad) continue;
        *link = r->next;
        uint32_t tail = have - pad - size;
        if (tail) rl_give(start + pad + size, tail);
        if (pad) rl_give(start, pad);
        return start + pad;
    }
    return 0;
}

// rl_more grows the memory by at least size bytes. Pages that somebody else added in between are left alone.
static bool rl_more(uint32_t size)
{
    size_t pages = (size_t)(size / RL_PAGE) + 1;
    size_t old = __builtin_wasm_memory_grow(0, pages);
    if (old == (size_t)-1) return false;
    uint32_t at = (uint32_t)old * RL_PAGE, bytes = (uint32_t)pages * RL_PAGE;
    if (old + pages == 65536) bytes -= RL_PAGE; // the last page ends at 2^32, which has no address
    if (bytes) rl_give(at, bytes);
    return true;
}

static void rl_heap_start(void)
{
    uint32_t base = ((uint32_t)(uintptr_t)&__heap_base + RL_GRAIN - 1) & ~(RL_GRAIN - 1);
    uint32_t end = (uint32_t)__builtin_wasm_memory_size(0) * RL_PAGE;
    if (end > base) rl_give(base, end - base);
    rl_heap_ready = true;
}

// rl_get returns size bytes at a multiple of align, a power of two, or NULL. The bytes are not cleared.
static void *rl_get(uint32_t size, uint32_t align)
{
    if (!rl_heap_ready) rl_heap_start();
    if (size > UINT32_MAX - 2 * RL_PAGE) return NULL;
    size = size ? (size + RL_GRAIN - 1) & ~(RL_GRAIN - 1) : RL_GRAIN;
    if (align < RL_GRAIN) align = RL_GRAIN;
    uint32_t at = rl_take(size, align);
    if (!at && rl_more(size + align)) at = rl_take(size, align);
    return (void *)(uintptr_t)at;
}

// rl_put takes back what rl_get gave, with the same size.
static void rl_put(void *p, uint32_t size)
{
    if (!p) return;
    rl_give((uint32_t)(uintptr_t)p, size ? (size + RL_GRAIN - 1) & ~(RL_GRAIN - 1) : RL_GRAIN);
}

// The compiler may turn copies into calls of these, and there is no C library to have them.
#define RL_BYTES __attribute__((weak, no_builtin("memcpy", "memmove", "memset", "memcmp")))

RL_BYTES void *memcpy(void *to, const void *from, size_t n)
{
    unsigned char *d = (unsigned char *)to;
    for (const unsigned char *s = (const unsigned char *)from; n; n--) *d++ = *s++;
    return to;
}

RL_BYTES void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *d = (unsigned char *)to;
    const unsigned char *s = (const unsigned char *)from;
    if (d <= s) return memcpy(to, from, n);
    while (n--) d[n] = s[n];
    return to;
}

RL_BYTES void *memset(void *to, int value, size_t n)
{
    for (unsigned char *d = (unsigned char *)to; n; n--) *d++ = (unsigned char)value;
    return to;
}

RL_BYTES int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;
    for (; n; n--, p++, q++)
        if (*p != *q) return *p - *q;
    return 0;
}

#ifdef __cplusplus
}
#endif

#else // the C library's heap, which sanitizers watch in a native build

#include <stdlib.h>

static void *rl_get(uint32_t size, uint32_t align)
{
    if (align <= RL_GRAIN) return malloc(size ? size : 1);
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

static void rl_put(void *p, uint32_t size)
{
    (void)size;
    free(p);
}

#endif

// rl_new returns zeroed memory for count records of size bytes, or NULL.
static void *rl_new(uint32_t count, uint32_t size)
{
    if (size && count > UINT32_MAX / size) return NULL;
    void *p = rl_get(count * size, RL_GRAIN);
    if (p) __builtin_memset(p, 0, (size_t)count * size);
    return p;
}

#endif
