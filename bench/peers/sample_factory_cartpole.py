#!/usr/bin/env python3
"""Sample Factory's APPO on CartPole-v1, on all cores, until the mean return of the last 100 training episodes is 475:
with the settings of its own CartPole example, or with its counterparts of the settings of rlhost's default pipeline."""

import argparse
import tempfile
import time

import report

COMMON = ["--algo=APPO", "--env=CartPole-v1", "--use_rnn=False", "--recurrence=1", "--device=cpu", "--num_workers=2",
          "--with_vtrace=False", "--experiment=cartpole", "--restart_behavior=overwrite"]
SETTINGS = {
    # What its train_gym_env.py names for CartPole-v1; the rest are its defaults: one shared ELU network 512-512,
    # rollouts of 32, one epoch, learning rate 1e-4.
    "example": ["--num_envs_per_worker=20", "--policy_workers_per_policy=2", "--batch_size=512", "--reward_scale=0.1",
                "--save_every_sec=10", "--experiment_summaries_interval=10"],
    # rlhost's default pipeline as far as it can be said in its words; its learning rate cannot fall linearly.
    "tuned": ["--num_envs_per_worker=16", "--policy_workers_per_policy=1", "--rollout=64", "--batch_size=64",
              "--num_batches_per_epoch=32", "--num_epochs=2", "--shuffle_minibatches=True", "--learning_rate=1.5e-3",
              "--ppo_clip_ratio=0.2", "--exploration_loss_coeff=0.0", "--value_loss_coeff=0.25", "--max_grad_norm=0.5",
              "--adam_eps=1e-5", "--value_bootstrap=True", "--reward_scale=0.1", "--actor_critic_share_weights=False",
              "--encoder_mlp_layers", "64", "64", "--nonlinearity=tanh", "--normalize_input=False"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", choices=SETTINGS, default="example")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--goal", type=float, default=475)
    parser.add_argument("--seconds", type=int, default=180, help="give up after so long")
    args = parser.parse_args()

    from sample_factory.algo.runners.runner import AlgoObserver
    from sample_factory.train import make_runner
    from sf_examples.train_gym_env import parse_custom_args, register_custom_components

    class Goal(AlgoObserver):
        """Looks at the mean return after each training iteration and ends the training once it is reached."""

        first, over = None, False

        def on_training_step(self, runner, training_iteration_since_resume):
            steps, now = runner.env_steps.get(0, 0), time.perf_counter()
            if self.over or steps == 0:
                return
            if self.first is None:
                self.first = (steps, now)
            returns = runner.policy_avg_stats.get("reward", [[]])[0]
            mean = sum(returns) / max(len(returns), 1)
            reached = len(returns) >= 100 and mean >= args.goal
            learn = now - self.first[1]
            self.over = reached or learn > args.seconds
            if self.over:
                report.emit(peer="sample-factory", settings=args.settings, seed=args.seed, reached=reached, mean_return=mean,
                            env_steps=steps, wall_seconds=report.process_age(), learn_seconds=learn,
                            env_steps_per_s=(steps - self.first[0]) / learn)
                runner.cfg.train_for_env_steps = 0  # its own stop rule, looked at next

    with tempfile.TemporaryDirectory(prefix="sample-factory-") as folder:
        register_custom_components()
        argv = [*COMMON, *SETTINGS[args.settings], f"--seed={args.seed}", f"--train_dir={folder}"]
        _, runner = make_runner(parse_custom_args(argv))
        runner.register_observer(Goal())
        runner.init()
        runner.run()


if __name__ == "__main__":
    main()
