// Hand-written. The exports of env ABI v1, made from the rl_env that the author's file ends with. Included by
// rl_env.h.
#ifndef RL_BATCH_H
#define RL_BATCH_H

#define RL_BATCHES 64
#define RL_FLAG_WAITING 1u // the episode is over and the environment waits for its reset

// Tensors in the order of the description. Behind the mask of the first action, if there is one, lie the discount, if there is one,
// who acts, if that is not always everybody, the figures, the observations after the first, each with its last one, the actions after
// the first, the masks of those, and the reset parameters, if there are any.
enum { RL_T_ACTION, RL_T_OBS, RL_T_REWARD, RL_T_TERMINATED, RL_T_TRUNCATED, RL_T_FINAL, RL_T_MASK };
enum { RL_TENSORS = RL_T_MASK + 4 + 2 * RL_MAX_FIGURES + 2 * (RL_MAX_OBSERVATIONS - 1) + 2 * (RL_MAX_ACTIONS - 1) };

typedef struct rl_batch {
    rl_env env;
    uint32_t envs, autoreset, waiting, tensors;
    bool bound;
#ifdef RL_FILLED_IN
    bool plain; // see rl_is_plain
#endif
    void *state;
    uint32_t *flags;
    rl_rng *rng;
    void *row[RL_MAX_OBSERVATIONS], *move[RL_MAX_ACTIONS];
    uint8_t *legal;   // one mask of all agents
    uint32_t choices; // bytes of it for an agent
    uint8_t *kept;        // of agents that respawn: whose last observation the author has given
    uint8_t *acts, *over; // of agents that do not always act: who does now, and whose episode has ended before its environment's
    rl_result *results;
    rl_binding bind[RL_TENSORS];
    rl_tensor shape[RL_TENSORS]; // elems and bytes of each tensor; at time 0 once bound
    rl_view view;                // tensors at the time of the current step
    rl_tensor obs[RL_MAX_OBSERVATIONS], actions[RL_MAX_ACTIONS], figures[RL_MAX_FIGURES];
    float told[RL_MAX_FIGURES];
} rl_batch;

static rl_batch *rl_batches[RL_BATCHES];

#ifdef RL_FILLED_IN
// Of an environment that is known when a module is compiled, the compiler leaves out what it does not have. Of one that is filled in while
// the module runs, rl_is_plain finds out once that there is little to do, and rl_advance_plain is rl_advance where that is so.
static bool rl_is_plain(const rl_batch *b);
static int32_t rl_advance_plain(rl_batch *b, uint32_t t, uint32_t first, uint32_t count);
#endif

#if defined(__wasm__) && !defined(__wasi__)
// The linker runs constructors before each call of an export, unless the module calls them itself. A C library
// that is built as a reactor does so, too.
#ifdef __cplusplus
extern "C"
#endif
void __wasm_call_ctors(void);
RL_EXPORT(_initialize) void rl_initialize(void) { __wasm_call_ctors(); }
#endif

#include "rl_host_memory.h"

RL_QUIET static rl_batch *rl_find(uint32_t batch) { return batch < RL_BATCHES ? rl_batches[batch] : NULL; }

// ---- description -------------------------------------------------------------------------------------------

// rl_observed is how many observations there are.
RL_INLINE uint32_t rl_observed(void) { return rl_the_env.observations ? rl_the_env.observation_count : 1; }

// rl_acted is how many actions there are.
RL_INLINE uint32_t rl_acted(void) { return rl_the_env.actions ? rl_the_env.action_count : 1; }

// rl_action_space is the space of action j.
RL_INLINE const rl_space *rl_action_space(const rl_env *env, uint32_t j) { return env->actions ? &env->actions[j].space : &env->action; }

// rl_is_masked says whether action j has a mask, which of several those have that are discrete.
RL_INLINE bool rl_is_masked(uint32_t j) { return rl_the_env.mask && (!rl_the_env.actions || rl_discrete(&rl_the_env.actions[j].space)); }

// rl_masked is how many of the actions before action j have a mask.
RL_INLINE uint32_t rl_masked(uint32_t j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j; i++) n += rl_is_masked(i);
    return n;
}

// rl_slot_discount, rl_slot_active, rl_slot_figure, rl_slot_obs, rl_slot_final, rl_slot_action and rl_slot_mask are the tensors of the
// discount, of who acts, of figure k, of observation j and of its last one, of action j and of its mask.
RL_INLINE uint32_t rl_slot_discount(void) { return RL_T_MASK + rl_is_masked(0); }
RL_INLINE bool rl_takes_turns(void) { return rl_the_env.apart || rl_the_env.active; }
RL_INLINE uint32_t rl_slot_active(void) { return rl_slot_discount() + rl_the_env.discount; }
RL_INLINE uint32_t rl_slot_figure(uint32_t k) { return rl_slot_active() + rl_takes_turns() + k; }
RL_INLINE bool rl_is_figure(uint32_t k) { return k >= rl_slot_figure(0) && k < rl_slot_figure(rl_the_env.figure_count); }
RL_INLINE uint32_t rl_slot_obs(uint32_t j) { return j ? rl_slot_figure(rl_the_env.figure_count) + 2 * (j - 1) : (uint32_t)RL_T_OBS; }
RL_INLINE uint32_t rl_slot_final(uint32_t j) { return j ? rl_slot_obs(j) + 1 : (uint32_t)RL_T_FINAL; }
RL_INLINE uint32_t rl_slot_action(uint32_t j) { return j ? rl_slot_obs(rl_observed()) + j - 1 : (uint32_t)RL_T_ACTION; }
RL_INLINE uint32_t rl_slot_mask(uint32_t j) { return j ? rl_slot_action(rl_acted()) + rl_masked(j) - rl_is_masked(0) : (uint32_t)RL_T_MASK; }
RL_INLINE uint32_t rl_slot_params(void) { return rl_slot_mask(rl_acted()); }
RL_INLINE bool rl_is_params(uint32_t k) { return rl_the_env.params.dtype && k == rl_slot_params(); }
RL_INLINE uint32_t rl_slot_reset_info(uint32_t k) { return rl_slot_params() + (rl_the_env.params.dtype != 0) + k; }
RL_INLINE bool rl_is_reset_info(uint32_t k) { return rl_the_env.reset_info_count && k >= rl_slot_reset_info(0); }
RL_INLINE bool rl_is_final(uint32_t k)
{
    return k == RL_T_FINAL || (k > rl_slot_obs(1) && k < rl_slot_action(1) && (k - rl_slot_obs(1)) % 2);
}

// rl_part is a tensor of the description with the space that it was made from.
typedef struct rl_part {
    rl_tensor_desc desc;
    rl_space space;
} rl_part;

static rl_part rl_describe_part(uint16_t role, uint32_t flags, const rl_space *s)
{
    rl_part p;
    __builtin_memset(&p, 0, sizeof p);
    p.space = *s;
    p.desc.role = role;
    p.desc.dtype = s->dtype;
    p.desc.rank = s->rank;
    p.desc.flags = flags | s->flags;
    p.desc.low = s->low;
    p.desc.high = s->high;
    p.desc.n = s->n;
    p.desc.start = s->start;
    p.desc.scale = s->scale;
    if (s->low == s->high && !s->n && !s->counts && !s->lows) p.desc.flags |= RL_TENSOR_NO_LOW | RL_TENSOR_NO_HIGH;
    for (uint32_t i = 0; i < s->rank; i++) p.desc.shape[i] = s->shape[i];
    return p;
}

// rl_count_parts returns how many tensors there are.
RL_INLINE uint32_t rl_count_parts(void) { return rl_slot_reset_info(rl_the_env.reset_info_count); }

static rl_part rl_observation(const rl_env *env, uint32_t k)
{
    bool last = rl_is_final(k);
    uint32_t j = k == RL_T_OBS || k == RL_T_FINAL ? 0 : 1 + (k - rl_slot_obs(1)) / 2;
    rl_space space = env->observations ? env->observations[j].space : env->obs;
    if (env->observations) space.name = env->observations[j].name;
    rl_part p = rl_describe_part(last ? RL_ROLE_FINAL_OBSERVATION : RL_ROLE_OBSERVATION, last ? RL_TENSOR_NO_TIME : RL_TENSOR_AT_T1, &space);
    p.desc.index = (uint16_t)j;
    p.desc.pair = last ? (uint16_t)j : 0;
    return p;
}

static rl_part rl_action_part(const rl_env *env, uint32_t j)
{
    rl_space space = *rl_action_space(env, j);
    if (env->actions) space.name = env->actions[j].name;
    rl_part p = rl_describe_part(RL_ROLE_ACTION, RL_TENSOR_AT_T, &space);
    p.desc.index = (uint16_t)j;
    return p;
}

static rl_part rl_mask_part(const rl_env *env, uint32_t j)
{
    rl_space space = {.dtype = RL_U8, .rank = 1, .shape = {rl_choices(rl_action_space(env, j))}, .high = 1};
    if (env->actions) space.name = env->actions[j].name;
    rl_part p = rl_describe_part(RL_ROLE_ACTION_MASK, RL_TENSOR_AT_T1, &space);
    p.desc.index = (uint16_t)rl_masked(j);
    p.desc.pair = (uint16_t)j;
    return p;
}

// rl_own_part returns tensor k as it is with one agent. All of them at once would be too large for a small stack.
static rl_part rl_own_part(const rl_env *env, uint32_t k)
{
    static const rl_space number = {.dtype = RL_F32}, unit = {.dtype = RL_F32, .high = 1}, flag = {.dtype = RL_U8, .high = 1};
    for (uint32_t j = 0; j < rl_acted(); j++) {
        if (k == rl_slot_action(j)) return rl_action_part(env, j);
        if (rl_is_masked(j) && k == rl_slot_mask(j)) return rl_mask_part(env, j);
    }
    if (k == RL_T_REWARD) return rl_describe_part(RL_ROLE_REWARD, RL_TENSOR_AT_T, &number);
    if (k == RL_T_TERMINATED) return rl_describe_part(RL_ROLE_TERMINATED, RL_TENSOR_AT_T, &flag);
    if (k == RL_T_TRUNCATED) return rl_describe_part(RL_ROLE_TRUNCATED, RL_TENSOR_AT_T, &flag);
    if (rl_is_params(k)) return rl_describe_part(RL_ROLE_RESET_PARAM, RL_TENSOR_NO_TIME | RL_TENSOR_OPTIONAL, &env->params);
    if (rl_is_reset_info(k)) {
        rl_part p = rl_describe_part(RL_ROLE_RESET_INFO, RL_TENSOR_AT_T1 | RL_TENSOR_OPTIONAL, &number);
        p.space.name = env->reset_infos[k - rl_slot_reset_info(0)];
        p.desc.index = (uint16_t)(k - rl_slot_reset_info(0));
        return p;
    }
    if (k == RL_T_OBS || k == RL_T_FINAL || k >= rl_slot_obs(1)) return rl_observation(env, k);
    if (rl_is_figure(k)) {
        const rl_figure *figure = &env->figures[k - rl_slot_figure(0)];
        rl_part p = rl_describe_part(RL_ROLE_INFO, RL_TENSOR_AT_T | RL_TENSOR_OPTIONAL | figure->gather, &number);
        p.space.name = figure->name;
        p.desc.index = (uint16_t)(k - rl_slot_figure(0));
        return p;
    }
    if (rl_the_env.discount && k == rl_slot_discount()) return rl_describe_part(RL_ROLE_DISCOUNT, RL_TENSOR_AT_T, &unit);
    return rl_describe_part(RL_ROLE_ACTIVE, RL_TENSOR_AT_T1, &flag);
}

// rl_shared says whether a tensor is of the environment though there are several agents.
RL_INLINE bool rl_shared(uint32_t k)
{
    return rl_is_figure(k) || rl_is_params(k) || rl_is_reset_info(k) || (!rl_end_apart() && (k == RL_T_TERMINATED || k == RL_T_TRUNCATED));
}

// rl_part_of returns tensor k.
static rl_part rl_part_of(const rl_env *env, uint32_t k)
{
    rl_part p = rl_own_part(env, k);
    if ((rl_agents() > 1 || rl_takes_turns()) && !rl_shared(k)) p.desc.flags |= RL_TENSOR_PER_AGENT;
    return p;
}

// rl_writer puts a description together; without memory it only measures it.
typedef struct rl_writer {
    uint8_t *to;
    uint32_t at, strings; // where the next byte goes, where the string table begins
} rl_writer;

static uint32_t rl_put_bytes(rl_writer *w, const void *from, uint32_t n)
{
    if (w->to && n) __builtin_memcpy(w->to + w->at, from, n);
    w->at += n;
    return w->at - n;
}

// rl_put_string adds to the string table and returns the string's offset in it.
static uint32_t rl_put_string(rl_writer *w, const char *text, uint32_t len)
{
    if (!len) return 0;
    uint32_t at = rl_put_bytes(w, text, len);
    rl_put_bytes(w, "", 1);
    return at - w->strings;
}

// rl_put_text is rl_put_string for a text that ends with a NUL, or NULL.
static uint32_t rl_put_text(rl_writer *w, const char *text) { return text ? rl_put_string(w, text, rl_length(text)) : 0; }

// rl_put_values adds the numbers of each element and returns where they lie, 0 if all are alike.
static uint32_t rl_put_values(rl_writer *w, const rl_space *s)
{
    uint32_t at = w->at, bytes = 4 * rl_elements(s);
    if (s->counts) rl_put_bytes(w, s->counts, bytes);
    if (s->lows) rl_put_bytes(w, s->lows, bytes), rl_put_bytes(w, s->highs, bytes);
    return w->at > at ? at : 0;
}

// rl_put_description writes the description if to is not NULL, and returns its length.
static uint32_t rl_put_description(const rl_env *env, uint8_t *to)
{
    uint32_t tensors = rl_count_parts(), len = rl_length(env->name), name = 0, groups = rl_agents() > 1;
    rl_spec spec = {
        .size = RL_SPEC_BYTES,
        .abi_major = RL_ABI_MAJOR,
        .abi_minor = RL_ABI_MINOR,
        .caps = RL_CAP_STRIDES | env->caps,
        .tensor_bytes = RL_TENSOR_BYTES,
        .binding_bytes = RL_BINDING_BYTES,
        .group_bytes = RL_GROUP_BYTES,
        .arg_bytes = RL_ARG_BYTES,
        .tensors = tensors,
        .groups = groups,
        .args = env->argument_count,
        .max_envs = env->max_envs,
        .episode_limit = env->episode_limit,
        .autoreset = RL_AUTORESET_NEXT_STEP | RL_AUTORESET_SAME_STEP | RL_AUTORESET_DISABLED,
        .render_width = env->picture_width,
        .render_height = env->picture_height,
        .render_fps = env->picture_fps,
        .reward_threshold = __builtin_nanf(""),
        .state_version = env->state_version,
        .dt = env->dt, // C++ wants the record's order
    };
    if (env->render) spec.render_modes |= RL_RENDER_TEXT;
    if (env->draw) spec.render_modes |= RL_RENDER_RGB;
    if (groups || rl_takes_turns()) {
        spec.needs = RL_FEATURE_AGENTS;
        spec.autoreset = RL_AUTORESET_SAME_STEP;
        if (rl_takes_turns()) spec.flags = RL_SPEC_DYNAMIC_AGENTS;
    }
    rl_writer w = {to, RL_SPEC_BYTES + groups * RL_GROUP_BYTES + tensors * RL_TENSOR_BYTES + env->argument_count * RL_ARG_BYTES, 0}, values = {NULL, w.at, 0},
              records = {to, RL_SPEC_BYTES, 0};
    for (uint32_t i = 0; i < tensors; i++) {
        rl_space space = rl_part_of(env, i).space;
        rl_put_values(&w, &space);
    }
    spec.strings_at = w.strings = w.at;
    rl_put_bytes(&w, "", 1);
    while (name < len && env->name[name] != '@') name++;
    spec.name = rl_put_string(&w, env->name, name);
    spec.version = name < len ? rl_put_string(&w, env->name + name + 1, len - name - 1) : 0;
    spec.keys = rl_put_text(&w, env->keys);
    rl_group_desc group = {.name = 0, .agents = rl_agents()};
    if (groups) {
        group.name = rl_put_string(&w, "agents", 6);
        group.agent_names = rl_put_text(&w, env->agent_names);
        rl_put_bytes(&records, &group, sizeof group);
    }
    for (uint32_t i = 0; i < tensors; i++) {
        rl_part p = rl_part_of(env, i);
        p.desc.values = rl_put_values(&values, &p.space);
        if (p.space.name) p.desc.path = rl_put_string(&w, p.space.name, rl_length(p.space.name));
        rl_put_bytes(&records, &p.desc, sizeof p.desc);
    }
    for (uint32_t i = 0; i < env->argument_count; i++) {
        const rl_argument *a = &env->arguments[i];
        rl_arg_desc d = {.kind = a->kind, .flags = a->flags, .min = a->min, .max = a->max};
        d.name = rl_put_text(&w, a->name);
        d.doc = rl_put_text(&w, a->doc);
        d.value = rl_put_text(&w, a->value);
        d.choices = rl_put_text(&w, a->choices);
        rl_put_bytes(&records, &d, sizeof d);
    }
    spec.strings_len = w.at - w.strings;
    records.at = 0;
    rl_put_bytes(&records, &spec, sizeof spec);
    return w.at;
}

// rl_known says whether every argument was asked for; if not, the text names the first that was not.
static bool rl_known(const rl_config *config)
{
    rl_text key, value;
    for (uint32_t n = 0; n < 64 && rl_line(config, n, &key, &value); n++) {
        if (config->asked >> n & 1 || !key.len) continue;
        rl_fail("unknown argument ");
        rl_error_add(key.at, key.len);
        return false;
    }
    return true;
}

// rl_half_saved says whether the author gives some of the functions that save a state, and not all.
RL_INLINE bool rl_half_saved(void)
{
    const rl_env *e = &rl_the_env;
    if (!e->save || e->save == RL_NOT_SAVED) return e->load || e->load_length || e->save_length || e->save_bytes;
    return e->save_length ? !e->load_length || e->load || e->save_bytes : !e->load || !e->save_bytes || e->load_length;
}

static bool rl_described(rl_config *config, rl_env *env)
{
#ifdef RL_FILLED_IN
    if (!rl_fill_in(config)) return false;
#endif
    *env = rl_the_env;
    if (env->observation_count > RL_MAX_OBSERVATIONS) return rl_fail("more than 16 observations");
    if (env->action_count > RL_MAX_ACTIONS) return rl_fail("more than 16 actions");
    if (env->actions && env->mask && !rl_masked(env->action_count)) return rl_fail("a mask, and no discrete action");
    if (env->figure_count > RL_MAX_FIGURES) return rl_fail("more than 16 figures");
    if (env->reset_info_count > RL_MAX_FIGURES) return rl_fail("more than 16 infos at reset");
    if (env->params.dtype && env->params.dtype != RL_F32) return rl_fail("reset parameters of another type than RL_F32");
    if (env->agents > RL_MAX_AGENTS) return rl_fail("more than 4096 agents");
    if (env->respawn && rl_agents() < 2) return rl_fail("respawn is for several agents: of one, the environment's own episode ends");
    if (env->apart && env->respawn) return rl_fail("apart and respawn exclude each other: an agent whose episode has ended is out, or back at once");
    if (rl_half_saved()) return rl_fail("save, load and save_bytes belong together, or save, load_length and save_length");
    if (env->describe && !env->describe(config, env)) return false;
    return !config->failed;
}

RL_EXPORT(rl_env_v1) void rl_env_v1(void) {}

RL_EXPORT(rl_describe) int32_t rl_describe(uint32_t config, uint32_t config_len, uint32_t buf, uint32_t cap)
{
    rl_config c = {.text = (const char *)rl_at(config), .len = config_len};
    rl_env env;
    if (!rl_described(&c, &env)) return RL_STATUS_CONFIG;
    uint32_t need = rl_put_description(&env, NULL);
    if (cap >= need) rl_put_description(&env, (uint8_t *)rl_at(buf));
    return (int32_t)need;
}

// ---- life of a batch ---------------------------------------------------------------------------------------

static void rl_drop(rl_batch *b)
{
    if (b->state && rl_the_env.destroy) rl_the_env.destroy(b->state, b->envs);
    rl_put(b->flags, b->envs * (uint32_t)sizeof *b->flags);
    rl_put(b->rng, b->envs * (uint32_t)sizeof *b->rng);
    uint32_t agents = rl_agents();
    for (uint32_t j = 0; j < rl_observed(); j++) rl_put(b->row[j], agents * b->shape[rl_slot_obs(j)].elems * b->shape[rl_slot_obs(j)].bytes);
    for (uint32_t j = 0; j < rl_acted(); j++)
        rl_put(b->move[j], agents * b->shape[rl_slot_action(j)].elems * b->shape[rl_slot_action(j)].bytes);
    rl_put(b->legal, agents * b->choices);
    rl_put(b->kept, rl_the_env.respawn ? b->envs * agents : 0);
    rl_put(b->acts, rl_takes_turns() ? b->envs * agents : 0);
    rl_put(b->over, rl_takes_turns() ? b->envs * agents : 0);
    rl_put(b->results, agents > 1 ? agents * (uint32_t)sizeof *b->results : 0);
    rl_put(b, sizeof *b);
}

// rl_build gives a batch its memory and its environments.
static int32_t rl_build(rl_batch *b, rl_config *config)
{
    b->tensors = rl_count_parts();
    for (uint32_t k = 0; k < b->tensors; k++) {
        rl_part p = rl_part_of(&b->env, k);
        b->shape[k].elems = rl_elements(&p.space);
        b->shape[k].bytes = rl_dtype_bytes(p.desc.dtype);
    }
    b->flags = (uint32_t *)rl_new(b->envs, sizeof *b->flags);
    b->rng = (rl_rng *)rl_new(b->envs, sizeof *b->rng);
    bool rooms = true;
    uint32_t agents = rl_agents();
    for (uint32_t j = 0; j < rl_observed(); j++) {
        b->row[j] = rl_new(agents * b->shape[rl_slot_obs(j)].elems, b->shape[rl_slot_obs(j)].bytes);
        rooms = rooms && b->row[j];
    }
    for (uint32_t j = 0; j < rl_acted(); j++) {
        b->move[j] = rl_new(agents * b->shape[rl_slot_action(j)].elems, b->shape[rl_slot_action(j)].bytes);
        if (rl_is_masked(j)) b->choices += b->shape[rl_slot_mask(j)].elems;
        rooms = rooms && b->move[j];
    }
    if (rl_the_env.mask) b->legal = (uint8_t *)rl_new(agents * b->choices, 1);
    if (rl_takes_turns()) {
        b->acts = (uint8_t *)rl_new(b->envs * agents, 1);
        b->over = (uint8_t *)rl_new(b->envs * agents, 1);
        rooms = rooms && b->acts && b->over;
    }
    if (rl_the_env.respawn) {
        b->kept = (uint8_t *)rl_new(b->envs * agents, 1);
        rooms = rooms && b->kept;
    }
    if (agents > 1) {
        b->results = (rl_result *)rl_new(agents, sizeof *b->results);
        rooms = rooms && b->results;
    }
    if (!b->flags || !b->rng || !rooms || (rl_the_env.mask && !b->legal)) {
        rl_fail("out of memory");
        return RL_STATUS_MEMORY;
    }
    for (uint32_t i = 0; i < b->envs; i++) {
        b->rng[i] = rl_seed(i);
        b->flags[i] = RL_FLAG_WAITING;
    }
    b->waiting = b->envs;
    rl_fail("the environment could not be set up");
    b->state = rl_the_env.create(b->envs, config);
    if (!b->state || config->failed || !rl_known(config)) return RL_STATUS_CONFIG;
    rl_error.len = 0;
    return RL_STATUS_OK;
}

RL_EXPORT(rl_create) int32_t rl_create(uint32_t config, uint32_t config_len, uint32_t num_envs, uint32_t autoreset)
{
    rl_config c = {.text = (const char *)rl_at(config), .len = config_len};
    rl_env env;
    int32_t slot = 0;
    while (slot < RL_BATCHES && rl_batches[slot]) slot++;
    if (slot == RL_BATCHES) return RL_STATUS_STATE;
    if (autoreset != RL_AUTORESET_NEXT_STEP && autoreset != RL_AUTORESET_SAME_STEP && autoreset != RL_AUTORESET_DISABLED)
        return RL_STATUS_UNSUPPORTED;
    if (!rl_described(&c, &env)) return RL_STATUS_CONFIG;
    if (!num_envs || (env.max_envs && num_envs > env.max_envs)) return RL_STATUS_ARGUMENT;
    rl_batch *b = (rl_batch *)rl_new(1, sizeof *b);
    if (!b) return RL_STATUS_MEMORY;
    b->env = env;
    b->envs = num_envs;
    b->autoreset = autoreset;
    int32_t status = rl_build(b, &c);
    if (status != RL_STATUS_OK) {
        rl_drop(b);
        return status;
    }
    rl_batches[slot] = b;
    return slot;
}

RL_EXPORT(rl_destroy) int32_t rl_destroy(uint32_t batch)
{
    rl_batch *b = rl_find(batch);
    if (!b) return RL_STATUS_ARGUMENT;
    rl_drop(b);
    rl_batches[batch] = NULL;
    return RL_STATUS_OK;
}

RL_EXPORT(rl_bind) int32_t rl_bind(uint32_t batch, uint32_t bindings, uint32_t n)
{
    rl_batch *b = rl_find(batch);
    if (!b || n != b->tensors) return RL_STATUS_ARGUMENT;
    for (uint32_t k = 0; k < n; k++) {
        rl_binding x;
        __builtin_memcpy(&x, (const uint8_t *)rl_at(bindings) + k * sizeof x, sizeof x);
        uint32_t misaligned = x.ptr | x.stride_t | x.stride_env | x.stride_agent | x.stride_elem;
        bool needed = rl_is_final(k) ? b->autoreset == RL_AUTORESET_SAME_STEP : !rl_is_figure(k) && !rl_is_params(k) && !rl_is_reset_info(k);
        if (misaligned & (b->shape[k].bytes - 1) || (needed && !x.ptr)) return RL_STATUS_ARGUMENT;
    }
    for (uint32_t k = 0; k < n; k++) {
        __builtin_memcpy(&b->bind[k], (const uint8_t *)rl_at(bindings) + k * sizeof b->bind[k], sizeof b->bind[k]);
        b->shape[k].at = b->bind[k].ptr ? (uint8_t *)rl_at(b->bind[k].ptr) : NULL;
        b->shape[k].env = b->bind[k].stride_env;
        b->shape[k].elem = b->bind[k].stride_elem;
        b->shape[k].agent = b->bind[k].stride_agent;
    }
    rl_view view = {.action = b->shape[RL_T_ACTION], .obs = b->shape[RL_T_OBS], .reward = b->shape[RL_T_REWARD],
                    .terminated = b->shape[RL_T_TERMINATED], .truncated = b->shape[RL_T_TRUNCATED], .rng = b->rng,
                    .row = b->row[0], .move = b->move[0], .observations = b->obs, .rows = b->row,
                    .actions = b->actions, .moves = b->move,
                    .discount = {NULL, 0, 0, 0, 0, 0}, .figures = b->figures, .told = b->told, .results = b->results};
    b->view = view;
    b->bound = true;
#ifdef RL_FILLED_IN
    b->plain = rl_is_plain(b);
#endif
    return RL_STATUS_OK;
}

// ---- episodes ----------------------------------------------------------------------------------------------

RL_INLINE rl_tensor rl_tensor_at(const rl_batch *b, uint32_t k, uint32_t t)
{
    rl_tensor r = b->shape[k];
    r.at += (size_t)t * b->bind[k].stride_t;
    return r;
}

// rl_obs_at puts the observations at time t into all.
RL_INLINE void rl_obs_at(const rl_batch *b, uint32_t t, rl_tensor *all)
{
    for (uint32_t j = 0; j < rl_observed(); j++) all[j] = rl_tensor_at(b, rl_slot_obs(j), t);
}

// rl_set_time moves the tensors of a step to time t.
RL_INLINE void rl_set_time(rl_batch *b, uint32_t t)
{
    for (uint32_t j = 0; j < rl_acted(); j++) b->actions[j] = rl_tensor_at(b, rl_slot_action(j), t);
    b->view.action.at = b->actions[0].at;
    rl_obs_at(b, t + 1, b->obs);
    b->view.obs.at = b->obs[0].at;
    if (rl_the_env.discount) b->view.discount = rl_tensor_at(b, rl_slot_discount(), t);
    for (uint32_t k = 0; k < rl_the_env.figure_count; k++) {
        b->figures[k] = rl_tensor_at(b, rl_slot_figure(k), t);
        if (!b->shape[rl_slot_figure(k)].at) b->figures[k].at = NULL;
    }
    b->view.reward.at = b->shape[RL_T_REWARD].at + (size_t)t * b->bind[RL_T_REWARD].stride_t;
    b->view.terminated.at = b->shape[RL_T_TERMINATED].at + (size_t)t * b->bind[RL_T_TERMINATED].stride_t;
    b->view.truncated.at = b->shape[RL_T_TRUNCATED].at + (size_t)t * b->bind[RL_T_TRUNCATED].stride_t;
}

RL_INLINE void rl_set_waiting(rl_batch *b, uint32_t i, bool waiting)
{
    b->waiting += (uint32_t)waiting - (b->flags[i] & RL_FLAG_WAITING);
    b->flags[i] = waiting ? RL_FLAG_WAITING : 0;
}

static rl_batch *rl_begun;  // the batch of an episode that begins
static uint32_t rl_row_now; // the row of its first observation

static void rl_reset_info(uint32_t k, float value)
{
    const rl_batch *b = rl_begun;
    if (!b || k >= rl_the_env.reset_info_count || !b->shape[rl_slot_reset_info(k)].at) return;
    rl_tensor info = rl_tensor_at(b, rl_slot_reset_info(k), rl_row_now);
    *(float *)(void *)rl_row(&info, rl_current) = value;
}

// rl_begin starts an episode of environment i and writes its first observation into obs, an array of all of them.
RL_INLINE void rl_begin(rl_batch *b, uint32_t i, const rl_tensor *obs)
{
    rl_current = i;
    if (rl_the_env.params.dtype) rl_params = &b->shape[rl_slot_params()];
    rl_set_waiting(b, i, false);
    if (rl_the_env.reset_info_count) rl_begun = b;
    for (uint32_t k = 0; k < rl_the_env.reset_info_count; k++) rl_reset_info(k, 0);
    rl_the_env.reset(b->state, i, &b->rng[i], obs, rl_the_env.observations ? (void *)b->row : b->row[0]);
    if (rl_takes_turns()) __builtin_memset(b->over + (size_t)i * rl_agents(), 0, rl_agents());
}

// rl_ask finds out which agents of environment i act now.
RL_INLINE void rl_ask(rl_batch *b, uint32_t i)
{
    uint32_t agents = rl_agents();
    uint8_t *acts = b->acts + (size_t)i * agents;
    __builtin_memset(acts, 1, agents);
    if (rl_the_env.active) rl_the_env.active(b->state, i, acts);
    for (uint32_t k = 0; k < agents; k++) acts[k] = acts[k] && !b->over[(size_t)i * agents + k];
}

// rl_active writes who acts at time t.
static void rl_active(rl_batch *b, uint32_t first, uint32_t count, uint32_t t)
{
    if (!rl_takes_turns()) return;
    rl_tensor active = rl_tensor_at(b, rl_slot_active(), t);
    for (uint32_t i = first; i < first + count; i++) {
        rl_ask(b, i);
        rl_spread(&active, i, b->acts + (size_t)i * rl_agents());
    }
}

// rl_legal writes the masks of time t: the author's, and all ones where the next step reads no action: behind an end, and for
// agents that do not act.
static void rl_legal(rl_batch *b, uint32_t first, uint32_t count, uint32_t t)
{
    if (!rl_the_env.mask) return;
    for (uint32_t i = first; i < first + count; i++) {
        if (b->flags[i] & RL_FLAG_WAITING) __builtin_memset(b->legal, 1, rl_agents() * b->choices);
        else rl_the_env.mask(b->state, i, b->legal);
        for (uint32_t k = 0; rl_takes_turns() && k < rl_agents(); k++)
            if (!b->acts[(size_t)i * rl_agents() + k]) __builtin_memset(b->legal + (size_t)k * b->choices, 1, b->choices);
        const uint8_t *legal = b->legal;
        for (uint32_t j = 0; j < rl_acted(); j++) {
            if (!rl_is_masked(j)) continue;
            rl_tensor mask = rl_tensor_at(b, rl_slot_mask(j), t);
            rl_spread_each(&mask, i, legal, b->choices);
            legal += mask.elems;
        }
    }
}

RL_EXPORT(rl_reset) int32_t rl_reset(uint32_t batch, uint32_t t, uint32_t mask, uint32_t seeds)
{
    rl_batch *b = rl_find(batch);
    if (!b) return RL_STATUS_ARGUMENT;
    if (!b->bound) return RL_STATUS_STATE;
    const uint8_t *chosen = mask ? (uint8_t *)rl_at(mask) : NULL, *seed = seeds ? (uint8_t *)rl_at(seeds) : NULL;
    rl_tensor obs[RL_MAX_OBSERVATIONS];
    rl_obs_at(b, t, obs);
    rl_row_now = t;
    for (uint32_t i = 0; i < b->envs; i++) {
        if (chosen && !chosen[i]) continue;
        if (seed) {
            uint64_t s;
            __builtin_memcpy(&s, seed + 8 * (size_t)i, 8);
            b->rng[i] = rl_seed(s);
        }
        rl_begin(b, i, obs);
        rl_active(b, i, 1, t);
        rl_legal(b, i, 1, t);
    }
    return RL_STATUS_OK;
}

// rl_keep_last makes what agent k of environment i observes its last observation.
RL_INLINE void rl_keep_last(rl_batch *b, uint32_t i, uint32_t k)
{
    for (uint32_t j = 0; j < rl_observed(); j++) {
        const rl_tensor *last = &b->shape[rl_slot_final(j)], *obs = &b->obs[j];
        rl_copy_row(rl_row(last, i) + (size_t)k * last->agent, last->elem, rl_row(obs, i) + (size_t)k * obs->agent, obs->elem, last->elems,
                    last->bytes);
    }
}

// rl_end does what the autoreset mode says about environment i, whose episode has ended.
static __attribute__((noinline)) void rl_end(rl_batch *b, uint32_t i)
{
    const rl_view *v = &b->view;
    if (*rl_row(&v->terminated, i)) *rl_row(&v->truncated, i) = 0;
    if (b->autoreset != RL_AUTORESET_SAME_STEP) {
        rl_set_waiting(b, i, true);
        return;
    }
    for (uint32_t k = 0; k < rl_agents(); k++) rl_keep_last(b, i, k);
    rl_begin(b, i, b->obs);
}

// rl_apart ends the episodes of those agents of environment i whose results say so, and that of the environment with the last one.
RL_QUIET static void rl_apart(rl_batch *b, uint32_t i)
{
    const rl_view *v = &b->view;
    uint8_t *over = b->over + (size_t)i * rl_agents();
    uint32_t ended = 0, left = 0;
    for (uint32_t k = 0; k < rl_agents(); k++) {
        uint8_t *terminated = rl_row(&v->terminated, i) + (size_t)k * v->terminated.agent;
        uint8_t *truncated = rl_row(&v->truncated, i) + (size_t)k * v->truncated.agent;
        if (over[k]) *terminated = *truncated = 0;
        if (*terminated) *truncated = 0;
        if (*terminated | *truncated) {
            over[k] = 1;
            ended++;
            rl_keep_last(b, i, k);
        }
        left += !over[k];
    }
    if (ended && !left) rl_begin(b, i, b->obs);
}

static rl_batch *rl_stepped; // the batch of a step whose agents respawn
static bool rl_mislaid;      // a last observation is missing, or given for nobody

static void rl_last(uint32_t agent, const void *obs)
{
    rl_batch *b = rl_stepped;
    if (!b || agent >= rl_agents()) {
        rl_fail("rl_last: it is for a step with .respawn, and for agents that there are");
        rl_mislaid = true;
        return;
    }
    for (uint32_t j = 0; j < rl_observed(); j++) {
        const rl_tensor *last = &b->shape[rl_slot_final(j)];
        const uint8_t *rows = (const uint8_t *)(rl_the_env.observations ? ((void *const *)obs)[j] : obs);
        rl_copy_row(rl_row(last, rl_current) + (size_t)agent * last->agent, last->elem, rows + (size_t)agent * last->elems * last->bytes,
                    last->bytes, last->elems, last->bytes);
    }
    b->kept[(size_t)rl_current * rl_agents() + agent] = 1;
}

// rl_respawn looks at the agents of environment i whose episodes have ended: the author has put them back, or ends the environment's own.
RL_QUIET static void rl_respawn(rl_batch *b, uint32_t i)
{
    const rl_view *v = &b->view;
    uint8_t *kept = b->kept + (size_t)i * rl_agents();
    uint32_t ended = 0, given = 0;
    bool unkept = false;
    for (uint32_t k = 0; k < rl_agents(); k++) {
        uint8_t *terminated = rl_row(&v->terminated, i) + (size_t)k * v->terminated.agent;
        uint8_t *truncated = rl_row(&v->truncated, i) + (size_t)k * v->truncated.agent;
        if (*terminated) *truncated = 0;
        uint8_t over = *terminated | *truncated;
        ended += over;
        given += kept[k];
        unkept = unkept || (over && !kept[k]);
        kept[k] = 0;
    }
    if (!unkept || rl_mislaid) return;
    if (ended < rl_agents() || given) {
        rl_fail("an agent's episode has ended without its last observation: give it to rl_last, then put the agent back");
        rl_mislaid = true;
        rl_current = i;
        return;
    }
    for (uint32_t k = 0; k < rl_agents(); k++) rl_keep_last(b, i, k);
    rl_begin(b, i, b->obs);
}

// rl_finish looks for ended episodes, eight flags at a time.
RL_INLINE void rl_finish(rl_batch *b, uint32_t first, uint32_t end, void (*end_of)(rl_batch *b, uint32_t i))
{
    const rl_view *v = &b->view;
    uint32_t i = first;
    if (v->terminated.env == 1 && v->truncated.env == 1) {
        for (; end - i >= 8; i += 8) {
            uint64_t ended, late;
            __builtin_memcpy(&ended, v->terminated.at + i, 8);
            __builtin_memcpy(&late, v->truncated.at + i, 8);
            for (ended |= late; ended;) {
                uint32_t k = (uint32_t)__builtin_ctzll(ended) / 8;
                end_of(b, i + k);
                ended &= ~((uint64_t)0xff << 8 * k);
            }
        }
    }
    for (; i < end; i++)
        if (*rl_row(&v->terminated, i) | *rl_row(&v->truncated, i)) end_of(b, i);
}

// rl_run steps environments that wait for nothing, then ends the episodes that are over.
RL_INLINE void rl_run(rl_batch *b, uint32_t first, uint32_t count)
{
    const rl_view *v = &b->view;
    if (rl_the_env.respawn) rl_stepped = b;
    rl_the_env.step(b->state, first, count, v);
    uint32_t i = first, end = first + count;
    if (rl_the_env.respawn) {
        rl_stepped = NULL;
        for (; i < end; i++) rl_respawn(b, i);
        return;
    }
    if (rl_the_env.apart) {
        for (; i < end; i++) rl_apart(b, i);
        return;
    }
    rl_finish(b, first, end, rl_end);
}

// rl_rest is the step of an environment whose episode is over: a new episode under next-step autoreset, and
// nothing but the same observation where the host resets.
static __attribute__((noinline)) void rl_rest(rl_batch *b, uint32_t t, uint32_t i)
{
    const rl_view *v = &b->view;
    rl_result nothing = rl_fresh(v);
    rl_write(v, i, &nothing);
    if (b->autoreset == RL_AUTORESET_NEXT_STEP) {
        rl_begin(b, i, b->obs);
        return;
    }
    for (uint32_t j = 0; j < rl_observed(); j++) {
        rl_tensor before = rl_tensor_at(b, rl_slot_obs(j), t);
        rl_collect(&before, i, b->row[j]);
        rl_spread(&b->obs[j], i, b->row[j]);
    }
}

// rl_action_ok checks action j.
RL_INLINE bool rl_action_ok(rl_batch *b, uint32_t j, uint32_t first, uint32_t count)
{
    const rl_tensor *a = &b->actions[j];
    const rl_space *space = rl_action_space(&b->env, j);
    if (!rl_discrete(space)) return true;
    if (a->elems == 1 && a->env == 4 * rl_agents() && !space->start && space->n) {
        const uint32_t *all = (const uint32_t *)(const void *)a->at;
        uint32_t any = 0;
        for (uint32_t i = first * rl_agents(); i < (first + count) * rl_agents(); i++) any |= all[i];
        if (any < space->n) return true; // no action is larger than all of them put together
    }
    for (uint32_t i = first; i < first + count; i++) {
        if (b->flags[i] & RL_FLAG_WAITING) continue;
        rl_collect(a, i, b->move[j]);
        rl_current = i;
        for (uint32_t k = 0; k < a->elems * rl_agents(); k++) {
            if (rl_takes_turns() && !b->acts[(size_t)i * rl_agents() + k / a->elems]) continue;
            if (((uint32_t *)b->move[j])[k] - (uint32_t)space->start >= rl_count(space, k % a->elems))
                return rl_fail("an action is outside its space");
        }
    }
    return true;
}

// rl_actions_ok checks every discrete action before anything moves, so that a bad one changes no environment.
static bool rl_actions_ok(rl_batch *b, uint32_t first, uint32_t count)
{
    for (uint32_t j = 0; j < rl_acted(); j++)
        if (!rl_action_ok(b, j, first, count)) return false;
    return true;
}

static int32_t rl_advance(rl_batch *b, uint32_t t, uint32_t first, uint32_t count)
{
    if (!b->bound || (b->waiting && b->autoreset == RL_AUTORESET_SAME_STEP)) return RL_STATUS_STATE; // reset first
#ifdef RL_FILLED_IN
    if (b->plain && !b->waiting) return rl_advance_plain(b, t, first, count);
#endif
    rl_set_time(b, t);
    rl_row_now = t + 1;
    if (!rl_actions_ok(b, first, count)) return RL_STATUS_ACTION;
    for (uint32_t i = first, end = first + count, k; i < end; i = k) {
        k = b->waiting ? i : end;
        while (k < end && !(b->flags[k] & RL_FLAG_WAITING)) k++;
        if (k > i) rl_run(b, i, k - i);
        if (k < end) rl_rest(b, t, k++);
    }
    if (rl_mislaid) {
        rl_mislaid = false;
        return RL_STATUS_INTERNAL;
    }
    rl_active(b, first, count, t + 1);
    rl_legal(b, first, count, t + 1);
    return RL_STATUS_OK;
}

RL_EXPORT(rl_step) int32_t rl_step(uint32_t batch, uint32_t t)
{
    rl_batch *b = rl_find(batch);
    return b ? rl_advance(b, t, 0, b->envs) : RL_STATUS_ARGUMENT;
}

RL_EXPORT(rl_step_range) int32_t rl_step_range(uint32_t batch, uint32_t t, uint32_t first, uint32_t count)
{
    rl_batch *b = rl_find(batch);
    if (!b || first > b->envs || count > b->envs - first) return RL_STATUS_ARGUMENT;
    return rl_advance(b, t, first, count);
}

// ---- the rest ----------------------------------------------------------------------------------------------

// A saved environment is a head, the author's bytes, its flags (u32) and its random stream (u64), and, where agents end apart, a
// byte for each that has. The head has the state's version and how many bytes follow it.
#define RL_SAVED_HEAD 8
#define RL_SAVED_TAIL (12 + (rl_the_env.apart ? rl_agents() : 0))

// rl_refuse_saving says why states are not saved.
RL_QUIET static int32_t rl_refuse_saving(void)
{
    rl_fail(rl_the_env.save ? "states are not saved: .save is RL_NOT_SAVED" : "states are not saved: .save and .load are not given");
    return RL_STATUS_UNSUPPORTED;
}

// rl_saves says whether states are saved: as the author does it, or as the bytes of his struct.
RL_INLINE bool rl_saves(void) { return rl_the_env.save ? rl_the_env.save != RL_NOT_SAVED : rl_the_env.struct_bytes != 0; }

// rl_own_bytes is how many bytes of a saved environment are the author's.
RL_INLINE uint32_t rl_own_bytes(const rl_batch *b, uint32_t i)
{
    if (!rl_the_env.save) return rl_the_env.struct_bytes;
    return rl_the_env.save_length ? rl_the_env.save_length(b->state, i) : rl_the_env.save_bytes;
}

// rl_load_own gives environment i the author's bytes of a saved one.
RL_INLINE bool rl_load_own(rl_batch *b, uint32_t i, const uint8_t *from, uint32_t len)
{
    if (rl_the_env.load_length) return rl_the_env.load_length(b->state, i, from, len);
    if (rl_the_env.load) return rl_the_env.load(b->state, i, from);
    __builtin_memcpy((uint8_t *)b->state + (size_t)i * rl_the_env.struct_bytes, from, rl_the_env.struct_bytes);
    return true;
}

RL_EXPORT(rl_save) int32_t rl_save(uint32_t batch, uint32_t env, uint32_t buf, uint32_t cap)
{
    rl_batch *b = rl_find(batch);
    if (!b || env >= b->envs) return RL_STATUS_ARGUMENT;
    if (!rl_saves()) return rl_refuse_saving();
    uint32_t own = rl_own_bytes(b, env), head[2] = {rl_the_env.state_version, own + RL_SAVED_TAIL};
    if (cap < RL_SAVED_HEAD + head[1]) return (int32_t)(RL_SAVED_HEAD + head[1]);
    uint8_t *to = (uint8_t *)rl_at(buf);
    __builtin_memcpy(to, head, RL_SAVED_HEAD);
    to += RL_SAVED_HEAD;
    if (rl_the_env.save) rl_the_env.save(b->state, env, to);
    else __builtin_memcpy(to, (uint8_t *)b->state + (size_t)env * rl_the_env.struct_bytes, rl_the_env.struct_bytes);
    __builtin_memcpy(to + own, &b->flags[env], 4);
    __builtin_memcpy(to + own + 4, &b->rng[env], 8);
    if (rl_the_env.apart) __builtin_memcpy(to + own + 12, b->over + (size_t)env * rl_agents(), rl_agents());
    return (int32_t)(RL_SAVED_HEAD + head[1]);
}

RL_EXPORT(rl_load) int32_t rl_load(uint32_t batch, uint32_t env, uint32_t buf, uint32_t len)
{
    rl_batch *b = rl_find(batch);
    if (!b || env >= b->envs) return RL_STATUS_ARGUMENT;
    if (!rl_saves()) return rl_refuse_saving();
    uint32_t flags, head[2];
    const uint8_t *from = (const uint8_t *)rl_at(buf);
    if (len < RL_SAVED_HEAD) return RL_STATUS_ARGUMENT;
    __builtin_memcpy(head, from, RL_SAVED_HEAD);
    if (head[0] != rl_the_env.state_version) return RL_STATUS_VERSION;
    if (head[1] != len - RL_SAVED_HEAD || head[1] < RL_SAVED_TAIL) return RL_STATUS_ARGUMENT;
    uint32_t own = head[1] - RL_SAVED_TAIL;
    if (!rl_the_env.save_length && own != rl_own_bytes(b, env)) return RL_STATUS_ARGUMENT;
    from += RL_SAVED_HEAD;
    __builtin_memcpy(&flags, from + own, 4);
    if (flags & ~RL_FLAG_WAITING || !rl_load_own(b, env, from, own)) return RL_STATUS_ARGUMENT;
    rl_set_waiting(b, env, flags & RL_FLAG_WAITING);
    __builtin_memcpy(&b->rng[env], from + own + 4, 8);
    if (rl_the_env.apart) __builtin_memcpy(b->over + (size_t)env * rl_agents(), from + own + 12, rl_agents());
    if (rl_takes_turns()) rl_ask(b, env);
    return RL_STATUS_OK;
}

// Modes of rl_render, of the first camera: the numbers of the bits RL_RENDER_TEXT and RL_RENDER_RGB.
enum { RL_MODE_TEXT, RL_MODE_RGB };

// rl_paint has the author draw a picture where there is room for it, and returns how long it is.
static uint32_t rl_paint(rl_batch *b, uint32_t env, uint8_t *to, uint32_t cap)
{
    rl_picture picture = {to, (int32_t)b->env.picture_width, (int32_t)b->env.picture_height};
    uint32_t need = b->env.picture_width * b->env.picture_height * 3;
    if (cap < need) return need;
    __builtin_memset(to, 0, need);
    rl_the_env.draw(b->state, env, &picture);
    return need;
}

RL_EXPORT(rl_render) int32_t rl_render(uint32_t batch, uint32_t env, uint32_t mode, uint32_t buf, uint32_t cap)
{
    rl_batch *b = rl_find(batch);
    if (!b || env >= b->envs) return RL_STATUS_ARGUMENT;
    if (mode == RL_MODE_RGB && rl_the_env.draw) return (int32_t)rl_paint(b, env, (uint8_t *)rl_at(buf), cap);
    if (mode != RL_MODE_TEXT || !rl_the_env.render) return RL_STATUS_UNSUPPORTED;
    return (int32_t)rl_the_env.render(b->state, env, mode, (char *)rl_at(buf), cap);
}

RL_EXPORT(rl_last_error) int32_t rl_last_error(uint32_t buf, uint32_t cap)
{
    if (cap >= rl_error.len) __builtin_memcpy(rl_at(buf), rl_error.text, rl_error.len);
    return (int32_t)rl_error.len;
}

RL_EXPORT(rl_current_env) int32_t rl_current_env(void) { return (int32_t)rl_current; }

#endif
