"""Tests of rlhost.record, with the real program."""

import functools
import os
import pathlib
import resource
import subprocess
import unittest
import unittest.mock

import gymnasium
import imageio_ffmpeg
import numpy
from test_training import InFolder

import rlhost

MODULES = pathlib.Path(__file__).resolve().parents[3] / "hostabi" / "conformance"


class Drawn(gymnasium.Env):
    """Counts to ten, and draws its count and its seed's parity."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, render_mode=None, kind="rgb", shape=(30, 41, 3)):
        self.render_mode, self.kind, self.shape = render_mode, kind, shape
        self.observation_space = gymnasium.spaces.Box(-1, 1, (4,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.n, self.odd = 0, seed % 2
        return numpy.zeros(4, numpy.float32), {}

    def step(self, action):
        self.n += 1
        return numpy.zeros(4, numpy.float32), 1.0, self.n == 10, False, {}

    def render(self):
        if self.kind == "none":
            return None
        picture = numpy.full(self.shape, 20 * self.n, numpy.uint8)
        picture[..., 1] = 100 * self.odd
        if self.kind == "grows" and self.n == 3:
            return picture[:-1]
        if self.kind == "raises" and self.n == 3:
            raise ZeroDivisionError("drawn badly")
        return picture


class Blind(Drawn):
    def __init__(self):
        super().__init__()


def shown(path):
    """The pictures of a file, by ffmpeg: frames, height, width, 3."""
    data = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", path, "-fps_mode", "passthrough", "-f", "image2pipe", "-c:v", "ppm", "-"],
                          capture_output=True, check=True).stdout
    frames = []
    while data:
        kind, size, _, data = data.split(b"\n", 3)
        width, height = map(int, size.split())
        frames.append(numpy.frombuffer(data[:3 * width * height], numpy.uint8).reshape(height, width, 3))
        data = data[3 * width * height:]
    return numpy.stack(frames)


class RecordTest(InFolder):
    def policy(self):
        return rlhost.train("cartpole@1", 2048, progress=False).load()

    def test_each_step_is_a_picture_in_every_format(self):
        policy = self.policy()
        for file in "a.gif", "b.png", "c.mp4":
            with self.subTest(file):
                told = rlhost.record(policy, Drawn, file, episodes=2)
                self.assertEqual((told.returns, told.lengths), ([10.0, 10.0], [10, 10]))
                frames = shown(file)
                exact = file in ("a.gif", "b.png")
                self.assertEqual(frames.shape, (22, 30, 41 if exact else 42, 3))
                count = numpy.median(frames[:, :, :40, 0], axis=(1, 2))
                odd = numpy.median(frames[:, :, :40, 1], axis=(1, 2))
                tolerance = 0 if exact else 12
                numpy.testing.assert_allclose(count, numpy.tile(20 * numpy.arange(11), 2), atol=tolerance)
                numpy.testing.assert_allclose(odd, [100] * 11 + [0] * 11, atol=tolerance)
        self.assertEqual(sorted(os.listdir()), ["a.gif", "b.png", "c.mp4", "runs"])

    def test_an_id_of_gymnasium_is_seen(self):
        told = rlhost.record(self.policy(), "CartPole-v1", "pole.gif", episodes=2, seed=5)
        frames = shown("pole.gif")
        self.assertEqual(frames.shape, (sum(told.lengths) + 2, 400, 600, 3))
        self.assertGreater(len({f.tobytes() for f in frames}), 2)
        self.assertEqual(rlhost.record(self.policy(), "CartPole-v1", "pole.gif", episodes=1, max_steps=3).lengths, [3])
        self.assertEqual(len(shown("pole.gif")), 4)

    def test_a_module_is_seen_by_its_camera(self):
        module = MODULES / "render.wasm"  # whose pictures have the age, plus the camera's number, in every byte; episodes have three steps
        policy = rlhost.train(module, 1024, progress=False).load()
        for camera in 0, 1:
            told = rlhost.record(policy, module, "module.png", episodes=2, camera=camera)
            self.assertEqual(told.lengths, [3, 3])
            frames = shown("module.png")
            self.assertEqual(frames.shape, (6, 2, 4, 3))
            self.assertEqual([set(f.ravel()) for f in frames], [{k + camera} for k in (0, 1, 2)] * 2)
        with self.assertRaisesRegex(rlhost.VecError, "status"):
            rlhost.record(policy, module, "module.png", camera=2)
        with self.assertRaisesRegex(rlhost.VecError, "acrobot.* draws no pictures in colour"):
            rlhost.record(policy, "acrobot@1", "module.png")

    def test_what_cannot_be_made_is_named_and_leaves_no_file(self):
        policy = self.policy()
        before = sorted(os.listdir())
        for env, file, args, error, text in (
                (Drawn, "a.bmp", None, rlhost.RecordingError, r'E093.*a.bmp: no encoder for ".bmp": .gif and .png are written always, and .mp4'),
                (Drawn, "nowhere/a.gif", None, rlhost.RecordingError, "E093.*nowhere"),
                (Blind, "a.gif", None, rlhost.RecordingError, r"Blind cannot be made with render_mode=.rgb_array.: TypeError"),
                ("Nothing-v1", "a.gif", None, rlhost.RecordingError, "E010|Nothing-v1 cannot be made"),
                (Drawn, "a.gif", {"kind": "none"}, rlhost.RecordingError, r"returned NoneType .* want uint8 of \[height, width, 3\]"),
                (Drawn, "a.gif", {"shape": (4, 4)}, rlhost.RecordingError, r"shape \(4, 4\)"),
                (Drawn, "a.gif", {"kind": "grows"}, rlhost.RecordingError, "picture 3 is 41 × 29, and the first one 41 × 30"),
                (Drawn, "a.gif", {"kind": "raises"}, ZeroDivisionError, "drawn badly")):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                rlhost.record(policy, env, file, episodes=1, args=args)
            self.assertEqual(sorted(os.listdir()), before)
        with self.assertRaisesRegex(rlhost.RecordingError, "no episodes"):
            rlhost.record(policy, Drawn, "a.gif", episodes=0)
        with self.assertRaisesRegex(TypeError, "gym_wrap"):
            rlhost.record(policy, Drawn, "a.gif", wrap=[{"time_limit": 3}])
        with unittest.mock.patch("rlhost.recording._ffmpeg", lambda: ["--ffmpeg", "nowhere/ffmpeg"]), \
                self.assertRaisesRegex(rlhost.RecordingError, "no encoder for .mp4, which takes ffmpeg .*pip install imageio-ffmpeg"):
            rlhost.record(policy, Drawn, "a.mp4")
        self.assertEqual(sorted(os.listdir()), before)

    def test_a_full_disk_is_told_of(self):
        policy = self.policy()
        limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # as a disk that has so much room
        with unittest.mock.patch("rlhost.recording.subprocess.Popen", functools.partial(subprocess.Popen, preexec_fn=limited)), \
                self.assertRaisesRegex(rlhost.RecordingError, "E093.*a.png.*file too large"):
            rlhost.record(policy, "CartPole-v1", "a.png")
        self.assertEqual(sorted(os.listdir()), ["runs"])


if __name__ == "__main__":
    unittest.main()
