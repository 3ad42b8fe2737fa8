// A scripted opponent for Connect Four: it takes a winning move, else blocks the other's, else plays as near to the middle as it can.
// The wire to it must grant write = ["action"].
#include "rl_component.h"

#define COLUMNS 7
#define ROWS 6

enum { ACTIONS };                     // signals
enum { OBS, ACTIVE, POLICY, ACTION }; // columns

typedef struct {
    const rl_column *obs; // who looks sees its own stones and behind them the other's, the lowest row first
    uint32_t t, env, agent;
} Board;

static bool setup(void *self, rl_config *config) { return (void)self, rl_arg_text(config, "policy", "").len || rl_fail("policy: is missing"); }

static bool stone(const Board *b, int side, int column, int row)
{
    if (column < 0 || column >= COLUMNS || row < 0 || row >= ROWS) return false;
    return *RL_AT(float, b->obs, b->t, b->env, b->agent, (uint32_t)((side * ROWS + row) * COLUMNS + column)) > 0;
}

static bool wins(const Board *b, int side, int column, int row)
{
    static const int dc[] = {1, 0, 1, 1}, dr[] = {0, 1, 1, -1};
    for (int d = 0; d < 4; d++) {
        int n = 1;
        for (int way = -1; way < 2; way += 2)
            for (int k = way; stone(b, side, column + k * dc[d], row + k * dr[d]); k += way) n++;
        if (n >= 4) return true;
    }
    return false;
}

static int32_t choose(const Board *b)
{
    int best = 0, worth = -1;
    for (int i = 0; i < COLUMNS; i++) {
        int column = COLUMNS / 2 + (i % 2 ? -(i + 1) / 2 : i / 2), row = 0; // 3, 2, 4, 1, 5, 0, 6
        while (row < ROWS && (stone(b, 0, column, row) || stone(b, 1, column, row))) row++;
        int is = row == ROWS ? -1 : wins(b, 0, column, row) ? 2 : wins(b, 1, column, row);
        if (is > worth) best = column, worth = is;
    }
    return best;
}

static bool act(void *self, const rl_message *m)
{
    const rl_column *obs = rl_column_of(m, OBS), *active = rl_column_of(m, ACTIVE), *policy = rl_column_of(m, POLICY);
    rl_act_request r = rl_act_request_of(m);
    for (uint32_t env = 0; !r.value_only && env < obs->envs; env++)
        for (uint32_t agent = 0; agent < obs->agents; agent++) {
            if (!*RL_AT(uint8_t, active, m->t, env, agent, 0)) continue;
            if (policy->ptr && *RL_AT(uint8_t, policy, m->t, env, agent, 0) != r.policy) continue;
            Board b = {obs, m->t, env, agent};
            *RL_AT(int32_t, rl_column_of(m, ACTION), m->t, env, agent, 0) = choose(&b);
        }
    return (void)self, rl_emit(ACTIONS, m);
}

static const rl_want WANTS[] = {{"obs", RL_F32, 0}, {"active", RL_U8, 0}, {"policy", RL_U8, RL_COLUMN_OPTIONAL}, {"action", RL_I32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"actions", "actions", "the moves have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"act", "act_request", "boards that wait for a move", act, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Board, .name = "opponent@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
