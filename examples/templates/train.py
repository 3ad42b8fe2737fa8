"""Trains on the environment, and lets the policy play an episode."""

import gymnasium
import rlhost

import {module}  # noqa: F401, registers the environment

if __name__ == "__main__":
    run = rlhost.train("gymnasium:{module}:{env}-v0", 60_000, seed=1, stop={"return": 90})
    print(run)
    policy, env = rlhost.load(run), gymnasium.make("{env}-v0")
    obs, _ = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        action, _ = policy.predict(obs)
        obs, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    print(f"one episode: {total:.0f}")
