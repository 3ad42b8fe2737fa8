// Nim: two players take stones from heaps in turn, as many as they like of one heap, and who takes the last wins. Both are agents of one
// policy. The one who has lost gets its reward for the move after which the other took the last.
#include "rl_env.hpp"

#include <algorithm>

constexpr uint32_t HEAPS = 3, MOST = 5, MOVES = HEAPS * MOST; // a move is a heap and how many

class Nim {
    std::vector<uint8_t> heaps;
    uint8_t turn = 0;

    void look(float *obs) const // from each player's place: the heaps, and whether it is its turn
    {
        for (uint8_t player = 0; player < 2; player++) {
            for (uint8_t heap : heaps) *obs++ = (float)heap / MOST;
            *obs++ = player == turn;
        }
    }

public:
    void reset(rl_rng &rng, float *obs)
    {
        heaps.assign(HEAPS, 0);
        for (uint8_t &heap : heaps) heap = (uint8_t)(1 + rl_below(&rng, MOST));
        turn = (uint8_t)rl_below(&rng, 2);
        look(obs);
    }

    void step(rl_rng &, const int32_t *action, float *obs, rl_result *out)
    {
        uint32_t move = (uint32_t)action[turn], heap = move / MOST, count = move % MOST + 1;
        bool wrong = count > heaps[heap]; // who takes more than there is has lost
        if (!wrong) heaps[heap] = (uint8_t)(heaps[heap] - count);
        bool won = !wrong && std::all_of(heaps.begin(), heaps.end(), [](uint8_t left) { return !left; });
        if (wrong || won) {
            out[turn].reward = won ? 1 : -1;
            out[1 - turn].reward = -out[turn].reward;
            out->terminated = true;
        }
        turn = 1 - turn;
        look(obs);
    }

    void mask(uint8_t *legal) const
    {
        for (int player = 0; player < 2; player++)
            for (uint8_t heap : heaps)
                for (uint32_t count = 1; count <= MOST; count++) *legal++ = count <= heap;
    }

    void active(uint8_t *acts) const { acts[1 - turn] = 0; }

    template <class Archive> void fields(Archive &archive) { archive(heaps, turn); }
};

RL_CLASS(Nim, .name = "nim@1", .action = RL_DISCRETE(MOVES), .obs = RL_BOX(RL_F32, 0, 1, HEAPS + 1), .episode_limit = HEAPS * MOST, .agents = 2)
