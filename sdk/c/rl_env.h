// Hand-written. Environments in C: a struct for one environment, three functions, one line RL_ENV.
//
//	#include "rl_env.h"
//
//	typedef struct { int32_t position; } Walk;                            // the state of one environment
//
//	static bool setup(Walk *env, rl_config *config);                      // once; read arguments
//	static void reset(Walk *env, rl_rng *rng, float *obs);                // write the first observation
//	static void step(Walk *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out);
//
//	RL_ENV(Walk, setup, reset, step, .name = "walk@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1))
//
//	clang --target=wasm32 -O3 -msimd128 -mbulk-memory -nostdlib -Wl,--no-entry,--stack-first -I sdk/c walk.c -o walk.wasm
//	cc -g -fsanitize=address,undefined -I sdk/c walk.c -o walk && ./walk          # the same, natively
//
// The header makes every export of env ABI v1 out of that: batches, strides, the three autoreset modes, random
// streams, final observations, save and load. One environment per file, in C11 or C++20; no C library is needed,
// and one may be there: with a target like wasm32-wasi the SDK's memory comes from its malloc.
//
// An environment with several observations, a Dict, lists them once: field, path, type of an element, space. RL_DICT makes a struct
// of pointers to their rows, and the array for RL_OBSERVATIONS:
//
//	#define SEEN(X) X(map, "map", uint8_t, RL_BOX(RL_U8, 0, 3, 9, 9)) X(gold, "inventory/gold", int32_t, RL_DISCRETE(100))
//	RL_DICT(Seen, seen, SEEN)
//
//	static void step(Walk *env, rl_rng *rng, const int32_t *action, const Seen *obs, rl_result *out)
//	{
//	    obs->map[env->position] = 1;
//	    *obs->gold = 7;
//
//	RL_ENV(Walk, setup, reset, step, .name = "walk@1", .action = RL_DISCRETE(2), RL_OBSERVATIONS(seen))
//
// One with several actions, a Tuple or Dict of them, does it alike:
//
//	#define ACTS(X) X(gear, "gear", const int32_t, RL_DISCRETE_FROM(-1, 3)) X(wheel, "wheel", const float, RL_BOX(RL_F32, -1, 1, 1))
//	RL_DICT(Acts, acts, ACTS)
//
//	static void step(Walk *env, rl_rng *rng, const Acts *action, float *obs, rl_result *out)
//	{
//	    if (*action->gear < 0) env->position -= (int32_t)*action->wheel;
//
//	RL_ENV(Walk, setup, reset, step, .name = "walk@1", RL_ACTIONS(acts), .obs = RL_BOX(RL_F32, 0, 1, 1))
//
// Without RL_DICT they are arrays of pointers in that order: void *const *obs, const void *const *action.
//
// Several agents with the same spaces, .agents = 4, are rows one behind the other: action and obs have [agents] rows each, and out
// points to so many results. By itself the episode of all ends with out[0]; see also .apart, .respawn and .active.
#ifndef RL_ENV_H
#define RL_ENV_H

#include "rl_author.h"
#include "rl_draw.h"

// rl_result is what a step says besides its observation; it starts as zero. If terminated and truncated are
// both set, terminated wins.
typedef struct rl_result {
    float reward;
    bool terminated, truncated;
    float discount; // of what follows, 0 to 1, where the environment has one: it is written in every step
    float *figures; // those of RL_FIGURES, in their order; they start as zero
} rl_result;

// rl_tensor is one tensor at one time: the row of agent k of environment i begins at at + i*env + k*agent, its elements lie elem
// apart.
typedef struct rl_tensor {
    uint8_t *at;
    uint32_t env, elem, elems, bytes, agent;
} rl_tensor;

// rl_view is what a vectorised step reads (action) and writes (the rest).
typedef struct rl_view {
    rl_tensor action, obs, reward, terminated, truncated;
    rl_rng *rng;      // one stream per environment
    void *row, *move; // room for one packed observation and one packed action, of all agents
    // Of an environment with several observations: all of them, of which obs is the first, and room for a packed one of each.
    const rl_tensor *observations;
    void *const *rows;
    // The same of an environment with several actions.
    const rl_tensor *actions;
    void *const *moves;
    rl_tensor discount;       // if the environment has one
    const rl_tensor *figures; // at is NULL for one that the host does not want
    float *told;              // room for the figures of one environment
    rl_result *results;       // room for those of all agents
} rl_view;

// RL_MAX_AGENTS is how many agents an environment can have.
#define RL_MAX_AGENTS 4096

// RL_MAX_OBSERVATIONS is how many observations an environment can have.
#define RL_MAX_OBSERVATIONS 16

// RL_MAX_ACTIONS is how many actions an environment can have.
#define RL_MAX_ACTIONS 16

// RL_MAX_FIGURES is how many figures an environment can have.
#define RL_MAX_FIGURES 16

// RL_ARGUMENTS(list) gives an array of rl_argument. Where there is one the host refuses others, and values that they do not take.
#define RL_ARGUMENTS(list) .arguments = (list), .argument_count = sizeof(list) / sizeof((list)[0])

// RL_FIGURES(list) gives an array of rl_figure. A host that gathers none leaves them alone.
#define RL_FIGURES(list) .figures = (list), .figure_count = sizeof(list) / sizeof((list)[0])

// RL_RESET_INFOS(list) gives an array of names: numbers of an episode that begins, which reset tells by rl_reset_info.
#define RL_RESET_INFOS(list) .reset_infos = (list), .reset_info_count = sizeof(list) / sizeof((list)[0])

// RL_OBSERVATIONS(list) gives an array of rl_named as the observations, in the place of .obs.
#define RL_OBSERVATIONS(list) .observations = (list), .observation_count = sizeof(list) / sizeof((list)[0])

// RL_ACTIONS(list) gives an array of rl_named as the actions, in the place of .action.
#define RL_ACTIONS(list) .actions = (list), .action_count = sizeof(list) / sizeof((list)[0])

// RL_DICT(Type, list, FIELDS) makes of a list of fields, see the top, a struct of pointers and an array of rl_named.
#define RL_DICT(Type, list, FIELDS)                                                                            \
    typedef struct __attribute__((may_alias)) { FIELDS(RL_DICT_POINTER) } Type;                                \
    RL_PARTLY static const rl_named list[] = {FIELDS(RL_DICT_NAMED)}; RL_WHOLLY
#define RL_DICT_POINTER(field, path, type, ...) type *field;
#define RL_DICT_NAMED(field, path, type, ...) {path, __VA_ARGS__},

// rl_env is everything the SDK knows about the environment. RL_ENV fills in what it makes itself. An author
// of a vectorised environment uses RL_VECTOR_ENV and gives all of it.
typedef struct rl_env {
    const char *name; // name@version
    rl_space action, obs;
    const rl_named *observations; // in the place of obs, see RL_OBSERVATIONS
    uint32_t observation_count;
    const rl_named *actions; // in the place of action, see RL_ACTIONS
    uint32_t action_count;
    const rl_figure *figures; // see RL_FIGURES
    uint32_t figure_count;
    const rl_argument *arguments; // see RL_ARGUMENTS
    uint32_t argument_count;
    bool discount;          // the environment's own discount takes the place of the learner's gamma
    uint32_t episode_limit; // steps after which the environment itself truncates, 0 = none
    uint32_t max_envs;      // most environments in one batch, 0 = no limit
    uint32_t caps;          // RL_CAP_PREFER_SOA, if that is faster
    uint32_t state_version; // of what save writes: raise it when that changes
    uint32_t agents;        // of an environment, 0 = 1. Figures are the environment's, those of out[0]; there is no discount
    // apart: each agent's episode ends by the flags of its own result. It acts no more then, until the environment begins anew,
    // which it does when all have ended.
    bool apart;
    // respawn: each agent's episode ends by the flags of its own result, and the next begins at once. The step puts the agent back into
    // the world and writes the first observation of its new life; the last one of the old it gives to rl_last before. Where it sets the
    // flags of all agents and calls rl_last for none, the environment's own episode is over, and reset is called.
    bool respawn;
    const char *agent_names; // (optional) a name for each agent, one a line
    float dt;                // seconds of simulated time in a step, 0 = not said
    const char *const *reset_infos; // see RL_RESET_INFOS
    uint32_t reset_info_count;
    rl_space params; // (optional) numbers of type RL_F32 that the host writes before an episode begins; see rl_param
    uint32_t picture_width, picture_height; // of what draw paints
    float picture_fps;                      // pictures a second at normal speed, 0 = not said
    const char *keys; // (optional) actions of the keys of a person who plays, one a line: "left=0\nright=1\nnone=1"

    // describe (optional) changes spaces and limits in a copy of this struct, where they depend on arguments; not how many
    // observations, actions and figures there are, nor which of several actions are discrete.
    bool (*describe)(rl_config *config, struct rl_env *env);
    // mask (optional; there is a mask tensor if it is given, of several actions one for each that is discrete) writes 1 for each
    // legal action and 0 for the others, the values of the first discrete action first. It is not called behind the end of an
    // episode.
    void (*mask)(void *state, uint32_t i, uint8_t *legal);
    // active (optional) writes 1 for each agent that acts in the next step and 0 for the others, whose actions are not read. What
    // such an agent gets meanwhile counts with its last action.
    void (*active)(void *state, uint32_t i, uint8_t *acts);
    // render (optional) writes text for mode 0 and returns the length needed.
    uint32_t (*render)(void *state, uint32_t i, uint32_t mode, char *to, uint32_t cap);
    // draw (optional) paints a picture, which is black at first; see rl_draw.h. Neither changes any state.
    void (*draw)(void *state, uint32_t i, rl_picture *picture);
    // save_bytes, save, load (optional): the state of environment i without its random stream. Where they are not given, RL_ENV saves
    // the bytes of the struct. A state with pointers needs its own ones, or .save = RL_NOT_SAVED.
    uint32_t save_bytes;
    void (*save)(void *state, uint32_t i, uint8_t *to);
    bool (*load)(void *state, uint32_t i, const uint8_t *from);
    // save_length and load_length (optional): in the place of save_bytes and load, for a state of varying length.
    uint32_t (*save_length)(void *state, uint32_t i);
    bool (*load_length)(void *state, uint32_t i, const uint8_t *from, uint32_t len);
    // create returns the state of a batch of environments, or NULL after rl_fail.
    void *(*create)(uint32_t envs, rl_config *config);
    void (*destroy)(void *state, uint32_t envs);
    // reset starts an episode of environment i and writes its first observation into its row of obs. row
    // is room for a packed one. Of several observations obs is the array and row an array of rooms.
    void (*reset)(void *state, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row);
    // step advances environments first … first+count-1, none of which waits for a reset, and writes all that
    // view names. The SDK then does the autoreset.
    void (*step)(void *state, uint32_t first, uint32_t count, const rl_view *view);
    uint32_t struct_bytes; // RL_ENV's: of the author's struct, of which state is an array
} rl_env;

// rl_not_saved is never called: as .save it says that states are not saved. Snapshots of whole instances still work.
RL_QUIET static void rl_not_saved(void *state, uint32_t i, uint8_t *to) { (void)state, (void)i, (void)to; }
#define RL_NOT_SAVED rl_not_saved

static uint32_t rl_current;                   // index of the environment being stepped
static const rl_tensor *rl_params RL_QUIET; // reset parameters of all environments; NULL or without memory where the host has none

// The author's file ends with the definition. That of rl_guest.c is filled in by rl_fill_in whenever it is described.
#ifdef RL_FILLED_IN
static rl_env rl_the_env;
static bool rl_fill_in(rl_config *config);
#elif defined(__cplusplus)
namespace { extern const rl_env rl_the_env; }
#else
static const rl_env rl_the_env;
#endif

typedef void rl_step_one(void *state, uint32_t i, rl_rng *rng, const void *action, void *obs, rl_result *out);
typedef void rl_reset_one(void *state, uint32_t i, rl_rng *rng, void *obs);

RL_INLINE uint8_t *rl_row(const rl_tensor *t, uint32_t i) { return t->at + (size_t)i * t->env; }

// rl_param_or returns, to reset, reset parameter k of the environment whose episode begins, or fallback where nobody gives one.
RL_QUIET static float rl_param_or(uint32_t k, float fallback)
{
    if (!rl_params || !rl_params->at || k >= rl_params->elems) return fallback;
    float x = *(const float *)(const void *)(rl_row(rl_params, rl_current) + (size_t)k * rl_params->elem);
    return x == x ? x : fallback;
}

// rl_param is rl_param_or with 0.
RL_QUIET static float rl_param(uint32_t k) { return rl_param_or(k, 0); }

// rl_last, called in a step with .respawn, takes what obs shows of an agent as its last observation. obs is what the step writes to: the rows
// of all agents, or the array of those of several observations.
RL_QUIET static void rl_last(uint32_t agent, const void *obs);

// rl_reset_info, called in reset, tells number k of RL_RESET_INFOS of the episode that begins; one that is not told is 0.
RL_QUIET static void rl_reset_info(uint32_t k, float value);

// rl_last_of is rl_last for environment i of a vectorised one.
RL_QUIET static void rl_last_of(uint32_t i, uint32_t agent, const void *obs)
{
    rl_current = i;
    rl_last(agent, obs);
}

// rl_agents is how many agents an environment has.
RL_INLINE uint32_t rl_agents(void) { return rl_the_env.agents ? rl_the_env.agents : 1; }

// rl_end_apart says whether agents have flags of their own.
RL_INLINE bool rl_end_apart(void) { return rl_the_env.apart || rl_the_env.respawn; }

// rl_in_place says whether an author may be given a row as it lies. Natively he gets a heap block of the exact
// size instead, so that a sanitizer sees an overrun.
RL_INLINE bool rl_in_place(const rl_tensor *t)
{
#ifdef __wasm__
    return (t->elems == 1 || t->elem == t->bytes) && (rl_agents() == 1 || t->agent == t->elems * t->bytes);
#else
    (void)t;
    return false;
#endif
}

// rl_copy copies n elements of known size between strides; a copy of unknown size costs a call in most engines.
RL_INLINE void rl_copy(uint8_t *to, uint32_t to_elem, const uint8_t *from, uint32_t from_elem, uint32_t n, uint32_t bytes)
{
    for (; n; n--, to += to_elem, from += from_elem) __builtin_memcpy(to, from, bytes);
}

// rl_copy_row copies one row; its size counts as known where it is usual.
RL_INLINE void rl_copy_row(uint8_t *to, uint32_t to_elem, const uint8_t *from, uint32_t from_elem, uint32_t n, uint32_t bytes)
{
    if (to_elem == bytes && from_elem == bytes) { // one piece: take it in words
        n *= bytes;
        if (n >= 128) {
            __builtin_memcpy(to, from, n);
            return;
        }
        for (; n >= 16; n -= 16, to += 16, from += 16) __builtin_memcpy(to, from, 16);
        if (n) rl_copy(to, 1, from, 1, n, 1);
    } else if (bytes == 4) {
        for (; n >= 4; n -= 4, to += 4 * to_elem, from += 4 * from_elem) {
            __builtin_memcpy(to, from, 4);
            __builtin_memcpy(to + to_elem, from + from_elem, 4);
            __builtin_memcpy(to + 2 * to_elem, from + 2 * from_elem, 4);
            __builtin_memcpy(to + 3 * to_elem, from + 3 * from_elem, 4);
        }
        if (n) rl_copy(to, to_elem, from, from_elem, n, 4);
    } else if (bytes == 1) {
        rl_copy(to, to_elem, from, from_elem, n, 1);
    } else if (bytes == 2) {
        rl_copy(to, to_elem, from, from_elem, n, 2);
    } else {
        rl_copy(to, to_elem, from, from_elem, n, 8);
    }
}

// rl_spread_each copies packed rows, which begin so many bytes apart, to where the host wants the elements of environment i's agents.
RL_INLINE void rl_spread_each(const rl_tensor *t, uint32_t i, const void *packed, uint32_t apart)
{
    for (uint32_t k = 0; k < rl_agents(); k++)
        rl_copy_row(rl_row(t, i) + (size_t)k * t->agent, t->elem, (const uint8_t *)packed + (size_t)k * apart, t->bytes, t->elems, t->bytes);
}

// rl_spread does so with rows that lie one behind the other.
RL_QUIET static void rl_spread(const rl_tensor *t, uint32_t i, const void *packed) { rl_spread_each(t, i, packed, t->elems * t->bytes); }

// rl_collect copies the elements of environment i's agents to packed rows.
RL_QUIET static void rl_collect(const rl_tensor *t, uint32_t i, void *packed)
{
    for (uint32_t k = 0; k < rl_agents(); k++)
        rl_copy_row((uint8_t *)packed + (size_t)k * t->elems * t->bytes, t->bytes, rl_row(t, i) + (size_t)k * t->agent, t->elem,
                    t->elems, t->bytes);
}

RL_INLINE void rl_write(const rl_view *v, uint32_t i, const rl_result *out)
{
    for (uint32_t k = 0; k < rl_agents(); k++) *(float *)(void *)(rl_row(&v->reward, i) + (size_t)k * v->reward.agent) = out[k].reward;
    for (uint32_t k = 0; k < (rl_end_apart() ? rl_agents() : 1); k++) {
        rl_row(&v->terminated, i)[(size_t)k * v->terminated.agent] = out[k].terminated;
        rl_row(&v->truncated, i)[(size_t)k * v->truncated.agent] = out[k].truncated;
    }
    if (rl_the_env.discount) *(float *)(void *)rl_row(&v->discount, i) = out->discount;
    for (uint32_t k = 0; k < rl_the_env.figure_count; k++)
        if (v->figures[k].at) *(float *)(void *)rl_row(&v->figures[k], i) = out->figures[k];
}

// rl_fresh returns the result that a step begins with; of several agents it makes all.
RL_INLINE rl_result rl_fresh(const rl_view *v)
{
    rl_result out = {0, false, false, 0, v->told};
    for (uint32_t k = 0; k < rl_the_env.figure_count; k++) out.figures[k] = 0;
    for (uint32_t k = 0; rl_agents() > 1 && k < rl_agents(); k++) v->results[k] = out;
    return out;
}

// rl_open finds where the observations of environment i are written: in place, or in their rooms.
RL_INLINE void rl_open(const rl_tensor *all, uint32_t i, void *const *rooms, void **rows)
{
    for (uint32_t j = 0; j < rl_the_env.observation_count; j++) rows[j] = rl_in_place(&all[j]) ? rl_row(&all[j], i) : rooms[j];
}

// rl_shut copies those of the rooms to where they belong.
RL_INLINE void rl_shut(const rl_tensor *all, uint32_t i, void *const *rooms)
{
    for (uint32_t j = 0; j < rl_the_env.observation_count; j++)
        if (!rl_in_place(&all[j])) rl_spread(&all[j], i, rooms[j]);
}

// rl_receive finds the actions of environment i: in place, or collected in their rooms.
RL_INLINE void rl_receive(const rl_tensor *all, uint32_t i, void *const *rooms, const void **moves)
{
    for (uint32_t j = 0; j < rl_the_env.action_count; j++) {
        moves[j] = rl_in_place(&all[j]) ? rl_row(&all[j], i) : (uint8_t *)rooms[j];
        if (!rl_in_place(&all[j])) rl_collect(&all[j], i, rooms[j]);
    }
}

// rl_first starts an episode of one environment.
RL_INLINE void rl_first(void *state, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row, rl_reset_one *reset)
{
    if (rl_the_env.observations) {
        void *rows[RL_MAX_OBSERVATIONS];
        rl_open(obs, i, (void *const *)row, rows);
        reset(state, i, rng, rows);
        rl_shut(obs, i, (void *const *)row);
    } else if (rl_in_place(obs)) {
        reset(state, i, rng, rl_row(obs, i));
    } else {
        reset(state, i, rng, row);
        rl_spread(obs, i, row);
    }
}

// rl_size is how many bytes a row has, which is known while the module is compiled unless describe changes it.
RL_INLINE uint32_t rl_size(const rl_space *s) { return rl_elements(s) * rl_dtype_bytes(s->dtype); }

// rl_is_packed says whether environments have one row of each tensor, of those sizes, one behind the other.
RL_INLINE bool rl_is_packed(const rl_view *v)
{
    const rl_env *e = &rl_the_env;
    if (rl_agents() > 1 || e->apart || e->active || e->observations || e->actions || e->discount || e->figure_count) return false;
    return rl_in_place(&v->obs) && rl_in_place(&v->action) && v->obs.env == rl_size(&e->obs) && v->action.env == rl_size(&e->action) &&
           v->reward.env == 4 && v->terminated.env == 1 && v->truncated.env == 1;
}

// Environments and rows of at most RL_SMALL bytes are stepped in groups, at known offsets: an engine checks the highest address of each
// tensor and not all. Where a step writes more, that counts for little and its code should not be there eight times.
#define RL_SMALL 64u
#define RL_GROUP 8u

RL_INLINE bool rl_is_small(void)
{
    return rl_the_env.struct_bytes && rl_the_env.struct_bytes <= RL_SMALL && rl_size(&rl_the_env.obs) <= RL_SMALL;
}

// rl_each_of_group steps the environments from i on, the last one first.
RL_INLINE void rl_each_of_group(void *state, uint32_t i, const rl_view *v, rl_step_one *step)
{
    const uint32_t action_bytes = rl_size(&rl_the_env.action), obs_bytes = rl_size(&rl_the_env.obs);
    uint8_t *own = RL_OPAQUE((uint8_t *)state + (size_t)i * rl_the_env.struct_bytes);
    const uint8_t *action = RL_OPAQUE(v->action.at + (size_t)i * action_bytes);
    uint8_t *obs = RL_OPAQUE(v->obs.at + (size_t)i * obs_bytes);
    uint8_t *terminated = RL_OPAQUE(v->terminated.at + i), *truncated = RL_OPAQUE(v->truncated.at + i);
    float *reward = RL_OPAQUE((float *)(void *)v->reward.at + i);
#pragma GCC unroll 8
    for (uint32_t k = RL_GROUP; k-- > 0;) {
        rl_result out = {0, false, false, 0, v->told};
        rl_current = i + k;
        step(own, k, &v->rng[i + k], action + k * action_bytes, obs + k * obs_bytes, &out);
        reward[k] = out.reward;
        terminated[k] = out.terminated;
        truncated[k] = out.truncated;
    }
}

// rl_each steps one environment after the other. Inlined with a known step and known strides it is as good as
// a loop written by hand.
RL_INLINE void rl_each(void *state, uint32_t first, uint32_t count, const rl_view *view, rl_step_one *step)
{
    rl_view v = *view;
    if (rl_is_small() && rl_is_packed(view))
        for (; count >= RL_GROUP; first += RL_GROUP, count -= RL_GROUP) rl_each_of_group(state, first, &v, step);
    bool several = rl_the_env.observations != NULL, acts = rl_the_env.actions != NULL;
    bool direct = !several && !acts && rl_in_place(&v.obs) && rl_in_place(&v.action);
    const void *moves[RL_MAX_ACTIONS], *move = acts ? (const void *)moves : v.move;
    for (uint32_t i = first; i < first + count; i++) {
        rl_result one = rl_fresh(&v), *out = rl_agents() > 1 ? v.results : &one;
        rl_current = i;
        if (direct) {
            step(state, i, &v.rng[i], rl_row(&v.action, i), rl_row(&v.obs, i), out);
        } else {
            if (acts) rl_receive(v.actions, i, v.moves, moves);
            else rl_collect(&v.action, i, v.move);
            if (several) {
                void *rows[RL_MAX_OBSERVATIONS];
                rl_open(v.observations, i, v.rows, rows);
                step(state, i, &v.rng[i], move, rows, out);
                rl_shut(v.observations, i, v.rows);
            } else {
                step(state, i, &v.rng[i], move, v.row, out);
                rl_spread(&v.obs, i, v.row);
            }
        }
        rl_write(&v, i, out);
    }
}

#ifdef __cplusplus
// rl_any is a pointer that becomes what the author's function takes, as void * does in C.
struct rl_any {
    const void *at;
    template <typename T> operator T *() const { return (T *)at; }
};
#define RL_ANY(pointer) (rl_any{pointer})
// An environment in C++ is saved as its bytes, as one in C is, but begins with what its constructor gives it.
#define RL_PLAIN(Type) static_assert(__is_trivially_copyable(Type), "an environment holds plain data: it is saved as its bytes");
#define RL_FRESH(Type, env) (*(env) = Type())
#else
#define RL_ANY(pointer) (pointer)
#define RL_PLAIN(Type)
#define RL_FRESH(Type, env) ((void)0)
#endif

// RL_ENV makes the environment out of the author's struct and functions; fields of rl_env follow. Where such a
// field is a function (mask, render), its state is the array of the author's structs: (const Walk *)state + i.
#define RL_ENV(Type, setup_, reset_, step_, ...)                                                               \
    RL_PLAIN(Type)                                                                                             \
    static void *rl_made_create(uint32_t envs, rl_config *config)                                              \
    {                                                                                                          \
        Type *all = (Type *)rl_new(envs, sizeof(Type));                                                        \
        if (!all) rl_fail("out of memory");                                                                    \
        for (uint32_t i = 0; all && i < envs; i++) {                                                           \
            RL_FRESH(Type, &all[i]);                                                                           \
            if (!setup_(&all[i], config)) return rl_put(all, envs * (uint32_t)sizeof(Type)), (void *)0;        \
        }                                                                                                      \
        return all;                                                                                            \
    }                                                                                                          \
    static void rl_made_destroy(void *all, uint32_t envs) { rl_put(all, envs * (uint32_t)sizeof(Type)); }      \
    RL_INLINE void rl_made_first(void *all, uint32_t i, rl_rng *rng, void *obs)                                \
    {                                                                                                          \
        reset_((Type *)all + i, rng, RL_ANY(obs));                                                             \
    }                                                                                                          \
    static void rl_made_reset(void *all, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row)             \
    {                                                                                                          \
        rl_first(all, i, rng, obs, row, rl_made_first);                                                        \
    }                                                                                                          \
    RL_INLINE void rl_made_one(void *all, uint32_t i, rl_rng *rng, const void *action, void *obs,              \
                               rl_result *out)                                                                 \
    {                                                                                                          \
        step_((Type *)all + i, rng, RL_ANY(action), RL_ANY(obs), out);                                         \
    }                                                                                                          \
    static void rl_made_step(void *all, uint32_t first, uint32_t count, const rl_view *view)                   \
    {                                                                                                          \
        rl_each(all, first, count, view, rl_made_one);                                                         \
    }                                                                                                          \
    RL_VECTOR_ENV(__VA_ARGS__, .create = rl_made_create, .destroy = rl_made_destroy, .reset = rl_made_reset,   \
                  .step = rl_made_step, .struct_bytes = sizeof(Type))

// RL_VECTOR_ENV makes the environment out of functions that work on a whole batch; see rl_env. C++ wants the
// fields in the order of that struct.
#ifdef __cplusplus
#define RL_VECTOR_ENV(...) RL_PARTLY namespace { const rl_env rl_the_env = {__VA_ARGS__}; } RL_WHOLLY
// Fields that are not named are zero, which some compilers warn of in C++ alone.
#define RL_PARTLY _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")
#define RL_WHOLLY _Pragma("GCC diagnostic pop")
#else
#define RL_PARTLY
#define RL_WHOLLY
#define RL_VECTOR_ENV(...) static const rl_env rl_the_env = {__VA_ARGS__};
#endif

RL_PARTLY
#include "rl_batch.h"
RL_WHOLLY

#endif
