import unittest

import gymnasium

import {module}  # noqa: F401, registers the environment


class Heater(unittest.TestCase):
    def test_warms_the_room(self):
        rooms = []
        for action in (0, 1):
            env = gymnasium.make("{env}-v0")
            env.reset(seed=1)
            rooms.append(env.step(action)[0][0])
        self.assertGreater(rooms[1], rooms[0])


if __name__ == "__main__":
    unittest.main()
