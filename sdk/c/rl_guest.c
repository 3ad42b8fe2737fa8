// Hand-written. The functions of rl_guest.h over rl_env.h, whose environment is filled in while the module runs.
#define RL_FILLED_IN
#include "rl_env.h"

#include "rl_guest.h"
#include "rl_math.h"

// The types of rl_guest.h are those of rl_env.h under names that no other header has.
_Static_assert(sizeof(rl_rng) == sizeof(rl_guest_rng), "rl_guest_rng");
_Static_assert(sizeof(rl_result) == sizeof(rl_guest_result), "rl_guest_result");
_Static_assert(offsetof(rl_result, truncated) == offsetof(rl_guest_result, truncated), "truncated");
_Static_assert(offsetof(rl_result, figures) == offsetof(rl_guest_result, infos), "infos");
_Static_assert(sizeof(rl_picture) == sizeof(rl_guest_picture) && offsetof(rl_picture, height) == offsetof(rl_guest_picture, height), "rl_guest_picture");
_Static_assert((int)RL_GUEST_F32 == RL_F32 && (int)RL_GUEST_I64 == RL_I64 && (int)RL_GUEST_BOOL == RL_BOOL, "types");
_Static_assert((int)RL_GUEST_CHOICE == RL_ARG_CHOICE && (int)RL_GUEST_TRUTH == RL_ARG_BOOL, "types of arguments");

#define RL_MAX_LISTED 64 // arguments

static struct {
    uint32_t bytes, lanes, lane; // of rl_guest_lanes; lanes is 0 where there are none
    rl_guest_setup *setup;
    rl_guest_reset *reset;
    rl_guest_step *step;
    rl_guest_drop *drop;
    rl_guest_mask *mask;
    rl_guest_active *active;
    rl_guest_render *render;
    rl_guest_save *save;
    rl_guest_load *load;
    rl_guest_many *many;
    rl_named observations[RL_MAX_OBSERVATIONS + 1], actions[RL_MAX_ACTIONS + 1];
    rl_figure infos[RL_MAX_FIGURES + 1];
    rl_argument arguments[RL_MAX_LISTED];
    const char *reset_infos[RL_MAX_FIGURES + 1];
} rl_author;

// rl_of is the memory of environment i, which it may share with the other lanes of a group.
static void *rl_of(void *all, uint32_t i)
{
    if (!rl_author.lanes) return (uint8_t *)all + (size_t)i * rl_author.bytes;
    rl_author.lane = i % rl_author.lanes;
    return (uint8_t *)all + (size_t)(i / rl_author.lanes) * rl_author.bytes;
}

// rl_pieces is how many pieces of memory so many environments have.
static uint32_t rl_pieces(uint32_t envs) { return rl_author.lanes ? (envs - 1) / rl_author.lanes + 1 : envs; }

// ---- the author's functions as those of rl_env -------------------------------------------------------------

static void rl_author_drop(void *all, uint32_t envs)
{
    for (uint32_t i = 0; rl_author.drop && i < envs; i++) rl_author.drop(rl_of(all, i));
    rl_put(all, rl_pieces(envs) * rl_author.bytes);
}

static void *rl_author_create(uint32_t envs, rl_config *config)
{
    void *all = rl_new(rl_pieces(envs), rl_author.bytes);
    if (!all) return rl_fail("out of memory"), NULL;
    for (uint32_t i = 0; i < envs; i++) {
        if (rl_author.setup(rl_of(all, i), (rl_guest_config *)config)) continue;
        while (i--)
            if (rl_author.drop) rl_author.drop(rl_of(all, i));
        return rl_put(all, rl_pieces(envs) * rl_author.bytes), NULL;
    }
    return all;
}

static void rl_author_first(void *all, uint32_t i, rl_rng *rng, void *obs)
{
    rl_author.reset(rl_of(all, i), (rl_guest_rng *)rng, (void *const *)obs);
}

static void rl_author_reset(void *all, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row)
{
    rl_first(all, i, rng, obs, row, rl_author_first);
}

RL_INLINE void rl_author_one(void *all, uint32_t i, rl_rng *rng, const void *action, void *obs, rl_result *out)
{
    rl_author.step(rl_of(all, i), (rl_guest_rng *)rng, (const void *const *)action, (void *const *)obs, (rl_guest_result *)out);
}

// rl_author_many has the author's own loop step environments of a plain batch.
static void rl_author_many(const rl_batch *b, uint32_t first, uint32_t count)
{
    const rl_view *v = &b->view;
    rl_guest_rows rows = {
        .action = rl_row(&v->action, first), .obs = rl_row(&v->obs, first), .reward = rl_row(&v->reward, first),
        .terminated = rl_row(&v->terminated, first), .truncated = rl_row(&v->truncated, first),
        .next_action = v->action.env, .next_obs = v->obs.env, .next_reward = v->reward.env,
        .next_terminated = v->terminated.env, .next_truncated = v->truncated.env, .index = first, .current = &rl_current,
        .rng = (rl_guest_rng *)b->rng + first,
    };
    rl_author.many(rl_of(b->state, first), count, &rows);
}

static void rl_author_step(void *all, uint32_t first, uint32_t count, const rl_view *v)
{
    const rl_batch *b = (const rl_batch *)(const void *)((const uint8_t *)v - offsetof(rl_batch, view));
    if (b->plain) rl_author_many(b, first, count);
    else rl_each(all, first, count, v, rl_author_one);
}

// ---- what goes faster where there is little to do ----------------------------------------------------------

static bool rl_is_plain(const rl_batch *b)
{
    return rl_author.many && rl_agents() == 1 && rl_observed() == 1 && rl_acted() == 1 && !rl_the_env.figure_count &&
           !rl_the_env.reset_info_count && !rl_the_env.discount && !rl_takes_turns() && rl_in_place(&b->shape[RL_T_OBS]) &&
           rl_in_place(&b->shape[RL_T_ACTION]);
}

// rl_end_plain is rl_end.
static __attribute__((noinline)) void rl_end_plain(rl_batch *b, uint32_t i)
{
    const rl_view *v = &b->view;
    const rl_tensor *last = &b->shape[RL_T_FINAL];
    if (*rl_row(&v->terminated, i)) *rl_row(&v->truncated, i) = 0;
    if (b->autoreset != RL_AUTORESET_SAME_STEP) {
        rl_set_waiting(b, i, true);
        return;
    }
    uint8_t *row = rl_row(&v->obs, i);
    rl_copy_row(rl_row(last, i), last->elem, row, last->bytes, last->elems, last->bytes);
    rl_current = i;
    if (rl_the_env.params.dtype) rl_params = &b->shape[rl_slot_params()];
    rl_author.reset(rl_of(b->state, i), (rl_guest_rng *)&b->rng[i], (void *const *)&row);
}

static int32_t rl_advance_plain(rl_batch *b, uint32_t t, uint32_t first, uint32_t count)
{
    rl_view *v = &b->view;
    b->actions[0] = rl_tensor_at(b, RL_T_ACTION, t);
    v->action.at = b->actions[0].at;
    if (!rl_action_ok(b, 0, first, count)) return RL_STATUS_ACTION;
    v->obs.at = b->shape[RL_T_OBS].at + (size_t)(t + 1) * b->bind[RL_T_OBS].stride_t;
    v->reward.at = b->shape[RL_T_REWARD].at + (size_t)t * b->bind[RL_T_REWARD].stride_t;
    v->terminated.at = b->shape[RL_T_TERMINATED].at + (size_t)t * b->bind[RL_T_TERMINATED].stride_t;
    v->truncated.at = b->shape[RL_T_TRUNCATED].at + (size_t)t * b->bind[RL_T_TRUNCATED].stride_t;
    rl_author_many(b, first, count);
    rl_finish(b, first, first + count, rl_end_plain);
    if (rl_the_env.mask) rl_legal(b, first, count, t + 1);
    return RL_STATUS_OK;
}

static void rl_author_mask(void *all, uint32_t i, uint8_t *legal) { rl_author.mask(rl_of(all, i), legal); }
static void rl_author_active(void *all, uint32_t i, uint8_t *acts) { rl_author.active(rl_of(all, i), acts); }

static uint32_t rl_author_render(void *all, uint32_t i, uint32_t mode, char *to, uint32_t cap)
{
    return mode ? (uint32_t)RL_STATUS_UNSUPPORTED : rl_author.render(rl_of(all, i), to, cap);
}

static rl_guest_draw *rl_author_paints; // a module that draws nothing is the same without it

static void rl_author_draw(void *all, uint32_t i, rl_picture *picture) { rl_author_paints(rl_of(all, i), (rl_guest_picture *)picture); }

static void rl_author_save(void *all, uint32_t i, uint8_t *to)
{
    if (rl_author.save) rl_author.save(rl_of(all, i), to);
    else __builtin_memcpy(to, rl_of(all, i), rl_author.bytes);
}

static bool rl_author_load(void *all, uint32_t i, const uint8_t *from)
{
    if (rl_author.load) return rl_author.load(rl_of(all, i), from);
    __builtin_memcpy(rl_of(all, i), from, rl_author.bytes);
    return true;
}

// rl_fill_in asks the author what the environment is.
static bool rl_fill_in(rl_config *config)
{
    static const rl_env empty;
    rl_the_env = empty;
    __builtin_memset(&rl_author, 0, sizeof rl_author);
    if (!rl_guest_describe((rl_guest_config *)config)) return false;
    if (!rl_author.step) return rl_fail("rl_guest_describe has not called rl_guest_env");
    if (!rl_observed() || !rl_acted()) return rl_fail("an environment needs an observation and an action");
    if (rl_author.lanes && !rl_author.save) rl_guest_use_save(0, 0, NULL, NULL); // one lane is not the whole memory
    return true;
}

// ---- what the author calls to describe it ------------------------------------------------------------------

// rl_keep copies what the author gives for as long as the module lives.
static void *rl_keep(const void *from, uint32_t bytes)
{
    void *to = from ? rl_new(bytes, 1) : NULL;
    if (to) __builtin_memcpy(to, from, bytes);
    return to;
}

static const char *rl_keep_text(const char *text) { return text && text[0] ? (const char *)rl_keep(text, rl_length(text) + 1) : NULL; }

void rl_guest_env(const char *name, uint32_t bytes, rl_guest_setup *setup, rl_guest_reset *reset, rl_guest_step *step)
{
    rl_author.bytes = bytes;
    rl_author.setup = setup;
    rl_author.reset = reset;
    rl_author.step = step;
    rl_the_env.name = rl_keep_text(name);
    rl_the_env.observations = rl_author.observations;
    rl_the_env.actions = rl_author.actions;
    rl_the_env.create = rl_author_create;
    rl_the_env.destroy = rl_author_drop;
    rl_the_env.reset = rl_author_reset;
    rl_the_env.step = rl_author_step;
    rl_the_env.save_bytes = bytes;
    rl_the_env.save = rl_author_save;
    rl_the_env.load = rl_author_load;
}

// rl_add adds a space. One too many is kept in a last row, so that rl_described refuses the number of them.
static uint32_t rl_add(uint32_t part, const char *name, rl_space space)
{
    bool acts = part == RL_GUEST_ACTION;
    uint32_t *count = acts ? &rl_the_env.action_count : &rl_the_env.observation_count;
    uint32_t at = *count > RL_MAX_OBSERVATIONS ? RL_MAX_OBSERVATIONS : *count;
    rl_named named = {rl_keep_text(name), space};
    (acts ? rl_author.actions : rl_author.observations)[at] = named;
    *count = at + 1;
    return at;
}

static rl_space *rl_added(uint32_t part, uint32_t row)
{
    uint32_t at = row > RL_MAX_OBSERVATIONS ? RL_MAX_OBSERVATIONS : row;
    return &(part == RL_GUEST_ACTION ? rl_author.actions : rl_author.observations)[at].space;
}

uint32_t rl_guest_box(uint32_t part, const char *name, uint32_t element, float low, float high, uint32_t rank, const uint32_t *shape)
{
    rl_space s = {.dtype = (uint8_t)element, .rank = (uint8_t)(rank > RL_MAX_RANK ? RL_MAX_RANK : rank), .low = low, .high = high};
    for (uint32_t i = 0; i < s.rank; i++) s.shape[i] = shape[i];
    return rl_add(part, name, s);
}

uint32_t rl_guest_discrete(uint32_t part, const char *name, int32_t first, uint32_t values)
{
    rl_space s = RL_DISCRETE_FROM(first, values);
    return rl_add(part, name, s);
}

uint32_t rl_guest_multi_discrete(uint32_t part, const char *name, uint32_t n, const uint32_t *values)
{
    rl_space s = {.dtype = RL_I32, .rank = 1, .shape = {n}, .counts = (const uint32_t *)rl_keep(values, 4 * n)};
    return rl_add(part, name, s);
}

uint32_t rl_guest_multi_binary(uint32_t part, const char *name, uint32_t n)
{
    rl_space s = RL_MULTI_BINARY(n);
    return rl_add(part, name, s);
}

uint32_t rl_guest_image(uint32_t part, const char *name, uint32_t height, uint32_t width, uint32_t channels)
{
    rl_space s = RL_IMAGE(height, width, channels);
    return rl_add(part, name, s);
}

void rl_guest_bounds(uint32_t part, uint32_t row, const float *lows, const float *highs)
{
    rl_space *s = rl_added(part, row);
    s->lows = (const float *)rl_keep(lows, 4 * rl_elements(s));
    s->highs = (const float *)rl_keep(highs, 4 * rl_elements(s));
}

void rl_guest_scale(uint32_t part, uint32_t row, float scale) { rl_added(part, row)->scale = scale; }
void rl_guest_limit(uint32_t steps) { rl_the_env.episode_limit = steps; }
void rl_guest_max_envs(uint32_t envs) { rl_the_env.max_envs = envs; }

void rl_guest_argument(const char *name, uint32_t kind, const char *value, const char *doc, double min, double max,
                       const char *choices, bool affects)
{
    rl_argument a = {.name = rl_keep_text(name), .doc = rl_keep_text(doc), .kind = kind, .value = rl_keep_text(value), .min = min,
                     .max = max, .choices = rl_keep_text(choices), .flags = affects ? RL_ARG_AFFECTS_SPACES : 0};
    if (rl_the_env.argument_count == RL_MAX_LISTED) rl_guest_die((const uint8_t *)"more than 64 arguments", 22, NULL, 0, 0);
    rl_author.arguments[rl_the_env.argument_count++] = a;
    rl_the_env.arguments = rl_author.arguments;
}

void rl_guest_info(const char *name, uint32_t gather)
{
    static const uint32_t flags[] = {0, RL_TENSOR_SUM, RL_TENSOR_MEAN, RL_TENSOR_MAX, RL_TENSOR_MIN};
    rl_figure figure = {rl_keep_text(name), gather <= RL_GUEST_MIN ? flags[gather] : 0};
    if (rl_the_env.figure_count > RL_MAX_FIGURES) return;
    rl_author.infos[rl_the_env.figure_count++] = figure;
    rl_the_env.figures = rl_author.infos;
}

void rl_guest_reset_info(const char *name)
{
    if (rl_the_env.reset_info_count > RL_MAX_FIGURES) return;
    rl_author.reset_infos[rl_the_env.reset_info_count++] = rl_keep_text(name);
    rl_the_env.reset_infos = rl_author.reset_infos;
}

void rl_guest_tell(uint32_t k, float value) { rl_reset_info(k, value); }
void rl_guest_dt(float seconds) { rl_the_env.dt = seconds; }
void rl_guest_agent_names(const char *names) { rl_the_env.agent_names = rl_keep_text(names); }
void rl_guest_keys(const char *keys) { rl_the_env.keys = rl_keep_text(keys); }

void rl_guest_lanes(uint32_t n) { rl_author.lanes = n > 1 ? n : 0; }
uint32_t rl_guest_lane(void) { return rl_author.lane; }

void rl_guest_agents(uint32_t n, uint32_t ends)
{
    rl_the_env.agents = n;
    rl_the_env.apart = ends == RL_GUEST_APART;
    rl_the_env.respawn = ends == RL_GUEST_RESPAWN;
}

void rl_guest_last(uint32_t agent, void *const *obs) { rl_last(agent, obs); }

void rl_guest_discount(void) { rl_the_env.discount = true; }

void rl_guest_params(uint32_t n)
{
    rl_space s = RL_BOX(RL_F32, 0, 0, n);
    rl_the_env.params = s;
}

void rl_guest_use_drop(rl_guest_drop *drop) { rl_author.drop = drop; }
void rl_guest_use_mask(rl_guest_mask *mask) { rl_author.mask = mask, rl_the_env.mask = rl_author_mask; }
void rl_guest_use_active(rl_guest_active *active) { rl_author.active = active, rl_the_env.active = rl_author_active; }
void rl_guest_use_render(rl_guest_render *render) { rl_author.render = render, rl_the_env.render = rl_author_render; }

void rl_guest_use_draw(uint32_t width, uint32_t height, float fps, rl_guest_draw *draw)
{
    rl_author_paints = draw, rl_the_env.draw = rl_author_draw;
    rl_the_env.picture_width = width, rl_the_env.picture_height = height, rl_the_env.picture_fps = fps;
}

void rl_guest_rect(rl_guest_picture *picture, float x, float y, float width, float height, uint32_t colour)
{
    rl_draw_rect((rl_picture *)picture, x, y, width, height, colour);
}

void rl_guest_disc(rl_guest_picture *picture, float x, float y, float radius, uint32_t colour)
{
    rl_draw_disc((rl_picture *)picture, x, y, radius, colour);
}

void rl_guest_line(rl_guest_picture *picture, float x, float y, float to_x, float to_y, float thick, uint32_t colour)
{
    rl_draw_line((rl_picture *)picture, (rl_point){x, y}, (rl_point){to_x, to_y}, thick, colour);
}

void rl_guest_use_many(rl_guest_many *many) { rl_author.many = many; }

void rl_guest_use_save(uint32_t version, uint32_t bytes, rl_guest_save *save, rl_guest_load *load)
{
    rl_author.save = save;
    rl_author.load = load;
    rl_the_env.state_version = version;
    rl_the_env.save_bytes = bytes;
    if (save && load) return;
    rl_the_env.save_bytes = 0;
    rl_the_env.save = RL_NOT_SAVED;
    rl_the_env.load = NULL;
}

// ---- what it calls meanwhile -------------------------------------------------------------------------------

int64_t rl_guest_integer(rl_guest_config *config, const char *name, int64_t fallback)
{
    return rl_arg_i64((rl_config *)config, name, fallback);
}

double rl_guest_number(rl_guest_config *config, const char *name, double fallback)
{
    return rl_arg_f64((rl_config *)config, name, fallback);
}

bool rl_guest_truth(rl_guest_config *config, const char *name, bool fallback)
{
    return rl_arg_bool((rl_config *)config, name, fallback);
}

const uint8_t *rl_guest_text(rl_guest_config *config, const char *name, const char *fallback, uint32_t *len)
{
    rl_text text = rl_arg_text((rl_config *)config, name, fallback ? fallback : "");
    *len = text.len;
    return (const uint8_t *)text.at;
}

float rl_guest_param(uint32_t k) { return rl_param_or(k, __builtin_nanf("")); }

bool rl_guest_fail(const uint8_t *text, uint32_t len)
{
    rl_error.len = 0;
    rl_error_add((const char *)text, len);
    return false;
}

_Noreturn void rl_guest_die(const uint8_t *text, uint32_t len, const uint8_t *file, uint32_t file_len, uint32_t line)
{
    rl_error.len = 0;
    if (file) {
        char digits[10];
        uint32_t n = sizeof digits;
        rl_error_add((const char *)file, file_len);
        rl_error_add(":", 1);
        do digits[--n] = (char)('0' + line % 10);
        while (line /= 10);
        rl_error_add(digits + n, sizeof digits - n);
        rl_error_add(": ", 2);
    }
    rl_error_add((const char *)text, len);
    __builtin_trap();
}

void rl_guest_log(uint32_t level, const char *text) { rl_log(level, text); }

uint64_t rl_guest_next(rl_guest_rng *rng) { return rl_next((rl_rng *)rng); }
float rl_guest_uniform(rl_guest_rng *rng, float low, float high) { return rl_uniform((rl_rng *)rng, low, high); }
uint32_t rl_guest_below(rl_guest_rng *rng, uint32_t n) { return rl_below((rl_rng *)rng, n); }

void *rl_guest_alloc(uint32_t bytes) { return rl_new(bytes, 1); }
void rl_guest_free(void *memory, uint32_t bytes) { rl_put(memory, bytes); }

double rl_guest_sin(double x) { return rl_sin(x); }
double rl_guest_cos(double x) { return rl_cos(x); }
double rl_guest_tan(double x) { return rl_tan(x); }
double rl_guest_atan2(double y, double x) { return rl_atan2(y, x); }
double rl_guest_exp(double x) { return rl_exp(x); }
double rl_guest_ln(double x) { return rl_ln(x); }
double rl_guest_pow(double x, double y) { return rl_pow(x, y); }
double rl_guest_tanh(double x) { return rl_tanh(x); }
