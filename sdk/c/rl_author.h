// Hand-written. What an author uses: random numbers, arguments, spaces, errors, log, metrics.
// Included by rl_env.h and rl_component.h.
#ifndef RL_AUTHOR_H
#define RL_AUTHOR_H

#include "rl_abi.h"
#include "rl_memory.h"

#define RL_INLINE static inline __attribute__((always_inline, unused))
#define RL_QUIET __attribute__((unused))

// RL_OPAQUE returns a pointer that the compiler knows nothing about. Accesses at constant offsets from it stay
// constant offsets, highest first, and an engine that checks addresses checks the first one only.
#define RL_OPAQUE(pointer)                                                                                     \
    ({                                                                                                         \
        __typeof__(pointer) opaque_ = (pointer);                                                               \
        __asm__("" : "+r"(opaque_));                                                                           \
        opaque_;                                                                                               \
    })

// ---- random numbers ----------------------------------------------------------------------------------------

// rl_rng is the random stream of one environment (splitmix64). The same stream exists in the Go and Rust SDKs.
typedef struct rl_rng {
    uint64_t state;
} rl_rng;

RL_INLINE uint64_t rl_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// rl_seed starts a stream. Neighbouring seeds give unrelated streams.
RL_INLINE rl_rng rl_seed(uint64_t seed)
{
    rl_rng rng = {rl_mix(seed + 0x9E3779B97F4A7C15u)};
    return rng;
}

// rl_next returns 64 random bits.
RL_INLINE uint64_t rl_next(rl_rng *rng) { return rl_mix(rng->state += 0x9E3779B97F4A7C15u); }

// rl_uniform returns a number from low to high; high itself only by rounding.
RL_INLINE float rl_uniform(rl_rng *rng, float low, float high)
{
    float unit = (float)(int32_t)(rl_next(rng) >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
}

// rl_below returns a whole number from 0 to n-1, or 0 if n is 0.
RL_INLINE uint32_t rl_below(rl_rng *rng, uint32_t n) { return (uint32_t)(((rl_next(rng) >> 32) * n) >> 32); }

// ---- errors ------------------------------------------------------------------------------------------------

static struct {
    char text[256];
    uint32_t len;
} rl_error;

RL_QUIET static void rl_error_add(const char *text, uint32_t len)
{
    for (uint32_t i = 0; i < len && rl_error.len < sizeof rl_error.text; i++) rl_error.text[rl_error.len++] = text[i];
}

RL_QUIET static uint32_t rl_length(const char *text)
{
    uint32_t n = 0;
    while (text[n]) n++;
    return n;
}

// rl_fail sets the text that the host shows and returns false, so that setup can end with
// return rl_fail("length must be positive").
RL_QUIET static bool rl_fail(const char *text)
{
    rl_error.len = 0;
    rl_error_add(text, rl_length(text));
    return false;
}

// ---- arguments ---------------------------------------------------------------------------------------------

// rl_argument describes an argument, for the host to check and for people to read: its name and what it is for; RL_ARG_INTEGER,
// RL_ARG_NUMBER, RL_ARG_BOOL, RL_ARG_TEXT or RL_ARG_CHOICE; its default, as in the pipeline; bounds of a number, both 0 = none; choices,
// one a line; RL_ARG_AFFECTS_SPACES if tensors depend on it.
typedef struct rl_argument {
    const char *name, *doc;
    uint32_t kind;
    const char *value;
    double min, max;
    const char *choices;
    uint32_t flags;
} rl_argument;

// rl_config is what the pipeline gives under args: lines "key=value\n". A key that nobody asked for, and a
// value of the wrong type, fail rl_create with a text that names the key.
typedef struct rl_config {
    const char *text;
    uint32_t len;
    uint64_t asked; // one bit for each of the first 64 lines
    bool failed;
} rl_config;

typedef struct rl_text {
    const char *at;
    uint32_t len;
} rl_text;

RL_INLINE rl_text rl_piece(const char *at, uint32_t len)
{
    rl_text piece = {at, len};
    return piece;
}

// rl_line cuts line number n out of the configuration; false after the last one.
RL_QUIET static bool rl_line(const rl_config *c, uint32_t n, rl_text *key, rl_text *value)
{
    uint32_t i = 0;
    for (; n && i < c->len; i++)
        if (c->text[i] == '\n') n--;
    if (i >= c->len) return false;
    uint32_t start = i, end;
    while (i < c->len && c->text[i] != '=' && c->text[i] != '\n') i++;
    *key = rl_piece(c->text + start, i - start);
    if (i < c->len && c->text[i] == '=') i++;
    for (end = i; end < c->len && c->text[end] != '\n';) end++;
    *value = rl_piece(c->text + i, end - i);
    return true;
}

// rl_arg looks an argument up; false if the pipeline does not give it.
RL_QUIET static bool rl_arg(rl_config *c, const char *name, rl_text *value)
{
    rl_text key;
    uint32_t len = rl_length(name);
    for (uint32_t n = 0; rl_line(c, n, &key, value); n++) {
        if (key.len != len || __builtin_memcmp(key.at, name, len)) continue;
        if (n < 64) c->asked |= (uint64_t)1 << n;
        return true;
    }
    return false;
}

RL_QUIET static void rl_arg_bad(rl_config *c, const char *name, const char *want)
{
    if (c->failed) return;
    rl_fail("argument ");
    rl_error_add(name, rl_length(name));
    rl_error_add(want, rl_length(want));
    c->failed = true;
}

// rl_arg_i64 returns a whole number, or fallback if the pipeline does not give it.
RL_QUIET static int64_t rl_arg_i64(rl_config *c, const char *name, int64_t fallback)
{
    rl_text v;
    if (!rl_arg(c, name, &v)) return fallback;
    bool minus = v.len && v.at[0] == '-', good = v.len > minus;
    uint64_t n = 0, limit = (uint64_t)INT64_MAX + minus;
    for (uint32_t i = minus; i < v.len; i++) {
        uint64_t digit = (uint64_t)(v.at[i] - '0');
        if (digit > 9 || n > (limit - digit) / 10) {
            good = false;
            break;
        }
        n = n * 10 + digit;
    }
    if (!good) {
        rl_arg_bad(c, name, ": want a whole number");
        return fallback;
    }
    return (int64_t)(minus ? 0 - n : n);
}

RL_QUIET static double rl_power10(int n)
{
    double p = 1, base = 10;
    for (unsigned e = n < 0 ? 0u - (unsigned)n : (unsigned)n; e; e >>= 1, base *= base)
        if (e & 1) p *= base;
    return p;
}

// rl_arg_f64 returns a number, or fallback. Up to 15 digits it is exact, beyond that to a few units of the last.
RL_QUIET static double rl_arg_f64(rl_config *c, const char *name, double fallback)
{
    rl_text v;
    if (!rl_arg(c, name, &v)) return fallback;
    uint32_t i = v.len && (v.at[0] == '-' || v.at[0] == '+'), digits = 0;
    uint64_t mantissa = 0;
    int scale = 0, exponent = 0, sign = 1;
    for (bool point = false; i < v.len; i++) {
        char ch = v.at[i];
        if (ch == '.' && !point) {
            point = true;
            continue;
        }
        if (ch < '0' || ch > '9') break;
        digits++;
        if (mantissa < UINT64_MAX / 10 - 1) {
            mantissa = mantissa * 10 + (uint64_t)(ch - '0');
            scale -= point;
        } else {
            scale += !point;
        }
    }
    bool good = digits > 0;
    if (good && i < v.len && (v.at[i] == 'e' || v.at[i] == 'E')) {
        i++;
        if (i < v.len && (v.at[i] == '-' || v.at[i] == '+')) sign = v.at[i++] == '-' ? -1 : 1;
        good = i < v.len;
        for (; i < v.len && v.at[i] >= '0' && v.at[i] <= '9'; i++)
            if (exponent < 10000) exponent = exponent * 10 + (v.at[i] - '0');
    }
    if (!good || i != v.len) {
        rl_arg_bad(c, name, ": want a number");
        return fallback;
    }
    scale += sign * exponent;
    double x = (double)mantissa;
    x = scale < 0 ? x / rl_power10(scale) : x * rl_power10(scale);
    if (!mantissa) x = 0;
    return v.at[0] == '-' ? -x : x;
}

// rl_arg_bool returns true or false, or fallback.
RL_QUIET static bool rl_arg_bool(rl_config *c, const char *name, bool fallback)
{
    rl_text v;
    if (!rl_arg(c, name, &v)) return fallback;
    bool yes = v.len == 4 && !__builtin_memcmp(v.at, "true", 4);
    if (!yes && !(v.len == 5 && !__builtin_memcmp(v.at, "false", 5))) rl_arg_bad(c, name, ": want true or false");
    return yes;
}

// rl_arg_text returns a string, not ended by NUL and valid during the call only, or fallback.
RL_QUIET static rl_text rl_arg_text(rl_config *c, const char *name, const char *fallback)
{
    rl_text v;
    return rl_arg(c, name, &v) ? v : rl_piece(fallback, rl_length(fallback));
}

// ---- spaces ------------------------------------------------------------------------------------------------

// rl_space describes the elements of an observation or an action.
typedef struct rl_space {
    uint8_t dtype, rank;
    uint32_t shape[RL_MAX_RANK];
    float low, high;         // of a box; equal = unbounded
    uint32_t n;              // values of a discrete space, or of each element of one; 0 = box
    int32_t start;           // first value of a discrete space
    const uint32_t *counts;  // values of each element, where they differ; n is 0 then
    const float *lows, *highs; // bounds of each element, where they differ
    uint32_t flags;          // RL_TENSOR_…
    float scale;             // what the host multiplies an element by where it enters a network; 0 = 1
    const char *name;        // path, such as inventory/0; NULL for the only one
} rl_space;

// RL_DISCRETE is one int32_t from 0 to values-1, RL_DISCRETE_FROM one of so many values from first on. RL_MULTI_DISCRETE(count…) is several, with so many values each, and
// RL_MULTI_BINARY(n) is n of 0 or 1. RL_BOX(dtype, low, high, dim…) is a tensor; dtype is RL_F32, RL_U8 and so on; low
// equal to high means unbounded. RL_IMAGE(height, width, channels) is a picture of uint8_t.
#define RL_DISCRETE(values) {.dtype = RL_I32, .n = (values)}
#define RL_DISCRETE_FROM(first, values) {.dtype = RL_I32, .n = (values), .start = (first)}
#define RL_MULTI_DISCRETE(...)                                                                                 \
    {.dtype = RL_I32, .rank = 1, .shape = {sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)},              \
     .counts = (const uint32_t[]){__VA_ARGS__}}
#define RL_MULTI_BINARY(elements) {.dtype = RL_I32, .rank = 1, .shape = {(elements)}, .n = 2, .flags = RL_TENSOR_BINARY}
#define RL_BOX(type, lowest, highest, ...)                                                                     \
    {.dtype = (type), .rank = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), .shape = {__VA_ARGS__},    \
     .low = (lowest), .high = (highest)}
#define RL_IMAGE(height, width, channels)                                                                      \
    {.dtype = RL_U8, .rank = 3, .shape = {(height), (width), (channels)}, .high = 255,                         \
     .flags = RL_TENSOR_IMAGE_HWC, .scale = 1 / 255.0f}

// rl_named is one of several observations or actions: its path, such as inventory/gold, and its space.
typedef struct rl_named {
    const char *name;
    rl_space space;
} rl_named;

// rl_figure is a number that the environment tells of itself in each step, such as a score: its path, and how those of an
// episode become one, RL_TENSOR_SUM, RL_TENSOR_MEAN, RL_TENSOR_MAX or RL_TENSOR_MIN, or 0 for the last one. With
// RL_TENSOR_EPISODE only that of the step that ends an episode counts.
typedef struct rl_figure {
    const char *name;
    uint32_t gather;
} rl_figure;

RL_QUIET static uint32_t rl_dtype_bytes(uint8_t dtype)
{
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1};
    return dtype < sizeof bytes ? bytes[dtype] : 0;
}

RL_QUIET static uint32_t rl_elements(const rl_space *s)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++) n *= s->shape[i];
    return n;
}

// rl_count returns how many values element i of a discrete space has.
RL_INLINE uint32_t rl_count(const rl_space *s, uint32_t i) { return s->counts ? s->counts[i] : s->n; }

// rl_discrete says whether elements are numbers of choices.
RL_INLINE bool rl_discrete(const rl_space *s) { return s->n || s->counts; }

// rl_choices returns how many values all elements have together: the length of an action mask.
RL_QUIET static uint32_t rl_choices(const rl_space *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0, elems = rl_elements(s); i < elems; i++) n += rl_count(s, i);
    return n;
}

// ---- log and metrics ---------------------------------------------------------------------------------------

enum { RL_DEBUG, RL_INFO, RL_WARNING, RL_ERROR };

#ifdef __wasm__
__attribute__((import_module("rl_optional"), import_name("log"))) void rl_optional_log(uint32_t level, uint32_t text, uint32_t len);

// rl_try_log is rl_log where the pipeline grants "log", and nothing elsewhere: the environment, or component, runs without the grant.
RL_QUIET static void rl_try_log(uint32_t level, const char *text)
{
    rl_optional_log(level, (uint32_t)(uintptr_t)text, rl_length(text));
}
#else
#include <stdio.h>
RL_QUIET static void rl_try_log(uint32_t level, const char *text) { fprintf(stderr, "log %u: %s\n", level, text); }
#endif

#if defined(RL_COMPONENT_H) // which has its own
#elif defined(__wasm__)
// rl_log sends a line to the host's log; the pipeline must grant "log".
RL_QUIET static void rl_log(uint32_t level, const char *text)
{
    rl_host_log(level, (uint32_t)(uintptr_t)text, rl_length(text));
}

// rl_metric reports a number of the environment that is being stepped under env/, of which an episode's mean counts; the pipeline
// must grant "metric".
RL_QUIET static void rl_metric(const char *name, double value)
{
    rl_host_metric_env((uint32_t)rl_current_env(), (uint32_t)(uintptr_t)name, rl_length(name), value, RL_TENSOR_MEAN);
}
#else
#include <stdio.h>
RL_QUIET static void rl_log(uint32_t level, const char *text) { fprintf(stderr, "log %u: %s\n", level, text); }
RL_QUIET static void rl_metric(const char *name, double value) { fprintf(stderr, "metric %s: %g\n", name, value); }
#endif

#endif
