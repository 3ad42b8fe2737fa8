"""Arenas, loans, leases, and the arrays over their blocks."""

import base64
import ctypes
import fcntl
import gc
import os
import unittest

import numpy

import rlhost
from fakehost import HostArena
from rlhost.arena import Column, read_columns, view
from rlhost.spec import ACTION, ACTION_MASK, OBSERVATION, Tensor

SCHEMA = {"kind": "tensors", "columns": [
    {"name": "image", "dtype": "f32", "rows": 2, "envs": 3, "elems": 8, "shape": [2, 4], "offset": 0, "stride_t": 96,
     "stride_env": 32, "stride_elem": 4},
    {"name": "soa", "dtype": "f32", "rows": 2, "envs": 3, "elems": 8, "shape": [2, 4], "offset": 192, "stride_t": 96,
     "stride_env": 4, "stride_elem": 12},
    {"name": "flag", "dtype": "u8", "rows": 2, "envs": 3, "elems": 1, "shape": [], "offset": 384, "stride_t": 3,
     "stride_env": 1, "stride_elem": 1},
    {"name": "version", "dtype": "i64", "rows": 3, "envs": 1, "elems": 1, "shape": [], "offset": 392, "stride_t": 8,
     "stride_env": 8, "stride_elem": 8}]}


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def address_of(capsule):
    """Where the memory lies that a DLPack capsule hands out."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    managed = api.PyCapsule_GetPointer(capsule, name)
    # The newer struct has version, context, deleter and flags in front of the tensor; the older begins with it.
    return ctypes.c_void_p.from_address(managed + (32 if name == b"dltensor_versioned" else 0)).value


class ArenaTest(unittest.TestCase):
    def setUp(self):
        self.arena = HostArena(3, "test", 2, 416, SCHEMA).view

    def test_a_policy_has_the_columns_of_its_rows_and_its_agents(self):
        names = ["action", "action/1", "action/2", "obs", "obs/1", "raw_action/1", "action_mask", "reward", "valid", "valid/1", "valid/2",
                 "policy_version", "policy_version/1", "policy_version/2", "past_obs", "past_obs/1"]
        columns = [{"name": name, "dtype": "u8", "rows": 1, "envs": 1, "elems": 1, "offset": i, "stride_t": 1, "stride_env": 1, "stride_elem": 1}
                   for i, name in enumerate(names)]
        tensors = [Tensor(ACTION, "i32", n=3), Tensor(ACTION, "f32", group=1), Tensor(ACTION, "i32", n=2, index=1, group=1),
                   Tensor(OBSERVATION, "f32"), Tensor(OBSERVATION, "f32", group=1), Tensor(ACTION_MASK, "u8", (2,), pair=1, group=1)]
        schema = {"kind": "trajectory", "steps": 1, "envs": 1, "columns": columns, "policies": "hunter other prey", "groups": [0, 0, 1]}
        for groups, agents in (((("hunters", 3), ("preys", 1)), tensors), ((), tensors[:1])):
            described = base64.b64encode(rlhost.EnvSpec("tag@1", agents, groups=groups).pack()).decode()
            arena = HostArena(5, "rollout.trajectories", 1, 416, {**schema, "spec": {"describe": described}}).view
            if not groups:
                arena.schema.pop("policies")
                self.assertEqual(arena.columns_of("anybody"), {name: name for name in names})
                continue
            self.assertEqual(arena.columns_of("other"), {
                "reward": "reward", "valid": "valid/2", "policy_version": "policy_version/2", "action": "action", "obs": "obs", "past_obs": "past_obs"})
            with arena.loan() as loan:
                loan.array[:len(names)] = range(len(names))
                mine = loan.rows_of("hunter")
                self.assertEqual((mine["valid"][0, 0], mine["action"][0, 0], mine.steps), (9, 0, 1))
            self.assertEqual({**arena.columns_of("prey"), "valid": "", "policy_version": ""}, {
                "reward": "reward", "valid": "", "policy_version": "", "action": "action/1", "raw_action": "raw_action/1", "action/1": "action/2",
                "obs": "obs/1", "past_obs": "past_obs/1", "action_mask": "action_mask"})
            with self.assertRaisesRegex(ValueError, "policy 'rival' acts in none of the rows of arena rollout.trajectories, those that do: hunter, other, prey"):
                arena.columns_of("rival")

    def test_what_a_loan_writes_a_lease_reads(self):
        with self.arena.loan() as loan:
            loan.trajectory.image[1, 2, 1] = [1, 2, 3, 4]
            loan.trajectory.soa[:] = numpy.arange(48).reshape(2, 3, 2, 4)
            loan.trajectory["version"][2, 0] = 7
            handle = loan.commit()
        self.assertEqual((rlhost.handle_arena(handle), rlhost.handle_block(handle)), (3, 0))
        with self.arena.lease(handle) as lease:
            t = lease.trajectory
            self.assertEqual(t.image[1, 2].tolist(), [[0, 0, 0, 0], [1, 2, 3, 4]])
            numpy.testing.assert_array_equal(t.soa, numpy.arange(48).reshape(2, 3, 2, 4))
            # [elem][env]: elements of one environment lie 12 bytes apart
            self.assertEqual(lease.array[192:384].view("f4")[:6].tolist(), [0, 8, 16, 1, 9, 17])
            self.assertEqual(t.version[:, 0].tolist(), [0, 0, 7])
            self.assertIn("flag", t)
            with self.assertRaisesRegex(AttributeError, "the block has no column colour: it has image, soa, flag, version"):
                t.colour
        self.arena.release(handle)
        self.assertEqual(self.arena.counts()["free"], 2)

    def test_leases_are_for_reading_and_nothing_is_copied(self):
        loan = self.arena.loan()
        written = loan.trajectory.image
        handle = loan.commit()
        with self.arena.lease(handle) as lease:
            read = lease.trajectory.image
            self.assertEqual(read.ctypes.data, written.ctypes.data)
            self.assertIs(lease.trajectory, lease.trajectory)
            for array in (read, lease.array, read[0]):
                with self.assertRaises(ValueError):
                    array[...] = 1
                with self.assertRaises(ValueError):
                    array.flags.writeable = True
            for made in (read + 1, read.max(), read.mean(axis=0), read.copy(), numpy.array(read)):
                self.assertTrue(not isinstance(made, numpy.ndarray) or made.flags.writeable)

    def test_no_consumer_of_dlpack_can_write_to_a_leased_block(self):
        class Old:
            """What asks as older consumers do, and as those that want the newest protocol."""

            def __init__(self, array, **how):
                self.array, self.how = array, how

            def __dlpack__(self, **_):
                return self.array.__dlpack__(**self.how)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        loan = self.arena.loan()
        loan.array[:] = 7
        self.assertEqual(address_of(loan.array.__dlpack__()), loan.array.ctypes.data, "a loan's memory is shared")
        with self.arena.lease(loan.commit()) as lease:
            for array in (lease.array, lease.array[3:9], lease.trajectory.image, lease.trajectory.soa[1], lease.trajectory.flag):
                for how in ({}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}):
                    at = address_of(array.__dlpack__(**how))
                    self.assertFalse(lease.array.ctypes.data <= at < lease.array.ctypes.data + lease.array.nbytes, how)
                    got = numpy.from_dlpack(Old(array, **how))
                    numpy.testing.assert_array_equal(got, array)
                with self.assertRaisesRegex(BufferError, r"numpy\.array\(view\)"):
                    array.__dlpack__(copy=False)
                owned = array.copy()
                self.assertEqual(address_of(owned.__dlpack__()), owned.ctypes.data)

    def test_claims_that_have_ended_are_errors(self):
        loan = self.arena.loan()
        handle = loan.commit()
        with self.assertRaisesRegex(rlhost.Error, r"loan of 3:0@1 has ended"):
            loan.array
        with self.assertRaises(rlhost.Error):
            loan.commit()
        lease = self.arena.lease(handle)
        lease.release()
        for use in (lease.release, lambda: lease.array, lambda: lease.trajectory):
            with self.assertRaisesRegex(rlhost.Error, "lease of 3:0@1 has ended"):
                use()
        self.arena.release(handle)
        for use in (self.arena.release, self.arena.lease, self.arena.retain):
            with self.assertRaises(rlhost.Stale):
                use(handle)

    def test_errors_have_types_of_their_own(self):
        first, second = self.arena.loan(), self.arena.loan(1)
        with self.assertRaises(rlhost.Exhausted):
            self.arena.loan()
        with self.assertRaises(rlhost.NotCommitted):
            self.arena.lease(first.handle)
        with self.assertRaises(rlhost.Foreign):
            self.arena.lease(4 << 56 | 1)
        with self.assertRaises(rlhost.OutOfRange):
            self.arena.lease(3 << 56 | 9 << 37 | 1)
        for wrong in (-1, 1 << 64, "x", None):
            with self.assertRaises((OverflowError, TypeError)):
                self.arena.lease(wrong)
        first.abort()
        second.abort()

    def test_what_is_not_committed_is_aborted(self):
        with self.assertRaises(RuntimeError), self.arena.loan():
            raise RuntimeError
        self.assertEqual(self.arena.counts()["free"], 2)

    def test_credits_come_when_a_block_becomes_free(self):
        freed = []
        loan = self.arena.loan()
        self.arena.on_free(0, freed.append)
        loan.abort()
        self.assertEqual(freed, [0])
        self.arena.on_free(0, None)
        self.arena.loan(0).abort()
        self.assertEqual(freed, [0])

    def test_arrays_keep_their_memory(self):
        made = HostArena(4, "gone", 1, 4096, None)
        loan = made.view.loan()
        array = loan.array
        array[:] = 5
        loan.commit()
        del made, loan
        gc.collect()
        self.assertEqual(int(array.sum()), 5 * 4096)

    def test_unsealed_and_short_files_are_refused(self):
        from rlhost import _native
        words = os.memfd_create("words", os.MFD_ALLOW_SEALING)
        os.ftruncate(words, 8192)
        with self.assertRaises(rlhost.Error):
            _native.Arena.attach(words, words, 1, "x", 1, 64, 5)
        fcntl.fcntl(words, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        with self.assertRaises(rlhost.Error):
            _native.Arena.attach(words, words, 1, "x", 1, 64, 5)

    def test_views_of_a_part_of_the_environments(self):
        columns = read_columns(SCHEMA)
        memory = numpy.zeros(416, numpy.uint8)
        whole = view(memory, 0, columns["soa"])
        part = view(memory, 0, columns["soa"], (1, 2))
        part[:] = 3
        self.assertEqual(whole[:, 0].sum(), 0)
        self.assertEqual(whole[:, 1:].min(), 3)
        self.assertEqual(Column("x", "f32", 1, 1, 6, (2, 3), 0, 24, 24, 4).strides(), (24, 24, 12, 4))

    def test_states_that_are_read_and_written_lie_apart(self):
        for steps, chunk in ((12, 4), (3, 1), (7, 0)):
            tr = rlhost.Trajectory({}, steps, 2, chunk)
            kept = {tr.state_row(0): 0}
            for t in range(steps):
                self.assertEqual(kept[tr.state_row(t)], t)
                kept[tr.state_row(t + 1)] = t + 1
            chunk = chunk or steps
            self.assertEqual([kept[n] for n in range(steps // chunk + 1)], list(range(0, steps + 1, chunk)))
            self.assertLessEqual(max(kept), steps // chunk + 2)

    def test_nothing_leaks(self):
        def rounds(n):
            for _ in range(n):
                loan = self.arena.loan()
                loan.trajectory.image[0] = 1
                handle = loan.commit()
                with self.arena.lease(handle) as lease:
                    float(lease.trajectory.image[0, 0, 0, 0])
                    lease.array[3]
                self.arena.release(handle)
                try:
                    self.arena.lease(handle)
                except rlhost.Stale:
                    pass
                rlhost.Message(handle=handle, inline=(1, 2)).replace(t=3).inline

        rounds(500)
        memory = resident()
        rounds(10000)
        self.assertLess(resident() - memory, 2 << 20)
        self.assertEqual(self.arena.counts(), {"free": 2, "write": 0, "live": 0, "zombie": 0, "closed": 0, "loans": 0, "claims": 0})


if __name__ == "__main__":
    unittest.main()
