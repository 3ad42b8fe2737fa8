// Hand-written. Environments in a language that has no SDK of its own but can call C: plain functions and plain types, which
// rl_guest.c defines. It does batches, strides, autoreset, random streams, last observations, save and load.
//
//	clang --target=wasm32 -O3 -msimd128 -mbulk-memory -c -I $RLHOST/sdk/c $RLHOST/sdk/c/rl_guest.c -o rl_guest.o
//	python3 -m ziglang cc -target wasm32-freestanding -O3 -msimd128 -mbulk-memory -c $RLHOST/sdk/c/rl_guest.c -o rl_guest.o
//
// The author's program defines rl_guest_describe and links with that object. Texts end with a NUL and are copied, as arrays are.
#ifndef RL_GUEST_H
#define RL_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_guest_config rl_guest_config; // the pipeline's args

// rl_guest_rng is the random stream of one environment.
typedef struct rl_guest_rng {
    uint64_t state;
} rl_guest_rng;

// rl_guest_result is what a step says besides its observation; it starts as zero. Of several agents there are so many of them.
typedef struct rl_guest_result {
    float reward;
    bool terminated, truncated; // if both are set, terminated wins
    float discount;             // of what follows, see rl_guest_discount
    float *infos;               // values of rl_guest_info, in their order; of several agents only those of the first count
} rl_guest_result;

// rl_guest_picture is what a picture is painted on: height rows of width pixels of three bytes, black at first.
typedef struct rl_guest_picture {
    uint8_t *rgb;
    int32_t width, height;
} rl_guest_picture;

// The author's functions. env is the memory of one environment; obs and action have the row of each observation and action. Of
// several agents a row is that of each, one behind the other.
typedef bool rl_guest_setup(void *env, rl_guest_config *config); // once, in memory of zeros; false after rl_guest_fail
typedef void rl_guest_reset(void *env, rl_guest_rng *rng, void *const *obs);
typedef void rl_guest_step(void *env, rl_guest_rng *rng, const void *const *action, void *const *obs, rl_guest_result *out);
typedef void rl_guest_drop(void *env);
typedef void rl_guest_mask(void *env, uint8_t *legal);
typedef void rl_guest_active(void *env, uint8_t *acts);
typedef uint32_t rl_guest_render(void *env, char *to, uint32_t cap);
typedef void rl_guest_draw(void *env, rl_guest_picture *picture);
typedef void rl_guest_save(void *env, uint8_t *to);
typedef bool rl_guest_load(void *env, const uint8_t *from);

// rl_guest_describe is the author's: it says what the environment is, with the functions down to rl_guest_many, for these arguments.
// It returns false after rl_guest_fail.
bool rl_guest_describe(rl_guest_config *config);

// rl_guest_env comes first: name@version, the bytes of one environment, and its functions.
void rl_guest_env(const char *name, uint32_t bytes, rl_guest_setup *setup, rl_guest_reset *reset, rl_guest_step *step);

// Spaces. part is RL_GUEST_OBSERVATION or RL_GUEST_ACTION, and name the path where there are several, else NULL. Each returns the
// number of its row. A box of equal bounds is unbounded; that of an action is of RL_GUEST_F32.
enum { RL_GUEST_OBSERVATION, RL_GUEST_ACTION };
enum { RL_GUEST_U8 = 1, RL_GUEST_I8, RL_GUEST_I16, RL_GUEST_I32, RL_GUEST_I64, RL_GUEST_F32 = 8, RL_GUEST_BOOL = 10 };
uint32_t rl_guest_box(uint32_t part, const char *name, uint32_t element, float low, float high, uint32_t rank, const uint32_t *shape);
uint32_t rl_guest_discrete(uint32_t part, const char *name, int32_t first, uint32_t values);              // one int32_t
uint32_t rl_guest_multi_discrete(uint32_t part, const char *name, uint32_t n, const uint32_t *values);    // n of int32_t
uint32_t rl_guest_multi_binary(uint32_t part, const char *name, uint32_t n);                              // n of int32_t
uint32_t rl_guest_image(uint32_t part, const char *name, uint32_t height, uint32_t width, uint32_t channels); // of uint8_t
void rl_guest_bounds(uint32_t part, uint32_t row, const float *lows, const float *highs);                 // of each element of a box
void rl_guest_scale(uint32_t part, uint32_t row, float scale); // by which the host multiplies elements for a network

// rl_guest_limit: steps after which the environment itself truncates. rl_guest_max_envs: most environments in one batch.
void rl_guest_limit(uint32_t steps);
void rl_guest_max_envs(uint32_t envs);

// rl_guest_argument lists an argument for the host to check: what it is for, its default, bounds of a number (equal = none), and
// choices, one a line. affects says that spaces depend on it. A host refuses arguments that no list has, where there is one.
enum { RL_GUEST_INTEGER = 1, RL_GUEST_NUMBER, RL_GUEST_TRUTH, RL_GUEST_TEXT, RL_GUEST_CHOICE };
void rl_guest_argument(const char *name, uint32_t kind, const char *value, const char *doc, double min, double max,
                       const char *choices, bool affects);

// rl_guest_info adds a number that is told in each step; gather says how those of an episode become one.
enum { RL_GUEST_LAST, RL_GUEST_SUM, RL_GUEST_MEAN, RL_GUEST_MAX, RL_GUEST_MIN };
void rl_guest_info(const char *name, uint32_t gather);

// rl_guest_reset_info adds a number of an episode that begins, which reset gives to rl_guest_tell: k is 0 for the first that was
// added. One that is not told is 0.
void rl_guest_reset_info(const char *name);
void rl_guest_tell(uint32_t k, float value);

void rl_guest_dt(float seconds); // of simulated time in a step

// rl_guest_agents: how many there are. By itself the first result ends the episode of all. RL_GUEST_APART: each agent's result ends
// its own, and the environment begins anew when all have ended. RL_GUEST_RESPAWN: so do theirs, and each begins anew at once: the step
// gives its last observation to rl_guest_last, puts it back into the world, and writes its first one.
enum { RL_GUEST_TOGETHER, RL_GUEST_APART, RL_GUEST_RESPAWN };
void rl_guest_agents(uint32_t n, uint32_t ends);
void rl_guest_agent_names(const char *names); // one for each agent, one a line
void rl_guest_keys(const char *keys); // actions of the keys of a person who plays, one a line, such as left=0
void rl_guest_last(uint32_t agent, void *const *obs); // in a step: what the rows of obs show of the agent is its last observation

void rl_guest_discount(void);       // result.discount takes the place of the learner's gamma
void rl_guest_params(uint32_t n);   // numbers that the host gives with a reset, see rl_guest_param
void rl_guest_use_drop(rl_guest_drop *drop);       // called for each environment at the end
void rl_guest_use_mask(rl_guest_mask *mask);       // writes 1 for each legal action, 0 for others, the first discrete action's first
void rl_guest_use_active(rl_guest_active *active); // writes 1 for each agent that acts in the next step, 0 for others
void rl_guest_use_render(rl_guest_render *render); // writes text and returns the length needed

// rl_guest_use_draw: draw paints pictures of that size in pixels, so many a second at normal speed, 0 = not said. It changes no state.
void rl_guest_use_draw(uint32_t width, uint32_t height, float fps, rl_guest_draw *draw);

// Shapes of a picture. Places are in pixels from the upper left corner, with fractions; colours are 0xRRGGBB. What lies outside is cut off.
void rl_guest_rect(rl_guest_picture *picture, float x, float y, float width, float height, uint32_t colour);
void rl_guest_disc(rl_guest_picture *picture, float x, float y, float radius, uint32_t colour);
void rl_guest_line(rl_guest_picture *picture, float x, float y, float to_x, float to_y, float thick, uint32_t colour);

// rl_guest_use_save takes the place of a copy of the environment's bytes, which one with pointers needs: save writes so many bytes.
// Raise version when their meaning changes. Without functions the environment cannot be saved.
void rl_guest_use_save(uint32_t version, uint32_t bytes, rl_guest_save *save, rl_guest_load *load);

// rl_guest_many (optional) steps count environments in one call, where there is one agent, one observation and one action, no info
// and no discount, and all rows are packed. It writes obs and result rows of each, and index in *current before it steps it.
typedef struct rl_guest_rows {
    const uint8_t *action;
    uint8_t *obs, *reward, *terminated, *truncated;                            // reward is a float
    uint32_t next_action, next_obs, next_reward, next_terminated, next_truncated; // bytes from one environment to the next
    uint32_t index, *current;                                                  // of the first environment
    rl_guest_rng *rng;                                                         // of the first, one behind the other
} rl_guest_rows;
typedef void rl_guest_many(void *env, uint32_t count, const rl_guest_rows *rows);
void rl_guest_use_many(rl_guest_many *many);

// rl_guest_lanes: n environments share the memory of rl_guest_env's bytes, so that element k of arrays in it is one of them, a lane of a
// vector. All functions get that memory as env, and rl_guest_lane says which lane is meant; setup is called for each. Environment i of
// rl_guest_many is lane (index % n + i) % n, in memory (index % n + i) / n from env on. They are saved by rl_guest_use_save alone.
void rl_guest_lanes(uint32_t n);
uint32_t rl_guest_lane(void);

// Arguments: fallback is taken where the pipeline gives none. A text is not ended by a NUL; it is valid during the call.
int64_t rl_guest_integer(rl_guest_config *config, const char *name, int64_t fallback);
double rl_guest_number(rl_guest_config *config, const char *name, double fallback);
bool rl_guest_truth(rl_guest_config *config, const char *name, bool fallback);
const uint8_t *rl_guest_text(rl_guest_config *config, const char *name, const char *fallback, uint32_t *len);
float rl_guest_param(uint32_t k); // of the episode that reset begins; NaN where nobody gives it

// rl_guest_fail sets the text that the host shows and returns false. rl_guest_die does so, in the middle of a call, and traps; file
// may be NULL.
bool rl_guest_fail(const uint8_t *text, uint32_t len);
_Noreturn void rl_guest_die(const uint8_t *text, uint32_t len, const uint8_t *file, uint32_t file_len, uint32_t line);
void rl_guest_log(uint32_t level, const char *text); // 0 debug, 1 info, 2 warning, 3 error; the pipeline must grant "log"

// Random numbers: 64 bits; from low to high; from 0 to n-1.
uint64_t rl_guest_next(rl_guest_rng *rng);
float rl_guest_uniform(rl_guest_rng *rng, float low, float high);
uint32_t rl_guest_below(rl_guest_rng *rng, uint32_t n);

// Memory, for languages whose own is not there. Who frees says the size.
void *rl_guest_alloc(uint32_t bytes);
void rl_guest_free(void *memory, uint32_t bytes);

// Mathematics with the same bits on every machine (rl_math.h).
double rl_guest_sin(double x);
double rl_guest_cos(double x);
double rl_guest_tan(double x);
double rl_guest_atan2(double y, double x);
double rl_guest_exp(double x);
double rl_guest_ln(double x);
double rl_guest_pow(double x, double y);
double rl_guest_tanh(double x);

#ifdef __cplusplus
}
#endif
#endif
