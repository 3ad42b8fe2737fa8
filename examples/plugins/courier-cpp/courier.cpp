// Courier: a line of houses, of which some wait for a parcel. The courier sees which, where it stands and how many parcels it has: a Dict of
// three. It moves, and throws with a strength or keeps: a Tuple of a Discrete and a Box. A parcel that lands at a house that waits is
// worth 1; one elsewhere is lost.
#include "rl_env.hpp"

#include <algorithm>

constexpr int32_t HOUSES = 9, PARCELS = 4, STEPS = 30;

#define SEEN(X)                                                                                                \
    X(waiting, "street/waiting", uint8_t, RL_BOX(RL_U8, 0, 1, HOUSES))                                         \
    X(place, "street/place", int32_t, RL_DISCRETE(HOUSES))                                                     \
    X(left, "bag", float, RL_BOX(RL_F32, 0, 1, 1))
RL_DICT(Seen, seen, SEEN)

#define ACTS(X)                                                                                                \
    X(move, "0", const int32_t, RL_DISCRETE_FROM(-1, 3))                                                       \
    X(strength, "1", const float, RL_BOX(RL_F32, -3, 3, 1))
RL_DICT(Acts, acts, ACTS)

class Courier {
    std::vector<bool> waiting;
    std::vector<std::string> diary; // what became of each parcel
    int32_t place = 0, left = 0, steps = 0;

    void look(const Seen *obs) const
    {
        for (int32_t i = 0; i < HOUSES; i++) obs->waiting[i] = waiting[(size_t)i];
        *obs->place = place;
        *obs->left = (float)left / PARCELS;
    }

public:
    void reset(rl_rng &rng, const Seen *obs)
    {
        waiting.assign(HOUSES, false);
        diary.clear();
        for (int32_t i = 0; i < PARCELS; i++) waiting[rl_below(&rng, HOUSES)] = true;
        place = (int32_t)rl_below(&rng, HOUSES);
        left = PARCELS;
        steps = 0;
        look(obs);
    }

    void step(rl_rng &, const Acts *action, const Seen *obs, rl_result &out)
    {
        place = std::min(std::max(place + *action->move, 0), HOUSES - 1);
        float strength = *action->strength;
        if (strength <= -0.5f || strength >= 0.5f) { // else it keeps the parcel
            int32_t target = place + (int32_t)(strength + (strength < 0 ? -0.5f : 0.5f));
            bool right = target >= 0 && target < HOUSES && waiting[(size_t)target];
            if (right) waiting[(size_t)target] = false;
            out.reward = right;
            diary.push_back((right ? "house " : "lost at ") + std::to_string(target));
            left--;
        }
        out.terminated = !left || std::find(waiting.begin(), waiting.end(), true) == waiting.end();
        out.truncated = ++steps >= STEPS;
        look(obs);
    }

    std::string render() const
    {
        std::string text;
        for (int32_t i = 0; i < HOUSES; i++) text += i == place ? '@' : waiting[(size_t)i] ? '!' : '.';
        for (const std::string &entry : diary) text += "\n" + entry;
        return text + "\n";
    }

    template <class Archive> void fields(Archive &archive) { archive(waiting, diary, place, left, steps); }
};

RL_CLASS(Courier, .name = "courier@1", RL_OBSERVATIONS(seen), RL_ACTIONS(acts), .episode_limit = STEPS)
