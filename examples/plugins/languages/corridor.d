// A corridor: the policy stands in one of its cells and must find the right end.
extern (C):

struct Result { float reward; bool terminated, truncated; float discount; float* infos; }
long rl_guest_integer(void* config, const(char)* name, long fallback);
bool rl_guest_fail(const(char)* text, uint len);
void rl_guest_env(const(char)* name, uint bytes, void* setup, void* reset, void* step);
uint rl_guest_box(uint part, const(char)* name, uint element, float low, float high, uint rank, const(uint)* shape);
uint rl_guest_discrete(uint part, const(char)* name, int first, uint values);
void rl_guest_limit(uint steps);
uint rl_guest_below(void* rng, uint n);

struct Corridor { int length, cell, steps; }

bool setup(Corridor* env, void* config)
{
    long length = rl_guest_integer(config, "length", 8);
    if (length < 2 || length > 1000) return rl_guest_fail("length must be 2 to 1000", 24);
    env.length = cast(int) length;
    return true;
}

void look(Corridor* env, float** obs) { obs[0][0] = cast(float) env.cell / cast(float)(env.length - 1); }

void reset(Corridor* env, void* rng, float** obs)
{
    env.cell = rl_guest_below(rng, env.length - 1); // anywhere but the end
    env.steps = 0;
    look(env, obs);
}

void step(Corridor* env, void* rng, int** action, float** obs, Result* result)
{
    env.cell += action[0][0] == 1 ? 1 : -1;
    if (env.cell < 0) env.cell = 0;
    env.steps++;
    look(env, obs);
    result.terminated = env.cell == env.length - 1;
    result.truncated = env.steps >= 50;
    result.reward = result.terminated ? 1 : -0.01f;
}

bool rl_guest_describe(void* config)
{
    uint one = 1;
    rl_guest_env("corridor@1", Corridor.sizeof, &setup, &reset, &step);
    rl_guest_box(0, null, 8, 0, 1, 1, &one);
    rl_guest_discrete(1, null, 0, 2);
    rl_guest_limit(50);
    return true;
}
