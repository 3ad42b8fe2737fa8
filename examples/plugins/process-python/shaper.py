#!/usr/bin/env python3
"""A component that shapes rewards: it sits between the rollouts and the batcher, and rewrites the reward column of each
trajectory where it lies, before the learner sees it. See README.md."""

import dataclasses

import numpy

import rlhost


@dataclasses.dataclass
class Config:
    """The component's table: of each reward r the learner gets scale*r + shift, at most clip in magnitude."""

    scale: float = 1.0
    shift: float = 0.0
    clip: float = 0.0  # 0 = none


class Shaper(rlhost.Component):
    """Scales, shifts and clips rewards before they are learned from."""

    kind = "reward_shaper"
    signals = [rlhost.Signal("trajectories", "trajectory", "a block with shaped rewards")]
    slots = [rlhost.Slot("on_trajectories", "trajectory", "a full block")]

    def configure(self, config):
        self.config = rlhost.decode(config, Config)
        if self.config.clip < 0:
            raise rlhost.ConfigError("clip", f"is {self.config.clip:g}, want 0 (none) or more")

    def on_trajectories(self, m):
        with self.host.lease(m.handle, write=["reward"]) as block:
            reward = block.trajectory.reward  # float32 [steps, envs]: the block's own memory
            reward *= self.config.scale
            reward += self.config.shift
            if self.config.clip:
                numpy.clip(reward, -self.config.clip, self.config.clip, out=reward)
            self.host.stats.observe("shaper/reward", float(reward.mean()))
            self.host.forward("trajectories", m)

    @rlhost.request
    def set_scale(self, scale: float) -> float:
        """Sets the scale of rewards, and answers with the former one."""
        if abs(scale) > 1e6:
            raise ValueError(f"a scale of {scale:g}, want 1e6 at most in magnitude")
        former, self.config.scale = self.config.scale, scale
        return former


if __name__ == "__main__":
    rlhost.serve(Shaper)
