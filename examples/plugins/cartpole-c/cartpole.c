// CartPole-v1 with Gymnasium's equations, vectorised.
//
// State is float32, kept in groups of eight environments as structures of arrays, so that one environment is one
// lane of a vector. Each operation is written once, for float and for a vector of four; all are single IEEE
// operations in one order, which the Go and Rust versions share: the same seeds give the same bits everywhere.
//
//	max_steps  truncate an episode after so many steps (500)
//
// A saved environment is x, x_dot, theta, theta_dot (f32), steps, flags (u32), random stream (u64): 32 bytes.
#include "rl_env.h"

typedef float float4 __attribute__((vector_size(16)));
typedef int32_t int4 __attribute__((vector_size(16)));
typedef uint32_t uint4 __attribute__((vector_size(16)));
typedef int16_t short8 __attribute__((vector_size(16)));
typedef signed char byte16 __attribute__((vector_size(16)));
typedef int64_t long2 __attribute__((vector_size(16)));

#define LANES 8u
#define WIDTH 4u

// Group is the state of eight environments, two vectors of each element. steps counts steps of the current episode.
typedef struct Group {
    float x[LANES], x_dot[LANES], theta[LANES], theta_dot[LANES];
    uint32_t steps[LANES];
} Group;

typedef struct Cartpoles {
    uint32_t max_steps, groups;
    Group *group;
} Cartpoles;

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and
// lengths occur folded into these, each rounded once.
#define GRAVITY 9.8f
#define LEFT_BITS 0xc111745du          // -10 / 1.1, force over total mass; action 1 turns the sign
#define POLE_RATIO 0.045454547f       // pole mass times half length over total mass: 0.05 / 1.1
#define LENGTH_FULL 0.6666667f         // half length times 4/3
#define TAU 0.02f
#define X_LIMIT 2.4f
#define X_LIMIT_BITS 0x4019999au
#define THETA_LIMIT 0.20943951f        // 12 degrees
#define THETA_LIMIT_BITS 0x3e567750u
#define ABS_BITS 0x7fffffffu

// Polynomials of sine and cosine; within one unit of the last place of a float for |x| < 0.45. The pole falls at 0.21.
#define SIN(x, x2) ((x) * (1.0f + (x2) * (-1.0f / 6 + (x2) * (1.0f / 120 + (x2) * (-1.0f / 5040)))))
#define COS(x2) (1.0f + (x2) * (-0.5f + (x2) * (1.0f / 24 + (x2) * (-1.0f / 720))))

// ACCELERATE computes both accelerations from angle, angular speed and force over mass; T is float or float4.
#define ACCELERATE(T, theta, theta_dot, force, x_acc, theta_acc)                                               \
    T square = (theta) * (theta);                                                                              \
    T sine = SIN(theta, square), cosine = COS(square);                                                         \
    T push = (force) + POLE_RATIO * ((theta_dot) * (theta_dot)) * sine;                                        \
    T theta_acc = (GRAVITY * sine - cosine * push) / (LENGTH_FULL - POLE_RATIO * (cosine * cosine));           \
    T x_acc = push - POLE_RATIO * (theta_acc * cosine)

RL_INLINE float as_float(uint32_t bits)
{
    float f;
    __builtin_memcpy(&f, &bits, sizeof f);
    return f;
}

RL_INLINE uint32_t as_bits(float f)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &f, sizeof bits);
    return bits;
}

// step_lane advances one environment of a group. Bit 0 of the result is terminated, bit 1 truncated. Limits are
// compared by the sign of a difference of bit patterns: no branch, and a state that is not a number also ends
// its episode.
RL_INLINE uint32_t step_lane(Group *g, uint32_t lane, uint32_t action, uint32_t max_steps)
{
    uint32_t steps = g->steps[lane] + 1;
    float theta = g->theta[lane], theta_dot = g->theta_dot[lane], x = g->x[lane], x_dot = g->x_dot[lane];
    float force = as_float(action << 31 ^ LEFT_BITS);
    ACCELERATE(float, theta, theta_dot, force, x_acc, theta_acc);
    x = x + TAU * x_dot;
    theta = theta + TAU * theta_dot;
    g->steps[lane] = steps;
    g->theta_dot[lane] = theta_dot + TAU * theta_acc;
    g->theta[lane] = theta;
    g->x_dot[lane] = x_dot + TAU * x_acc;
    g->x[lane] = x;
    uint32_t far = as_bits(x) & ABS_BITS, tilt = as_bits(theta) & ABS_BITS;
    uint32_t fell = ((X_LIMIT_BITS - far) | (THETA_LIMIT_BITS - tilt)) >> 31, late = (max_steps - 1 - steps) >> 31;
    return fell | late << 1;
}

RL_INLINE void write_lane(const Group *g, uint32_t lane, uint32_t ended, const rl_view *v, uint32_t i)
{
    uint8_t *obs = rl_row(&v->obs, i);
    uint32_t elem = v->obs.elem;
    *(float *)(void *)(obs + 3 * elem) = g->theta_dot[lane];
    *(float *)(void *)(obs + 2 * elem) = g->theta[lane];
    *(float *)(void *)(obs + elem) = g->x_dot[lane];
    *(float *)(void *)obs = g->x[lane];
    *(float *)(void *)rl_row(&v->reward, i) = 1.0f;
    *rl_row(&v->terminated, i) = ended & 1;
    *rl_row(&v->truncated, i) = ended >> 1;
}

RL_INLINE void step_one(Cartpoles *c, const rl_view *v, uint32_t i)
{
    Group *g = &c->group[i / LANES];
    uint32_t action = *(const uint32_t *)(const void *)rl_row(&v->action, i);
    rl_current = i;
    uint32_t ended = step_lane(g, i % LANES, action, c->max_steps);
    write_lane(g, i % LANES, ended, v, i);
}

// Layouts with a path of their own: rows of four floats one after the other, and one array for each element.
enum Layout { STRIDED, ROWS, COLUMNS };

#ifdef __wasm_simd128__

RL_INLINE float4 load(const float *from) { return *(const float4 *)(const void *)from; }
RL_INLINE void store(void *to, float4 value) { *(float4 *)to = value; }

RL_INLINE void write_rows(uint8_t *to, float4 x, float4 x_dot, float4 theta, float4 theta_dot)
{
    float4 ab = __builtin_shufflevector(x, x_dot, 0, 4, 1, 5), ab2 = __builtin_shufflevector(x, x_dot, 2, 6, 3, 7);
    float4 cd = __builtin_shufflevector(theta, theta_dot, 0, 4, 1, 5);
    float4 cd2 = __builtin_shufflevector(theta, theta_dot, 2, 6, 3, 7);
    store(to + 48, __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7));
    store(to + 32, __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5));
    store(to + 16, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    store(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
}

// Place is where the rows of a group lie, each pointer opaque so that its offsets stay constant.
typedef struct Place {
    const uint8_t *action;
    uint8_t *rows, *column[4], *reward;
} Place;

// Ended is one mask per lane.
typedef struct Ended {
    int4 terminated, truncated;
} Ended;

// step_half advances one vector of a group, in each lane the operations of step_lane.
RL_INLINE Ended step_half(Group *g, const Place *to, uint32_t half, int32_t max_steps, enum Layout layout)
{
    uint32_t k = half * WIDTH;
    int4 steps = *(int4 *)(void *)&g->steps[k] + 1;
    uint4 action = *(const uint4 *)(const void *)(to->action + 4 * k);
    float4 theta = load(&g->theta[k]), theta_dot = load(&g->theta_dot[k]), x = load(&g->x[k]), x_dot = load(&g->x_dot[k]);
    float4 force = (float4)(action << 31 ^ LEFT_BITS);
    ACCELERATE(float4, theta, theta_dot, force, x_acc, theta_acc);
    x = x + TAU * x_dot;
    theta = theta + TAU * theta_dot;
    x_dot = x_dot + TAU * x_acc;
    theta_dot = theta_dot + TAU * theta_acc;
    *(int4 *)(void *)&g->steps[k] = steps;
    store(&g->theta_dot[k], theta_dot);
    store(&g->theta[k], theta);
    store(&g->x_dot[k], x_dot);
    store(&g->x[k], x);
    if (layout == ROWS) {
        write_rows(to->rows + 16 * k, x, x_dot, theta, theta_dot);
    } else {
        store(to->column[0] + 4 * k, x);
        store(to->column[1] + 4 * k, x_dot);
        store(to->column[2] + 4 * k, theta);
        store(to->column[3] + 4 * k, theta_dot);
    }
    store(to->reward + 4 * k, (float4){1, 1, 1, 1});
    float4 far = (float4)((uint4)x & ABS_BITS), tilt = (float4)((uint4)theta & ABS_BITS);
    return (Ended){~((far <= X_LIMIT) & (tilt <= THETA_LIMIT)), steps >= max_steps};
}

// write_flags stores one byte, 0 or 1, for each lane of two masks.
RL_INLINE void write_flags(uint8_t *to, int4 low, int4 high)
{
    short8 words = __builtin_wasm_narrow_s_i16x8_i32x4(low, high);
    byte16 bytes = __builtin_wasm_narrow_s_i8x16_i16x8(words, words) & 1;
    uint64_t flags = ((long2)bytes)[0];
    __builtin_memcpy(to, &flags, sizeof flags);
}

// step_group advances the eight environments from i on.
RL_INLINE void step_group(Cartpoles *c, const rl_view *v, uint32_t i, enum Layout layout)
{
    Group *g = RL_OPAQUE(&c->group[i / LANES]);
    uint8_t *obs = v->obs.at + 4 * i;
    Place to = {.action = RL_OPAQUE(v->action.at + 4 * i), .reward = RL_OPAQUE(v->reward.at + 4 * i)};
    if (layout == ROWS)
        to.rows = RL_OPAQUE(v->obs.at + 16 * i);
    else
        for (uint32_t k = 0; k < 4; k++) to.column[k] = RL_OPAQUE(obs + k * v->obs.elem);
    Ended high = step_half(g, &to, 1, (int32_t)c->max_steps, layout);
    Ended low = step_half(g, &to, 0, (int32_t)c->max_steps, layout);
    write_flags(v->terminated.at + i, low.terminated, high.terminated);
    write_flags(v->truncated.at + i, low.truncated, high.truncated);
}

#else

// step_group advances the eight environments from i on, one after the other at known offsets.
RL_INLINE void step_group(Cartpoles *c, const rl_view *v, uint32_t i, enum Layout layout)
{
    Group *g = RL_OPAQUE(&c->group[i / LANES]);
    const uint32_t *action = RL_OPAQUE((const uint32_t *)(const void *)(v->action.at + 4 * i));
    float *obs = RL_OPAQUE((float *)(void *)(v->obs.at + 16 * i)), *reward = RL_OPAQUE((float *)(void *)(v->reward.at + 4 * i));
    uint64_t terminated = 0, truncated = 0;
    (void)layout;
#pragma GCC unroll 8
    for (uint32_t lane = LANES; lane-- > 0;) {
        uint32_t ended = step_lane(g, lane, action[lane], c->max_steps);
        obs[4 * lane + 3] = g->theta_dot[lane];
        obs[4 * lane + 2] = g->theta[lane];
        obs[4 * lane + 1] = g->x_dot[lane];
        obs[4 * lane] = g->x[lane];
        reward[lane] = 1.0f;
        terminated = terminated << 8 | (ended & 1);
        truncated = truncated << 8 | ended >> 1;
    }
    __builtin_memcpy(v->terminated.at + i, &terminated, sizeof terminated);
    __builtin_memcpy(v->truncated.at + i, &truncated, sizeof truncated);
}

#endif

static enum Layout layout_of(const rl_view *v)
{
    bool packed = v->action.env == 4 && v->reward.env == 4 && v->terminated.env == 1 && v->truncated.env == 1;
    if (packed && v->obs.env == 16 && v->obs.elem == 4) return ROWS;
#ifdef __wasm_simd128__
    if (packed && v->obs.env == 4) return COLUMNS;
#endif
    return STRIDED;
}

// step_groups takes the groups that lie wholly in first … end and returns the first environment after them.
RL_INLINE uint32_t step_groups(Cartpoles *c, const rl_view *v, uint32_t first, uint32_t end, enum Layout layout)
{
    for (; end - first >= LANES; first += LANES) {
        rl_current = first;
        step_group(c, v, first, layout);
    }
    return first;
}

static void step(void *state, uint32_t first, uint32_t count, const rl_view *view)
{
    Cartpoles *c = state, local = *c;
    rl_view v = *view;
    uint32_t i = first, end = first + count;
    enum Layout layout = layout_of(&v);
    for (; i < end && i % LANES; i++) step_one(&local, &v, i);
    if (layout == ROWS) i = step_groups(&local, &v, i, end, ROWS);
    if (layout == COLUMNS) i = step_groups(&local, &v, i, end, COLUMNS);
    for (; i < end; i++) step_one(&local, &v, i);
}

static void reset(void *state, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row)
{
    Group *g = &((Cartpoles *)state)->group[i / LANES];
    uint32_t lane = i % LANES, elem = obs->elem;
    uint8_t *to = rl_row(obs, i);
    (void)row;
    g->x[lane] = *(float *)(void *)to = rl_uniform(rng, -0.05f, 0.05f);
    g->x_dot[lane] = *(float *)(void *)(to + elem) = rl_uniform(rng, -0.05f, 0.05f);
    g->theta[lane] = *(float *)(void *)(to + 2 * elem) = rl_uniform(rng, -0.05f, 0.05f);
    g->theta_dot[lane] = *(float *)(void *)(to + 3 * elem) = rl_uniform(rng, -0.05f, 0.05f);
    g->steps[lane] = 0;
}

static void *create(uint32_t envs, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 500);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647"), NULL;
    Cartpoles *c = rl_new(1, sizeof *c);
    if (!c) return rl_fail("out of memory"), NULL;
    c->max_steps = (uint32_t)max_steps;
    c->groups = envs / LANES + (envs % LANES != 0);
    c->group = rl_new(c->groups, sizeof *c->group);
    if (c->group) return c;
    rl_put(c, sizeof *c);
    return rl_fail("out of memory"), NULL;
}

static void destroy(void *state, uint32_t envs)
{
    Cartpoles *c = state;
    (void)envs;
    rl_put(c->group, c->groups * (uint32_t)sizeof *c->group);
    rl_put(c, sizeof *c);
}

// Saved are the first 20 bytes of the format above; the SDK adds flags and random stream.
static void save(void *state, uint32_t i, uint8_t *to)
{
    const Group *g = &((Cartpoles *)state)->group[i / LANES];
    uint32_t lane = i % LANES;
    float values[] = {g->x[lane], g->x_dot[lane], g->theta[lane], g->theta_dot[lane]};
    __builtin_memcpy(to, values, sizeof values);
    __builtin_memcpy(to + sizeof values, &g->steps[lane], sizeof g->steps[lane]);
}

static bool load_env(void *state, uint32_t i, const uint8_t *from)
{
    Group *g = &((Cartpoles *)state)->group[i / LANES];
    uint32_t lane = i % LANES;
    float values[4];
    __builtin_memcpy(values, from, sizeof values);
    __builtin_memcpy(&g->steps[lane], from + sizeof values, sizeof g->steps[lane]);
    g->x[lane] = values[0];
    g->x_dot[lane] = values[1];
    g->theta[lane] = values[2];
    g->theta_dot[lane] = values[3];
    return true;
}

// The picture is Gymnasium's, at two fifths of its size, and the text is 60 columns wide; both show the track from -2.4 to 2.4.
#define PICTURE_WIDTH 240
#define PICTURE_HEIGHT 160
#define TEXT_COLUMNS 60u
#define TEXT_ROWS 13u

static void draw(void *state, uint32_t i, rl_picture *p)
{
    const Group *g = &((const Cartpoles *)state)->group[i / LANES];
    uint32_t lane = i % LANES;
    float theta = g->theta[lane], square = theta * theta, x = PICTURE_WIDTH / 2.0f + g->x[lane] * (PICTURE_WIDTH / (2 * X_LIMIT));
    rl_point axle = {x, 116}, tip = {x + 50 * SIN(theta, square), 116 - 50 * COS(square)};
    rl_draw_rect(p, 0, 0, PICTURE_WIDTH, PICTURE_HEIGHT, 0xffffff);
    rl_draw_rect(p, 0, 120, PICTURE_WIDTH, 1, 0x000000);
    rl_draw_rect(p, x - 10, 114, 20, 12, 0x000000);
    rl_draw_line(p, axle, tip, 4, 0xca9865);
    rl_draw_disc(p, axle.x, axle.y, 2, 0x8184cb);
}

static uint32_t render(void *state, uint32_t i, uint32_t mode, char *to, uint32_t cap)
{
    const Group *g = &((const Cartpoles *)state)->group[i / LANES];
    uint32_t lane = i % LANES;
    float theta = g->theta[lane], square = theta * theta, x = TEXT_COLUMNS / 2.0f + g->x[lane] * (TEXT_COLUMNS / (2 * X_LIMIT));
    char cells[TEXT_ROWS * TEXT_COLUMNS];
    (void)mode;
    __builtin_memset(cells, ' ', sizeof cells);
    __builtin_memset(cells + (TEXT_ROWS - 1) * TEXT_COLUMNS, '-', TEXT_COLUMNS);
    for (uint32_t row = 0; row + 2 < TEXT_ROWS; row++) { // a row is as high as two columns are wide
        float up = 2.0f * (float)(TEXT_ROWS - 2 - row);
        cells[row * TEXT_COLUMNS + (uint32_t)rl_draw_pixel(x - 0.5f + up * SIN(theta, square), TEXT_COLUMNS - 1)] = '|';
    }
    for (int32_t k = -3; k < 3; k++)
        cells[(TEXT_ROWS - 2) * TEXT_COLUMNS + (uint32_t)rl_draw_pixel(x - 0.5f + (float)k, TEXT_COLUMNS - 1)] = '#';
    return rl_put_board(cells, TEXT_ROWS, TEXT_COLUMNS, to, cap);
}

static const rl_argument arguments[] = {{"max_steps", "steps after which an episode is truncated", RL_ARG_INTEGER, "500", 1, INT32_MAX, 0, 0}};

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 500);
    return true;
}

#ifdef __wasm_simd128__
#define CAPS RL_CAP_PREFER_SOA
#else
#define CAPS 0
#endif

#ifndef PARTS // a file that includes this one makes an environment of its own of its parts
RL_VECTOR_ENV(.name = "cartpole@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 0, 4), .episode_limit = 500, RL_ARGUMENTS(arguments),
              .caps = CAPS, .picture_width = PICTURE_WIDTH, .picture_height = PICTURE_HEIGHT, .picture_fps = 50, .render = render, .draw = draw,
              .describe = describe, .create = create, .destroy = destroy, .reset = reset, .step = step,
              .save_bytes = 20, .save = save, .load = load_env)
#endif
