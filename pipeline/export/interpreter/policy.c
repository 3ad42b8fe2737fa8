// Computes policies. A policy is a program, which package export writes behind this module's own memory: instructions of 32-bit words, whose
// operands are numbers, and places of tensors in words from the program's first one. Each tensor has a place of its own. op.go writes them.
#include <wasm_simd128.h>

#include "rlhost_policy.h"

#define EXPORT(name) __attribute__((export_name(#name)))

// Where the program lies: behind the stack, and this module has no data of its own.
#define PROGRAM 65536

// The head of a program: a place and a count of each kind, then further places.
enum { VALUE = 2 * RL_POLICY_KINDS, ACTING, VALUING };

enum { END, ENTER, ONEHOT, DENSE, ACTIVATION, CONV, MAXPOOL, ADD, COPY, LAYERNORM, GRU, LSTM, CHOOSE, BOX };
enum { TANH, RELU, ELU, GELU, SILU };
enum { PLAIN, SCALED, RUNNING };

static uint32_t *words(void) { return (uint32_t *)PROGRAM; }
static float *floats(uint32_t at) { return (float *)words() + at; }

static float limited(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// exponential is e^x to about 1e-15, and 0 below the smallest normal number.
static double exponential(double x) {
    if (x < -700) return 0;
    if (x > 700) x = 700;
    double k = __builtin_floor(x * 1.4426950408889634 + 0.5), r = x - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10, sum = 1;
    for (int i = 13; i > 0; i--) sum = 1 + sum * r / i;
    union { uint64_t bits; double number; } power = {(uint64_t)((int64_t)k + 1023) << 52};
    return sum * power.number;
}

// normal is the standard normal distribution function, with an error below 1e-7 (Abramowitz and Stegun, 7.1.26).
static double normal(double x) {
    double z = __builtin_fabs(x) * 0.7071067811865476, t = 1 / (1 + 0.3275911 * z);
    double tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * exponential(-z * z) / 2;
    return x < 0 ? tail : 1 - tail;
}

// hyperbolic is tanh as a quotient of polynomials, with an error of a few units in the last place.
static v128_t hyperbolic(v128_t x) {
    const v128_t most = wasm_f32x4_splat(7.90531110763549805f);
    x = wasm_f32x4_pmax(wasm_f32x4_neg(most), wasm_f32x4_pmin(most, x));
    v128_t square = wasm_f32x4_mul(x, x);
#define STEP(sum, c) wasm_f32x4_add(wasm_f32x4_mul(sum, square), wasm_f32x4_splat(c))
    v128_t p = STEP(wasm_f32x4_splat(-2.76076847742355e-16f), 2.00018790482477e-13f);
    p = STEP(p, -8.60467152213735e-11f);
    p = STEP(p, 5.12229709037114e-08f);
    p = STEP(p, 1.48572235717979e-05f);
    p = STEP(p, 6.37261928875436e-04f);
    p = STEP(p, 4.89352455891786e-03f);
    v128_t q = STEP(wasm_f32x4_splat(1.19825839466702e-06f), 1.18534705686654e-04f);
    q = STEP(q, 2.26843463243900e-03f);
    q = STEP(q, 4.89352518554385e-03f);
#undef STEP
    return wasm_f32x4_div(wasm_f32x4_mul(x, p), q);
}

static float tangent(float x) { return wasm_f32x4_extract_lane(hyperbolic(wasm_f32x4_splat(x)), 0); }
static float logistic(float x) { return 0.5f + 0.5f * tangent(0.5f * x); }

// enter writes the frames of an input to where nodes read them. plane is the pixels of a picture that is stored channel by channel.
static void enter(const uint32_t *a, const float *obs) {
    const float *x = obs + a[0];
    float *out = floats(a[1]);
    uint32_t frames = a[2], elems = a[3], channels = a[4], plane = a[5], how = a[6];
    const float *mean = floats(a[7]), *scale = floats(a[8]);
    for (uint32_t f = 0; f < frames; f++) {
        for (uint32_t i = 0; i < elems; i++) {
            float v = *x++;
            if (how == SCALED) v *= scale[0];
            if (how == RUNNING) v = limited((v - mean[i]) * scale[i], -10, 10);
            uint32_t channel = plane ? i / plane : i % channels, pixel = plane ? i % plane : i / channels;
            out[(pixel * frames + f) * channels + channel] = v == v ? v : 0;
        }
    }
}

// onehot writes as many numbers for each element as it has values. Another number than these has none.
static void onehot(const uint32_t *a, const float *obs) {
    const float *x = obs + a[0];
    float *out = floats(a[1]);
    uint32_t frames = a[2], elems = a[3];
    float start = (float)(int32_t)a[4];
    const uint32_t *counts = words() + a[5];
    for (uint32_t f = 0; f < frames; f++) {
        for (uint32_t i = 0; i < elems; i++) {
            float v = *x++ - start;
            for (uint32_t c = 0; c < counts[i]; c++) *out++ = v >= (float)c && v < (float)(c + 1) ? 1 : 0;
        }
    }
}

// gather adds n weighted inputs to the outputs from j on, of which a row of weights has `width`.
static void gather(float *out, uint32_t width, const float *x, uint32_t n, const float *w) {
    uint32_t j = 0;
    for (; j + 16 <= width; j += 16) {
        v128_t a = wasm_v128_load(out + j), b = wasm_v128_load(out + j + 4), c = wasm_v128_load(out + j + 8), d = wasm_v128_load(out + j + 12);
        const float *row = w + j;
        for (uint32_t i = 0; i < n; i++, row += width) {
            v128_t v = wasm_v128_load32_splat(x + i);
            a = wasm_f32x4_add(a, wasm_f32x4_mul(v, wasm_v128_load(row)));
            b = wasm_f32x4_add(b, wasm_f32x4_mul(v, wasm_v128_load(row + 4)));
            c = wasm_f32x4_add(c, wasm_f32x4_mul(v, wasm_v128_load(row + 8)));
            d = wasm_f32x4_add(d, wasm_f32x4_mul(v, wasm_v128_load(row + 12)));
        }
        wasm_v128_store(out + j, a);
        wasm_v128_store(out + j + 4, b);
        wasm_v128_store(out + j + 8, c);
        wasm_v128_store(out + j + 12, d);
    }
    for (; j + 4 <= width; j += 4) {
        v128_t a = wasm_v128_load(out + j);
        for (uint32_t i = 0; i < n; i++) a = wasm_f32x4_add(a, wasm_f32x4_mul(wasm_v128_load32_splat(x + i), wasm_v128_load(w + i * width + j)));
        wasm_v128_store(out + j, a);
    }
    for (; j < width; j++) {
        float a = out[j];
        for (uint32_t i = 0; i < n; i++) a += x[i] * w[i * width + j];
        out[j] = a;
    }
}

static void copy(float *to, const float *from, uint32_t n) { __builtin_memcpy(to, from, n * sizeof *to); }

static void dense(float *out, uint32_t width, const float *x, uint32_t n, const float *w, const float *bias) {
    copy(out, bias, width);
    gather(out, width, x, n, w);
}

static float activated(uint32_t f, float x) {
    switch (f) {
    case ELU: return x > 0 ? x : (float)(exponential(x) - 1);
    case GELU: return (float)(x * normal(x));
    default: return x * logistic(x);
    }
}

static void activation(const uint32_t *a) {
    uint32_t f = a[0], n = a[3], i = 0;
    const float *x = floats(a[1]);
    float *out = floats(a[2]);
    for (; f <= RELU && i + 4 <= n; i += 4) {
        v128_t v = wasm_v128_load(x + i);
        wasm_v128_store(out + i, f == TANH ? hyperbolic(v) : wasm_f32x4_pmax(wasm_f32x4_splat(0), v));
    }
    for (; i < n; i++) out[i] = f == TANH ? tangent(x[i]) : f == RELU ? (x[i] > 0 ? x[i] : 0) : activated(f, x[i]);
}

// A window over a picture: which rows or columns of it lie within the picture.
static uint32_t first(int32_t from) { return from < 0 ? (uint32_t)-from : 0; }
static uint32_t last(int32_t from, uint32_t kernel, uint32_t side) { return from + (int32_t)kernel > (int32_t)side ? side - from : kernel; }

// slide visits windows: a convolution with weights, else the most of each channel. Height, width and channels are the picture's.
static void slide(const uint32_t *a, int weighted) {
    const float *in = floats(a[0]);
    float *out = floats(a[1]);
    uint32_t height = a[2], width = a[3], channels = a[4], kernel = a[5], stride = a[6], pad = a[7], rows = a[8], cols = a[9];
    uint32_t outputs = weighted ? a[10] : channels;
    for (uint32_t y = 0; y < rows; y++) {
        for (uint32_t x = 0; x < cols; x++, out += outputs) {
            int32_t top = (int32_t)(y * stride) - (int32_t)pad, left = (int32_t)(x * stride) - (int32_t)pad;
            uint32_t from = first(left), to = last(left, kernel, width), any = 0;
            if (weighted) copy(out, floats(a[12]), outputs);
            for (uint32_t r = first(top); r < last(top, kernel, height); r++) {
                const float *pixels = in + ((top + r) * width + left + from) * channels;
                if (weighted) { // the pixels of a row and their weights lie one after the other
                    gather(out, outputs, pixels, (to - from) * channels, floats(a[11]) + (r * kernel + from) * channels * outputs);
                    continue;
                }
                for (uint32_t i = 0; i < (to - from) * channels; i++) {
                    float *most = out + i % channels;
                    if (any++ < channels || pixels[i] > *most) *most = pixels[i];
                }
            }
        }
    }
}

static void layernorm(const uint32_t *a) {
    const float *x = floats(a[0]), *weight = floats(a[4]), *bias = floats(a[5]);
    float *out = floats(a[1]);
    uint32_t n = a[2];
    for (uint32_t run = 0; run < a[3]; run++, x += n, out += n) {
        double mean = 0, square = 0;
        for (uint32_t i = 0; i < n; i++) mean += x[i];
        mean /= n;
        for (uint32_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
        double inverse = 1 / __builtin_sqrt(square / n + 1e-5);
        for (uint32_t i = 0; i < n; i++) out[i] = (float)((x[i] - mean) * inverse) * weight[i] + bias[i];
    }
}

// core computes a GRU or an LSTM, whose gates are x·weight_ih + bias_ih and h·weight_hh + bias_hh.
static void core(const uint32_t *a, uint32_t gates) {
    const float *x = floats(a[0]);
    float *out = floats(a[2]), *h = floats(a[4]), *g = floats(a[9]);
    uint32_t n = a[3], width = gates * n;
    float *s = g + width, *c = h + n;
    dense(g, width, x, a[1], floats(a[5]), floats(a[7]));
    dense(s, width, h, n, floats(a[6]), floats(a[8]));
    for (uint32_t j = 0; j < n; j++) {
        if (gates == 3) {
            float r = logistic(g[j] + s[j]), z = logistic(g[n + j] + s[n + j]), next = tangent(g[2 * n + j] + r * s[2 * n + j]);
            h[j] = next + z * (h[j] - next);
            continue;
        }
        float i = logistic(g[j] + s[j]), f = logistic(g[n + j] + s[n + j]), o = logistic(g[3 * n + j] + s[3 * n + j]);
        c[j] = f * c[j] + i * tangent(g[2 * n + j] + s[2 * n + j]);
        h[j] = o * tangent(c[j]);
    }
    copy(out, h, n);
}

// choose takes the greatest legal logit of each element.
static void choose(const uint32_t *a) {
    const float *logits = floats(a[0]);
    float *action = floats(a[1]);
    const uint8_t *mask = rl_policy_mask() + a[2];
    const uint32_t *counts = words() + a[4];
    for (uint32_t e = 0; e < a[3]; e++) {
        uint32_t best = counts[e];
        for (uint32_t i = 0; i < counts[e]; i++) {
            if (mask[i] && (best == counts[e] || logits[i] > logits[best])) best = i;
        }
        action[e] = (float)((int32_t)a[5] + (int32_t)(best == counts[e] ? 0 : best));
        logits += counts[e];
        mask += counts[e];
    }
}

// box brings means within bounds.
static void box(const uint32_t *a) {
    const float *mean = floats(a[0]), *low = floats(a[3]), *high = floats(a[4]);
    float *action = floats(a[1]);
    for (uint32_t i = 0; i < a[2]; i++) {
        float x = a[5] ? tangent(mean[i]) : mean[i];
        if (a[6]) x = low[i] + (x + 1) * 0.5f * (high[i] - low[i]);
        action[i] = x >= low[i] ? limited(x, low[i], high[i]) : low[i];
    }
}

static void run(uint32_t program) {
    const float *obs = rl_policy_obs();
    for (const uint32_t *a = words() + program; a[0] != END;) {
        uint32_t op = a[0], size = a[1];
        a += 2;
        switch (op) {
        case ENTER: enter(a, obs); break;
        case ONEHOT: onehot(a, obs); break;
        case DENSE: dense(floats(a[0]), a[1], floats(a[2]), a[3], floats(a[4]), floats(a[5])); break;
        case ACTIVATION: activation(a); break;
        case CONV: slide(a, 1); break;
        case MAXPOOL: slide(a, 0); break;
        case ADD:
            for (uint32_t i = 0; i < a[3]; i++) floats(a[0])[i] = floats(a[1])[i] + floats(a[2])[i];
            break;
        case COPY: // runs of numbers, from one stride to another
            for (uint32_t i = 0; i < a[3]; i++) copy(floats(a[0]) + i * a[4], floats(a[1]) + i * a[5], a[2]);
            break;
        case LAYERNORM: layernorm(a); break;
        case GRU: core(a, 3); break;
        case LSTM: core(a, 4); break;
        case CHOOSE: choose(a); break;
        case BOX: box(a); break;
        default: __builtin_trap();
        }
        a += size;
    }
}

EXPORT(rl_policy_v1) void rl_policy_v1(void) {}
EXPORT(rl_policy_count) uint32_t rl_policy_count(uint32_t of) { return of < RL_POLICY_KINDS ? words()[2 * of + 1] : 0; }
EXPORT(rl_policy_obs) float *rl_policy_obs(void) { return floats(words()[2 * RL_POLICY_OBS]); }
EXPORT(rl_policy_mask) uint8_t *rl_policy_mask(void) { return (uint8_t *)floats(words()[2 * RL_POLICY_MASK]); }
EXPORT(rl_policy_params) const float *rl_policy_params(void) { return floats(words()[2 * RL_POLICY_PARAMS]); }
EXPORT(rl_policy_state) float *rl_policy_state(void) { return floats(words()[2 * RL_POLICY_STATE]); }

EXPORT(rl_policy_act) const float *rl_policy_act(void) {
    run(words()[ACTING]);
    return floats(words()[2 * RL_POLICY_ACTIONS]);
}

EXPORT(rl_policy_value) float rl_policy_value(void) {
    if (words()[VALUE] == 0) return __builtin_nanf("");
    run(words()[VALUING]);
    return *floats(words()[VALUE]);
}

EXPORT(rl_policy_reset) void rl_policy_reset(void) { __builtin_memset(rl_policy_state(), 0, 4 * rl_policy_count(RL_POLICY_STATE)); }
