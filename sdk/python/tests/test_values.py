"""What travels between host and plugin: control documents, descriptions, states, handles, tables."""

import dataclasses
import unittest

import numpy

import rlhost
from rlhost import control, state


class ControlTest(unittest.TestCase):
    def test_documents_of_any_length_come_back(self):
        for n in (0, 1, 119, 120, 130, 20000, 3000000):
            document = {"a": "x" * n}
            self.assertEqual(control.unpack(control.pack(document)), document)
        self.assertEqual(control.unpack(b""), {})

    def test_what_is_no_document_is_refused(self):
        good = control.pack({"a": 1})
        for wrong in (b"\x0a", b"\x0a\xff", b"\x0a\xff\xff\xff\xff\xff\xff", b"\x08\x01", good[:-1], good + b"x", b"\x0a\x01{"):
            with self.subTest(wrong), self.assertRaises(control.Refusal):
                control.unpack(wrong)


class SpecTest(unittest.TestCase):
    def test_a_description_comes_back(self):
        obs = rlhost.Tensor(2, "f32", (84, 84, 4), 0, 255, path="frame", flags=4)
        place = rlhost.Tensor(2, "f32", (2,), path="place", index=1, flags=4, lows=(-1.0, 0.0), highs=(1.0, 2.0))
        moves = rlhost.Tensor(1, "i32", (2,), flags=2, counts=(3, 5), start=1)
        made = rlhost.EnvSpec("pong@1", [rlhost.Tensor(1, "i32", n=6, flags=2), obs], 6, 27000, 9, reward_threshold=21.0)
        self.assertEqual(rlhost.EnvSpec.unpack(made.pack()), made)
        self.assertEqual((made.actions, made.obs_elems), (6, 84 * 84 * 4))
        rich = rlhost.EnvSpec("rich@2", [moves, obs, place], reward_threshold=0.0, keys="left=1,1\nup=3,5")
        self.assertEqual(rlhost.EnvSpec.unpack(rich.pack()), rich)
        self.assertEqual(moves.choices, 8)

    def test_a_description_of_1_0_has_no_keys(self):
        import struct
        spec = rlhost.EnvSpec("pong@1", [rlhost.Tensor(1, "i32", n=6, flags=2)], reward_threshold=21.0, keys="up=1")
        head = bytearray(spec.pack())
        strings_at, = struct.unpack_from("<I", head, 44)
        struct.pack_into("<I", head, 0, 128)
        struct.pack_into("<I", head, 44, strings_at - 8)
        old = bytes(head[:128] + head[136:])
        self.assertEqual(rlhost.EnvSpec.unpack(old), dataclasses.replace(spec, keys=""))

    def test_what_is_no_description_is_an_error(self):
        import struct
        data = rlhost.EnvSpec("x@1", [rlhost.Tensor(1, "i32", n=6)]).pack()
        for wrong in (b"", data[:-1], data[:4] + b"\2" + data[5:], data[:32] + b"\xff" + data[33:], data[:142] + b"\x63" + data[143:],
                      data[:104] + b"\xff" + data[105:]):
            with self.assertRaises((ValueError, struct.error)):
                rlhost.EnvSpec.unpack(wrong)


class StateTest(unittest.TestCase):
    def test_a_state_comes_back(self):
        made = rlhost.State({"n": [1, 2]}, {"w": numpy.arange(6, dtype="f4").reshape(2, 3), "s": numpy.float32(-0.5)},
                            {"b": b"\0\1", "empty": b""})
        got = state.unpack(state.pack(made))
        self.assertEqual((got.meta, got.blobs), (made.meta, made.blobs))
        numpy.testing.assert_array_equal(got.tensors["w"], made.tensors["w"])
        self.assertEqual((got.tensors["s"].shape, float(got.tensors["s"])), ((), -0.5))

    def test_bytes_in_another_format_are_one_blob(self):
        self.assertEqual(state.unpack(b"anything").blobs, {"state": b"anything"})

    def test_cut_states_are_errors(self):
        data = state.pack(rlhost.State(None, {"w": numpy.zeros(5, "f4")}, {"b": b"123"}))
        for n in range(8, len(data)):
            with self.assertRaises(ValueError):
                state.unpack(data[:n])


@dataclasses.dataclass
class Inner:
    rate: float = 1.0


@dataclasses.dataclass
class Table:
    policy: str
    epochs: int = 4
    sync: bool = False
    net: Inner = dataclasses.field(default_factory=Inner)


class DecodeTest(unittest.TestCase):
    def test_tables_become_dataclasses(self):
        got = rlhost.decode({"policy": "main", "epochs": 2.0, "net": {"rate": 3}}, Table)
        self.assertEqual(got, Table("main", 2, False, Inner(3.0)))

    def test_every_mistake_is_told_at_once(self):
        with self.assertRaises(rlhost.ConfigErrors) as caught:
            rlhost.decode({"epoch": 1, "epochs": "many", "sync": 1, "net": {"rte": 1}}, Table)
        self.assertEqual([(e.key, e.reason, e.help) for e in caught.exception.errors], [
            ("epoch", "is not a key", "did you mean `epochs`?"), ("policy", "is missing", ""),
            ("epochs", "is 'many', want a whole number", ""), ("sync", "is 1, want true or false", ""),
            ("net.rte", "is not a key", "did you mean `rate`?")])


class HandleTest(unittest.TestCase):
    def test_fields(self):
        h = 3 << 56 | 5 << 37 | 7
        self.assertEqual((rlhost.handle_arena(h), rlhost.handle_block(h), rlhost.handle_generation(h)), (3, 5, 7))


class KindTest(unittest.TestCase):
    def test_a_slot_without_its_method_is_named_at_once(self):
        class Half(rlhost.Component):
            slots = [rlhost.Slot("on_x", "x")]

        with self.assertRaisesRegex(TypeError, "Half has a slot on_x and no method"):
            rlhost.serve(Half)


if __name__ == "__main__":
    unittest.main()
