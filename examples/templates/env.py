"""A thermostat: switch a heater so that the room stays near 20 °C."""

import gymnasium
import numpy as np


class Thermostat(gymnasium.Env):
    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-60.0, 60.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # heater off, heater on

    def observe(self):
        return np.array([self.room - 20.0, self.outside], np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.room = self.np_random.uniform(10.0, 30.0)
        self.outside = self.np_random.uniform(-10.0, 10.0)
        return self.observe(), {}

    def step(self, action):
        self.room += 0.05 * (self.outside - self.room) + (2.0 if action == 1 else 0.0)
        reward = 1.0 if abs(self.room - 20.0) < 1.5 else 0.0
        return self.observe(), reward, False, False, {}


gymnasium.register("{env}-v0", entry_point=Thermostat, max_episode_steps=100)
