// Hand-written. What a module gives its host of its memory: rl_alloc and rl_free, and its language. Included by rl_batch.h and rl_component.h, and by
// guests that are written against the ABI itself.
#ifndef RL_HOST_MEMORY_H
#define RL_HOST_MEMORY_H

#include "rl_author.h"

#ifndef __wasm__
#include "rl_native.h"
#else

RL_INLINE void *rl_at(uint32_t address) { return (void *)(uintptr_t)address; }
RL_INLINE uint32_t rl_address(const void *p) { return (uint32_t)(uintptr_t)p; }

// What made the module, for the words of messages: nothing strips an export.
#if defined RL_FILLED_IN
RL_EXPORT(rl_sdk_object) void rl_sdk_object(void) {}
#elif defined __cplusplus
RL_EXPORT(rl_sdk_cpp) void rl_sdk_cpp(void) {}
#else
RL_EXPORT(rl_sdk_c) void rl_sdk_c(void) {}
#endif

// Memory for the host is rounded to whole small pages, so that a window never shares one with the guest's own.
#define RL_HOST_PAGE 4096u

RL_EXPORT(rl_alloc) int32_t rl_alloc(uint32_t size, uint32_t align)
{
    if (align & (align - 1) || align > RL_PAGE || size > UINT32_MAX - RL_HOST_PAGE) return 0;
    size = (size + RL_HOST_PAGE - 1) & ~(RL_HOST_PAGE - 1);
    return (int32_t)rl_address(rl_get(size, align < RL_HOST_PAGE ? RL_HOST_PAGE : align));
}

RL_EXPORT(rl_free) void rl_free(uint32_t pointer, uint32_t size)
{
    if (size <= UINT32_MAX - RL_HOST_PAGE) rl_put(rl_at(pointer), (size + RL_HOST_PAGE - 1) & ~(RL_HOST_PAGE - 1));
}

#endif
#endif
