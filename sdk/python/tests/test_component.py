"""Components as the host sees them."""

import os
import pathlib
import signal
import subprocess
import struct
import sys
import time
import unittest

import grpc
import numpy

from rlhost import Episode, Message, _native
from fakehost import PLUGIN, FakeHost, HostArena, python

PLUGINS = str(pathlib.Path(__file__).with_name("counting.py"))
STEPS, ENVS = 3, 2


def trajectory_schema():
    """A small block: reward [3][2] f32, obs [4][2][5] laid out as [elem][env]."""
    return {"kind": "trajectory", "steps": STEPS, "envs": ENVS, "columns": [
        {"name": "reward", "dtype": "f32", "rows": 3, "envs": 2, "elems": 1, "shape": [], "offset": 0, "stride_t": 8,
         "stride_env": 4, "stride_elem": 4},
        {"name": "obs", "dtype": "f32", "rows": 4, "envs": 2, "elems": 5, "shape": [5], "offset": 64, "stride_t": 40,
         "stride_env": 4, "stride_elem": 8}]}


def fill(arena, reward):
    loan = arena.view.loan()
    loan.trajectory.reward[:] = reward
    return loan.commit()


class ComponentTest(unittest.TestCase):
    def host(self, **more):
        host = FakeHost(python(PLUGINS), **more)
        self.addCleanup(host.close)
        return host.connect()

    def test_describes_its_kinds(self):
        said = self.host().call("Describe")
        self.assertEqual(said["abi"], "1.0")
        self.assertEqual(said["capabilities"], ["snapshot"])
        self.assertEqual([k["name"] for k in said["kinds"]], ["count", "wrong"])
        self.assertEqual(said["kinds"][0]["doc"], "Counts blocks and passes them on.")
        self.assertEqual(said["kinds"][0]["signals"][0],
                         {"name": "trajectories", "payload": "trajectory", "doc": "every block", "on_loan": False, "schema": "0"})

    def test_complains_about_its_table(self):
        host = self.host()
        [error] = host.configure("count", {"factor": 0}, check_only=True)["errors"]
        self.assertEqual((error["key"], error["reason"], error["help"]), ("factor", "is 0, want another", "write 1"))
        [error] = host.configure("count", {"factr": 0}, check_only=True)["errors"]
        self.assertEqual((error["key"], error["reason"]), ("factr", "is not a key"))
        with self.assertRaises(grpc.RpcError) as caught:
            host.configure("other")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_blocks_go_through_without_a_copy_and_claims_end(self):
        arena = HostArena(1, "rollout.trajectories", 4, 4096, trajectory_schema())
        host = self.host(arenas=[arena])
        self.assertEqual(host.configure("count")["errors"], [])
        start = host.channel.unary_unary("/rlhost.plugin.v1.Plugin/Start").future(b"", wait_for_ready=True)
        sums = host.grant_arena()
        self.assertEqual(sums.name, "count.sums")
        start.result(10)
        for n in range(1, 20):
            handle = fill(arena, n)
            host.send(Message(handle=handle, t=n, policy_version=3 * n, sender=9))
            passed, summed = host.receive(), host.receive()
            self.assertEqual((passed.signal, passed.handle, passed.sender), (0, handle, 9))
            self.assertEqual((summed.signal, summed.policy_version, summed.inline), (1, 3 * n, (n, 9)))
            with sums.view.lease(summed.handle) as told:
                self.assertEqual(told.values(), {"blocks": n, "sum": 6.0 * n})
            arena.view.release(handle)
        host.send(Message(slot=0xFF01))
        until(lambda: arena.view.counts()["free"] == 4 and sums.view.counts()["free"] == 4)
        counters, gauges = {}, {}  # a frame tells what has changed
        while counters.get("blocks") != 19 or gauges.get("sum") != 114.0:
            stats, _ = host.frame("stats")
            counters.update(stats.get("counters", {}))
            gauges.update(stats.get("gauges", {}))
        self.assertEqual(host.shutdown(), 0)

    def test_fields_of_a_later_version_are_ignored(self):
        later = {"of_a_later_version": {"a": [1, {"kind": None}]}}
        arena = HostArena(1, "rollout.trajectories", 4, 4096, trajectory_schema())
        host = self.host()
        with self.assertRaises(grpc.RpcError) as caught:
            host.call("OfALaterVersion")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertEqual([k["name"] for k in host.call("Describe", later)["kinds"]], ["count", "wrong"])
        host.send_frame(later)
        host.send_frame({"arena": {**arena.document(), **later}, **later}, [arena.words_fd, arena.data_fd])
        run = {"name": "test", "seed": str(2**64 - 1), "dir": "", "synchronous": False, **later}
        self.assertEqual(host.configure("count", run=run, **later)["errors"], [])
        host.arenas[1] = arena
        start = host.channel.unary_unary("/rlhost.plugin.v1.Plugin/Start").future(b"", wait_for_ready=True)
        host.grant_arena()
        start.result(10)
        for slot in (0xFF07, 0xFF25):  # control messages, ignored, too
            host.send(Message(slot=slot))
        host.send(Message(handle=fill(arena, 2)))
        self.assertEqual(host.receive().signal, 0)

    def test_a_column_is_written_where_its_slot_has_the_grant(self):
        for grants in [{"on_trajectories": ["reward"]}, {"on_others": ["reward"]}, None]:
            arena = HostArena(1, "rollout.trajectories", 4, 4096, trajectory_schema())
            host = self.host(arenas=[arena])
            self.assertEqual(host.configure("count", {"write": ["reward"]}, grants=grants)["errors"], [])
            start = host.channel.unary_unary("/rlhost.plugin.v1.Plugin/Start").future(b"", wait_for_ready=True)
            host.grant_arena()
            start.result(10)
            handle = fill(arena, 3)
            host.send(Message(handle=handle))
            if grants and "on_trajectories" in grants:
                host.receive()
                with arena.view.lease(handle) as block:
                    self.assertTrue((block.trajectory.reward == 6).all())
                continue
            failed, _ = host.frame("fail")
            self.assertRegex(failed["reason"], r"Refused: E038 slot count.on_trajectories: may not write reward: no wire grants it; "
                             r'add write = \["reward"\] to each \[\[wire\]\] with slot = "count.on_trajectories" \(')
            with arena.view.lease(handle) as block:
                self.assertTrue((block.trajectory.reward == 3).all())

    def test_nothing_is_written_outside_a_slot(self):
        host = self.host()
        self.assertEqual(host.configure("wrong", {"lease": 1}, grants={"on_text": ["reward"]})["errors"], [])
        with self.assertRaises(grpc.RpcError) as caught:
            host.call("Start")
        self.assertRegex(caught.exception.details(), "Refused: reward cannot be written here")

    def test_states_are_saved_and_restored(self):
        arena = HostArena(1, "rollout.trajectories", 4, 4096, trajectory_schema())
        saved = None
        for _ in range(2):
            host = self.host(arenas=[arena])
            host.configure("count")
            start = host.channel.unary_unary("/rlhost.plugin.v1.Plugin/Start").future(b"", wait_for_ready=True)
            sums = host.grant_arena()
            start.result(10)
            if saved is not None:
                fd = os.memfd_create("state")
                os.write(fd, saved)
                host.send_frame({"state": {"call": 5, "bytes": len(saved)}}, [fd])
                host.call("Restore", {"call": 5, "bytes": len(saved)})
            handle = fill(arena, 1)
            host.send(Message(handle=handle))
            host.receive()
            with sums.view.lease(host.receive().handle) as told:
                count = told.values()["blocks"]
            size = host.call("Snapshot")
            announced, [fd] = host.frame("state")
            self.assertEqual(announced, size)
            saved = os.pread(fd, size["bytes"], 0)
        self.assertEqual(count, 2)

    def test_a_slot_that_raises_ends_the_component_with_its_words(self):
        host = self.host()
        host.start("wrong")
        for _ in range(3):
            host.send(Message(kind=1))
        failed, _ = host.frame("fail")
        self.assertEqual(len([f for f, _ in host.frames if "fail" in f]), 0)
        self.assertRegex(failed["reason"], r"^on_text: ValueError: this slot is broken \(counting.py:\d+\)$")
        self.assertEqual(host.log().count("Traceback"), 1)
        self.assertEqual(host.call("Stop"), {})
        with self.assertRaises(_native.TimedOut):  # none of the messages has been acknowledged
            while True:
                m = host.from_plugin.get(0.3)
                self.assertFalse(m.slot == 0xFF01 and m.ctl, m)

    def test_a_start_that_raises_is_told(self):
        host = self.host()
        self.assertEqual(host.configure("wrong", {"start": 1})["errors"], [])
        with self.assertRaises(grpc.RpcError) as caught:
            host.call("Start")
        self.assertRegex(caught.exception.details(), "RuntimeError: cannot start")

    def test_log_and_prints_go_to_standard_error(self):
        host = self.host()
        host.start("wrong")
        host.send(Message(kind=9))
        self.assertEqual(host.receive().kind, 9)
        self.assertRegex(host.log(), r'"@level": "warn", "@message": "said 9"')
        self.assertIn("printed by a slot\n", host.log())

    def test_timers_run_between_slots(self):
        host = self.host()
        host.start("wrong")
        host.send(Message(kind=5))
        self.assertEqual(host.receive().kind, 55)

    def test_boundary_waits_and_snapshots_run_within_it(self):
        host = self.host()
        host.start("wrong")
        host.send(Message(kind=3))
        self.assertEqual(host.receive().slot, 0xFF03)
        with self.assertRaises(grpc.RpcError) as caught:
            host.call("Snapshot")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("does not save its state", caught.exception.details())
        host.send(Message(slot=0xFF04))
        self.assertEqual(host.receive().kind, 3)

    def test_kept_blocks_are_no_part_of_a_state(self):
        arena = HostArena(1, "rollout.trajectories", 4, 4096, trajectory_schema())
        host = self.host(arenas=[arena])
        host.start("wrong")
        handle = fill(arena, 1)

        def refusal():
            with self.assertRaises(grpc.RpcError) as caught:
                host.call("Snapshot")
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            return caught.exception.details()

        host.send(Message(kind=6, inline=(handle, 0)))
        host.receive()
        self.assertIn("it keeps blocks (1), which are no part of a state", refusal())
        host.send(Message(kind=8, inline=(handle, 0)))
        self.assertEqual(host.receive().slot, 0xFF03)
        self.assertIn("it keeps blocks (1)", refusal())  # not the one that the slot leases
        host.send(Message(slot=0xFF04))
        host.receive()
        host.send(Message(kind=7))
        host.receive()
        self.assertIn("does not save its state", refusal())
        host.send(Message(kind=8, inline=(handle, 0)))
        self.assertEqual(host.receive().slot, 0xFF03)
        self.assertIn("does not save its state", refusal())
        host.send(Message(slot=0xFF04))
        host.receive()

    def test_foreign_handles_are_errors(self):
        host = self.host()
        host.start("wrong")
        host.send(Message(kind=4, inline=(1 << 56 | 5, 0)))
        failed, _ = host.frame("fail")
        self.assertIn("handle 1:0@5 belongs to no arena", failed["reason"])

    def test_ends_with_its_host(self):
        for how in ("idle", "busy", "asked"):
            with self.subTest(how), FakeHost(python(PLUGINS)) as host:
                host.connect()
                host.start("wrong")
                if how == "asked":
                    self.assertEqual(host.shutdown(), 0)
                    continue
                if how == "busy":
                    host.send(Message(kind=2))
                host.wire.close()
                self.assertTrue(host.dead(10.0))

    def test_sigterm_ends_it_in_order_and_ctrl_c_does_not(self):
        host = self.host()
        host.start("wrong")
        host.kill(signal.SIGINT)
        host.send(Message(kind=9))
        self.assertEqual(host.receive().kind, 9)
        host.kill(signal.SIGTERM)
        self.assertTrue(host.dead(10.0))
        self.assertEqual(host.status, 0)

    def test_explains_itself_to_who_starts_it_by_hand(self):
        for environment, words in (({"RLHOST_PLUGIN": "no"}, "not a program to run by hand"),
                                   ({"PLUGIN_PROTOCOL_VERSIONS": "1,3"}, "speaks protocol 2, the host 1, 3")):
            with FakeHost(python(PLUGINS), environment) as host:
                self.assertTrue(host.dead(10.0))
                self.assertEqual(host.status, 2)
                self.assertIn(words, host.log())

    def test_a_plugin_by_hand_names_a_path_that_is_found(self):
        done = subprocess.run([sys.executable, os.path.basename(PLUGINS)], cwd=os.path.dirname(PLUGINS), capture_output=True, text=True)
        self.assertIn('path = "./%s"' % os.path.basename(PLUGINS), done.stderr)

    def test_says_where_it_is_when_it_is_aborted(self):
        host = self.host()
        host.kill(signal.SIGABRT)
        self.assertTrue(host.dead(10.0))
        self.assertRegex(host.log(), r'most recent call first(.|\n)*serving.py", line \d+ in ')

    def test_health(self):
        self.assertEqual(self.host().raw("/grpc.health.v1.Health/Check", b"\n\x06plugin"), b"\x08\x01")


def until(true, seconds=10.0):
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it did not come true")
        time.sleep(0.001)


class PayloadTest(unittest.TestCase):
    def test_an_episode_is_read_where_the_abi_has_it(self):
        bits = struct.unpack("<I", struct.pack("<f", -2.5))[0]
        low, high = bits | 7 << 32, 3 | 1 << 32 | 9 << 33 | 5 << 49
        self.assertEqual(Episode.of(Message(inline=(low, high))), (-2.5, 7, 3, True, 9, 5))



if __name__ == "__main__":
    unittest.main()
