// Tests of rl_env.hpp, native: what is saved is loaded elsewhere, and what is no such state changes nothing. With -DPOINTER and -DUNSAVED
// it does not compile.
#define RL_NO_MAIN
#include "rl_env.hpp"

#include <array>
#include <deque>

struct Item {
    std::string name;
    std::vector<int16_t> marks;
    template <class Archive> void fields(Archive &archive) { archive(name, marks); }
};

class Everything {
public:
    std::vector<Item> items;
    std::deque<int32_t> queue;
    std::vector<bool> bits;
    std::array<std::string, 2> pair;
    double speed = 0;
    int32_t steps = 0;
    int32_t limit = 5; // not saved: an argument
#ifdef POINTER
    int32_t *where = nullptr;
#endif

    bool setup(rl_config *config)
    {
        limit = (int32_t)rl_arg_i64(config, "limit", 5);
        return limit > 0 || rl_fail("limit must be positive");
    }
    void reset(rl_rng &rng, float *obs)
    {
        items.assign(1 + rl_below(&rng, 3), {});
        for (Item &item : items) item = {"item " + std::to_string(rl_below(&rng, 100)), {1, 2}};
        queue = {(int32_t)rl_below(&rng, 9), 7};
        bits.assign(3, false);
        pair = {"a", "bc"};
        speed = 0.25;
        steps = 0;
        look(obs);
    }
    void step(rl_rng &rng, const float *action, float *obs, rl_result &out)
    {
        items.front().marks.push_back((int16_t)rl_below(&rng, 9));
        items.back().name += 'x';
        queue.push_back(steps);
        bits[(size_t)steps % 3] = !bits[(size_t)steps % 3];
        pair[1] += 'd';
        speed += *action;
        out.truncated = ++steps >= limit;
        look(obs);
    }
    void look(float *obs) const
    {
        double sum = speed + (double)queue.size() + bits[0] + 2 * bits[1] + 4 * bits[2] + (double)pair[1].size() + queue.front();
        for (const Item &item : items) {
            for (char c : item.name) sum = sum * 1.01 + c;
            for (int16_t mark : item.marks) sum = sum * 1.02 + mark;
        }
        *obs = (float)sum;
    }
    std::string render() const { return items.front().name; }
#ifdef POINTER
    template <class Archive> void fields(Archive &archive) { archive(where); }
#elif !defined(UNSAVED)
    template <class Archive> void fields(Archive &archive) { archive(items, queue, bits, pair, speed, steps); }
#endif
};

RL_CLASS(Everything, .name = "everything@1", .action = RL_BOX(RL_F32, -1, 1, 1), .obs = RL_BOX(RL_F32, 0, 0, 1))

static int failures;
#define CHECK(x) ((x) ? (void)0 : (void)(failures++, printf("line %d: %s\n", __LINE__, #x)))

static float step(rl_play *p, uint32_t env)
{
    for (uint32_t i = 0; i < p->envs; i++) *(float *)(void *)rl_play_row(p, RL_T_ACTION, 0, i, 0) = 0.5f;
    CHECK(rl_step(p->batch, 0) == 0);
    rl_play_forward(p);
    return *(float *)(void *)rl_play_row(p, RL_T_OBS, 0, env, 0);
}

int main()
{
    static rl_play p;
    p.envs = 2;
    const char *call;
    CHECK(rl_play_open(&p, &call) >= 0 && rl_play_reset(&p, 3) == 0);
    step(&p, 0);
    uint32_t at = rl_play_memory(4096), torn = rl_play_memory(4096);
    int32_t n = rl_save(p.batch, 0, at, 4096);
    CHECK(n > 60 && rl_save(p.batch, 0, at, 0) == n);
    float want = step(&p, 0);
    CHECK(rl_save(p.batch, 0, torn, 4096) > n); // it has grown
    CHECK(rl_load(p.batch, 1, at, (uint32_t)n) == 0 && step(&p, 1) == want);

    // Every state that is cut off, and every one with another byte in it, is refused or loaded, and never more than that.
    CHECK(rl_load(p.batch, 1, at, (uint32_t)n) == 0);
    for (uint32_t len = 0; len < (uint32_t)n; len++) {
        memcpy(rl_at(torn), rl_at(at), len);
        uint32_t rest = len < 8 ? 0 : len - 8;
        if (len >= 8) memcpy((uint8_t *)rl_at(torn) + 4, &rest, 4);
        CHECK(rl_load(p.batch, 1, torn, len) < 0);
    }
    CHECK(step(&p, 1) == want); // the refused ones have changed nothing
    for (uint32_t i = 8; i < (uint32_t)n; i++) {
        memcpy(rl_at(torn), rl_at(at), (size_t)n);
        *((uint8_t *)rl_at(torn) + i) ^= 0xff;
        int32_t status = rl_load(p.batch, 1, torn, (uint32_t)n);
        CHECK(status == 0 || status == RL_STATUS_ARGUMENT);
    }
    CHECK(rl_render(p.batch, 0, 0, at, 64) > 6 && !memcmp(rl_at(at), "item ", 5));
    CHECK(rl_destroy(p.batch) == 0);
    snprintf(p.config, sizeof p.config, "limit=0\n");
    CHECK(rl_play_open(&p, &call) == RL_STATUS_CONFIG && !strcmp(rl_play_why(), "limit must be positive"));
    printf("%d failures\n", failures);
    return failures != 0;
}
