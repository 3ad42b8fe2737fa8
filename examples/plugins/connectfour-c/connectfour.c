// Connect Four: two players drop stones into seven columns in turn, and who first has four in a row wins. Both are agents of one
// policy, which sees its own stones and the other's. The loser gets its reward for the move that let the other win.
#include "rl_env.h"

#define COLUMNS 7
#define ROWS 6
#define CELLS (COLUMNS * ROWS)

typedef struct {
    uint8_t stones[2][CELLS]; // 1 where the player has one; row 0 is the lowest
    uint8_t height[COLUMNS];
    uint8_t turn, count;
} Game;

static bool setup(Game *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

static void look(const Game *env, float *obs)
{
    for (int k = 0; k < 2; k++)
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < CELLS; i++) *obs++ = env->stones[k ^ side][i];
}

static void reset(Game *env, rl_rng *rng, float *obs)
{
    __builtin_memset(env, 0, sizeof *env);
    env->turn = (uint8_t)rl_below(rng, 2); // whoever begins has the better game
    look(env, obs);
}

// run counts the player's stones from a cell on in one direction, that cell left out.
static int run(const uint8_t *stones, int column, int row, int dc, int dr)
{
    int n = 0;
    for (;;) {
        column += dc, row += dr;
        if (column < 0 || column >= COLUMNS || row < 0 || row >= ROWS || !stones[row * COLUMNS + column]) return n;
        n++;
    }
}

static bool wins(const uint8_t *stones, int column, int row)
{
    static const int dc[] = {1, 0, 1, 1}, dr[] = {0, 1, 1, -1};
    for (int d = 0; d < 4; d++)
        if (run(stones, column, row, dc[d], dr[d]) + run(stones, column, row, -dc[d], -dr[d]) >= 3) return true;
    return false;
}

static void step(Game *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    int k = env->turn, column = action[k];
    bool full = env->height[column] == ROWS, won = false; // who plays a full column has lost
    if (!full) {
        int row = env->height[column]++;
        env->stones[k][row * COLUMNS + column] = 1;
        env->count++;
        won = wins(env->stones[k], column, row);
    }
    env->turn = (uint8_t)(1 - k);
    look(env, obs);
    out->terminated = won || full || env->count == CELLS;
    if (won || full) {
        out[k].reward = won ? 1 : -1;
        out[1 - k].reward = -out[k].reward;
    }
}

static void mask(void *state, uint32_t i, uint8_t *legal)
{
    const Game *env = (const Game *)state + i;
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < COLUMNS; c++) *legal++ = env->height[c] < ROWS;
}

static void active(void *state, uint32_t i, uint8_t *acts)
{
    acts[1 - ((const Game *)state + i)->turn] = 0;
}

#define CELL 24 // pixels

static void draw(void *state, uint32_t i, rl_picture *p)
{
    const Game *env = (const Game *)state + i;
    rl_draw_rect(p, 0, 0, COLUMNS * CELL, ROWS * CELL, 0x1f4fbf);
    for (int row = 0; row < ROWS; row++)
        for (int c = 0; c < COLUMNS; c++) {
            int cell = row * COLUMNS + c;
            uint32_t colour = env->stones[0][cell] ? 0xe03a3a : env->stones[1][cell] ? 0xf2d13c : 0x0d1f4a;
            rl_draw_disc(p, CELL * ((float)c + 0.5f), CELL * ((float)(ROWS - 1 - row) + 0.5f), CELL * 0.4f, colour);
        }
}

// render shows the stones of the players as x and o, and who plays next below them.
static uint32_t render(void *state, uint32_t i, uint32_t mode, char *to, uint32_t cap)
{
    const Game *env = (const Game *)state + i;
    char cells[(ROWS + 2) * COLUMNS * 2];
    (void)mode;
    __builtin_memset(cells, ' ', sizeof cells);
    for (int c = 0; c < COLUMNS; c++) {
        for (int row = 0; row < ROWS; row++) {
            int cell = row * COLUMNS + c;
            cells[((ROWS - 1 - row) * COLUMNS + c) * 2] = env->stones[0][cell] ? 'x' : env->stones[1][cell] ? 'o' : '.';
        }
        cells[(ROWS * COLUMNS + c) * 2] = (char)('0' + c);
    }
    __builtin_memcpy(cells + (ROWS + 1) * COLUMNS * 2, env->turn ? "o plays" : "x plays", 7);
    return rl_put_board(cells, ROWS + 2, COLUMNS * 2, to, cap);
}

RL_ENV(Game, setup, reset, step, .name = "connectfour@1", .action = RL_DISCRETE(COLUMNS), .obs = RL_BOX(RL_F32, 0, 1, 2, ROWS, COLUMNS),
       .episode_limit = CELLS, .agents = 2, .picture_width = COLUMNS * CELL, .picture_height = ROWS * CELL, .mask = mask, .active = active,
       .render = render, .draw = draw)
