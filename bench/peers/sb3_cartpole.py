#!/usr/bin/env python3
"""Stable-Baselines3's PPO on CartPole-v1 with the settings of rlhost's default pipeline, on one thread, until the
mean return of the last 100 training episodes is 475."""

import argparse
import time

import report

ENVS, HORIZON, ANNEAL_ENV_STEPS = 32, 64, 500_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--goal", type=float, default=475)
    parser.add_argument("--env-steps", type=int, default=ANNEAL_ENV_STEPS, help="give up after so many")
    args = parser.parse_args()

    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)

    class Goal(BaseCallback):
        """Looks at the mean return after each rollout, as rlhost does with each dataset, and ends the training."""

        over = False

        def _on_training_start(self):
            self.began = time.perf_counter()

        def _on_rollout_end(self):
            returns = [episode["r"] for episode in self.model.ep_info_buffer]
            mean = sum(returns) / max(len(returns), 1)
            reached = len(returns) >= 100 and mean >= args.goal
            self.over = reached or self.num_timesteps >= args.env_steps
            if self.over:
                learn = time.perf_counter() - self.began
                report.emit(peer="sb3", seed=args.seed, reached=reached, mean_return=mean, env_steps=self.num_timesteps,
                            wall_seconds=report.process_age(), learn_seconds=learn,
                            env_steps_per_s=self.num_timesteps / learn)

        def _on_step(self):
            return not self.over

    model = PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", n_envs=ENVS, seed=args.seed), device="cpu", seed=args.seed,
        n_steps=HORIZON, batch_size=64, n_epochs=2, gamma=0.99, gae_lambda=0.95, clip_range=0.2, ent_coef=0.0,
        learning_rate=lambda left: 1.5e-3 * left,
        vf_coef=0.25,  # of the mean squared error; rlhost's 0.5 is of half of it
        max_grad_norm=0.5, normalize_advantage=True,
        policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": torch.nn.Tanh, "ortho_init": True},
    )
    # The total is what the learning rate falls to 0 over; the callback ends the training.
    model.learn(total_timesteps=ANNEAL_ENV_STEPS, callback=Goal())


if __name__ == "__main__":
    main()
