"""Holds network.py and ppo.py to the host's reference arithmetic, and learner.py to what the host expects of a learner. Needs PyTorch
and rlhost: see prepare.sh."""

import base64
import dataclasses
import gc
import logging
import os
import pathlib
import struct
import sys
import types
import unittest

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "sdk" / "python" / "tests")]

import ppo  # noqa: E402
import rlhost  # noqa: E402
from fakehost import BOUNDARY, BOUNDARY_OVER, FakeHost, HostArena, python  # noqa: E402
from network import Joint, Network  # noqa: E402
from rlhost import state  # noqa: E402
from rlhost.arena import Trajectory, read_columns, view  # noqa: E402
from rlhost.device import Upload  # noqa: E402
from rlhost.leased import Leased  # noqa: E402
from rlhost.host import Policy  # noqa: E402
from rlhost.layout import Box, Discrete, Input, PolicyLayout  # noqa: E402
from rlhost.learning import Dataset  # noqa: E402

CASES = ("separate", "shared", "vtrace", "returns", "box", "bounded", "squashed", "fixed", "gru", "lstm", "start", "multidiscrete",
         "multibinary", "several", "several_gru", "inputs", "turns", "turns_lstm", "accumulated", "accumulated_lstm", "warmed", "warmed_lstm")


def case(name):
    return state.unpack((HERE / "testdata" / f"{name}.state").read_bytes())


def trajectories(saved):
    """The blocks of a case."""
    schema = saved.meta["schema"]
    columns = read_columns(schema)
    for _, blob in sorted(saved.blobs.items()):
        memory = numpy.frombuffer(bytearray(blob), numpy.uint8)
        arrays = {name: view(memory, 0, c) for name, c in columns.items()}
        yield Trajectory(arrays, schema["steps"], schema["envs"], schema.get("chunk", 0))


def dataset_of(saved):
    return Dataset(list(trajectories(saved)), saved.meta["index"])


def layout(obs, actions, hidden, share_trunk=False):
    return PolicyLayout(None, (Input(obs),), actions, tuple(hidden), "tanh", share_trunk, False)


def policy_of(saved):
    """The layout of a case, as the learner reads it."""
    env = rlhost.EnvSpec.unpack(base64.b64decode(saved.meta["schema"]["spec"]["describe"]))
    policies = {"main": Policy(saved.meta["table"], "env")}
    return PolicyLayout.of(types.SimpleNamespace(policies=policies, env=lambda name: env), "main")


def network_of(saved):
    network = Network(policy_of(saved))
    network.load_vector(torch.from_numpy(saved.tensors["before"]))
    return network


def config_of(saved):
    c = saved.meta["config"]
    snake = {"".join("_" + x.lower() if x.isupper() else x for x in key).lstrip("_"): value for key, value in c.items()}
    snake.update(adaptive_kl=c.get("AdaptiveKL", 0.0), discount=c.get("Discount", "replace"), kl_coef=c.get("KLCoef", 0.0), gae_lambda=c["GAELambda"], target_kl=c["TargetKL"], vtrace=c["VTrace"], vtrace_recompute=c["VTraceRecompute"], shuffle=c.get("Shuffle", True), bounds_loss_coef=c.get("BoundsLossCoef", 0.0),
                 accumulate=c.get("Accumulate", 1), burn_in_rows=c.get("BurnInRows", 0))
    return types.SimpleNamespace(**snake)


def statistics(saved):
    z = saved.meta["normalizer"]
    return tuple(torch.tensor(z).split(len(z) // 2)) if z else None


class UpdateTest(unittest.TestCase):
    def test_an_update_is_that_of_the_reference(self):
        for name in CASES:
            with self.subTest(name):
                saved = case(name)
                network, c, meta = network_of(saved), config_of(saved), saved.meta
                numpy.testing.assert_array_equal(network.vector(), saved.tensors["before"])
                optimizer = torch.optim.Adam([p for _, p, _ in network.tensors()], eps=c.adam_eps, betas=(c.adam_beta1, c.adam_beta2))
                rates = ppo.Rates(meta["rates"]["LearningRate"], meta["rates"]["Clip"], meta["rates"]["Entropy"])
                seen = ppo.Returns() if getattr(c, "normalize_returns", False) else None
                following = ppo.Following(c) if c.adaptive_kl else None
                data = ppo.Dataset.of(dataset_of(saved), network)
                for i in range(meta["updates"]):
                    report = ppo.update(network, optimizer, data, c, rates, meta["seed"], meta["index"] + i, statistics(saved), seen,
                                        following)
                if following:
                    self.assertAlmostEqual(float(following.rate), meta["learning_rate"], delta=1e-9)
                    self.assertNotEqual(float(following.rate), meta["rates"]["LearningRate"])
                moved = numpy.abs(saved.tensors["after"] - saved.tensors["before"]).max()
                self.assertGreater(moved, 1e-3)
                numpy.testing.assert_allclose(network.vector(), saved.tensors["after"], atol=2e-5)
                for field, value in meta["stats"].items():
                    ours = {"PolicyLoss": "policy_loss", "ValueLoss": "value_loss", "Entropy": "entropy", "ApproxKL": "approx_kl",
                            "OldApproxKL": "old_approx_kl", "ClipFraction": "clipfrac", "FirstClipFraction": "first_clipfrac",
                            "FirstRatioError": "first_ratio_error", "ExplainedVariance": "explained_variance",
                            "GradNorm": "grad_norm", "ActorGradNorm": "actor_grad_norm",
                            "CriticGradNorm": "critic_grad_norm", "OptimizerSteps": "optimizer_steps", "Epochs": "epochs",
                            "ValidRows": "valid_rows"}[field]
                    self.assertAlmostEqual(getattr(report, ours), value, delta=1e-4 * max(1, abs(value)), msg=field)

    def test_minibatches_are_nearly_equal_parts(self):
        for rows, size, want in ((0, 8, []), (5, 8, [5]), (16, 8, [8, 8]), (17, 8, [6, 6, 5]), (40, 13, [10] * 4)):
            parts = ppo.minibatches(torch.arange(rows), size)
            self.assertEqual([len(p) for p in parts], want)
            self.assertEqual([i for p in parts for i in p.tolist()], list(range(rows)))

    def test_states_have_matrices_for_weights_and_vectors_for_biases(self):
        config = types.SimpleNamespace(threads=1, adam_eps=1e-5, adam_beta1=0.9, adam_beta2=0.999)
        trainer = ppo.Trainer(config, 1, layout(1, (Discrete((2,)),), [3]))
        meta, tensors = trainer.state()
        shapes = {name: tensors[name].shape for name in ("actor.0.weight", "adam_m.actor.0.weight", "actor.0.bias", "critic.head.weight")}
        self.assertEqual(list(shapes.values()), [(1, 3), (1, 3), (3,), (3, 1)])
        tensors["actor.0.weight"] = tensors["actor.0.weight"][0] + 1  # as a vector, as older states have it
        trainer.set_state(meta, tensors)
        numpy.testing.assert_array_equal(trainer.state()[1]["actor.0.weight"][0], tensors["actor.0.weight"])

    def test_what_a_guest_has_spoilt_is_refused(self):
        for column, value in (("action", 3), ("action", -1), ("reward", numpy.nan), ("obs", numpy.inf)):
            with self.subTest(column, value=value), self.assertRaises(ValueError):
                blocks = list(trajectories(case("separate")))
                blocks[0][column][:] = value
                ppo.Dataset.of(Dataset(blocks, 0), network_of(case("separate")))
        for column, at, value in (("raw_action", (2, 0, 1), numpy.inf), ("action/1", (2, 0), 0), ("action/1", (2, 0), 4), ("action/2", (2, 0, 1), 2),
                                  ("action_mask", (2, 0), 0), ("action_mask/1", (2, 0), 0), ("raw_action/3", (2, 0), numpy.nan)):
            saved = case("several")
            blocks = list(trajectories(saved))
            named = {"action_mask": "action/1", "action_mask/1": "action/2"}.get(column, column)
            with self.subTest(column, value=value), self.assertRaisesRegex(ValueError, f"^{named}: outside of its space, or forbidden"):
                blocks[1]["valid"][2, 0] = 1
                blocks[1][column][at] = value
                ppo.Dataset.of(Dataset(blocks, 0), network_of(saved))

    def test_an_action_without_a_mask_may_be_anything(self):
        saved = case("several")
        for block in (blocks := list(trajectories(saved))):
            block["action_mask/1"][:] = 1
        masked = ppo.Dataset.of(Dataset(blocks, 0), network_of(saved))
        policy = policy_of(saved)
        actions = tuple(dataclasses.replace(a, mask="") if a.column == "action/2" else a for a in policy.actions)
        open_ = ppo.Dataset.of(Dataset(blocks, 0), Network(dataclasses.replace(policy, actions=actions)))
        self.assertEqual(masked.mask.shape[1], 7)
        self.assertFalse(masked.mask[:, :3].all())
        torch.testing.assert_close(open_.mask, masked.mask)

    def test_a_joint_distribution_is_that_of_independent_ones(self):
        torch.manual_seed(1)
        box = Box(2, (-1.0, -1.0), (1.0, 1.0), "fixed", -0.5)
        joint = Joint((Discrete((3, 2), start=1), box, Discrete((2, 2), binary=True)), 4)
        params = joint(torch.randn(6, 4))
        mask = torch.ones(6, 9, dtype=torch.bool)
        mask[:, 1] = False
        action = torch.tensor([[2, 1, 0.3, -0.4, 1, 0]]).expand(6, -1)
        every = (*(torch.distributions.Categorical(logits=x) for x in (params[:, :3].masked_fill(~mask[:, :3], -1e30), params[:, 3:5])),
                 torch.distributions.Normal(params[:, 5:7], params[:, 7:9].exp()), torch.distributions.Bernoulli(logits=params[:, 9:]))
        drawn = (action[:, 0], action[:, 1], action[:, 2:4], action[:, 4:])
        log_prob, entropy = joint.log_prob(params, mask, action)
        torch.testing.assert_close(log_prob, sum(d.log_prob(x).view(6, -1).sum(1) for d, x in zip(every, drawn)))
        torch.testing.assert_close(entropy, sum(d.entropy().view(6, -1).sum(1) for d in every))

    def test_states_have_the_boxs_deviations(self):
        config = types.SimpleNamespace(threads=1, adam_eps=1e-5, adam_beta1=0.9, adam_beta2=0.999, adaptive_kl=0.01, learning_rate_min=1e-5, learning_rate_max=1e-2)
        box = Box(2, (-1.0, -float("inf")), (1.0, float("inf")), "parameter", -0.5)
        trainer = ppo.Trainer(config, 1, layout(3, (box,), [4]))
        trainer.following.begin(3e-3)
        meta, tensors = trainer.state()
        self.assertEqual(tensors["actor.log_std.value"].tolist(), [-0.5, -0.5])
        tensors["actor.log_std.value"] += 1
        meta["learning_rate"] = 2e-3
        trainer.set_state(meta, tensors)
        self.assertEqual((trainer.state()[1]["actor.log_std.value"].tolist(), round(float(trainer.following.rate), 9)), ([0.5, 0.5], 2e-3))

    def test_no_tensor_can_write_to_a_leased_block(self):
        [block] = trajectories(case("shared"))
        for name in ("obs", "reward", "action", "policy_version"):
            leased = block[name].view(Leased)
            leased.flags.writeable = False
            before = leased.copy()
            torch.from_dlpack(leased).zero_()
            numpy.testing.assert_array_equal(leased, before)
            self.assertEqual(torch.from_dlpack(block[name]).data_ptr(), block[name].ctypes.data, name)


class Registers:
    """The two calls of torch.cuda.cudart(), counted."""

    def __init__(self, code=0):
        self.code, self.calls = code, []

    def cudaHostRegister(self, address, size, flags):
        self.calls.append(("register", address, size, flags))
        return self.code

    def cudaHostUnregister(self, address):
        self.calls.append(("unregister", address))
        return 0


class UploadTest(unittest.TestCase):
    """What needs no GPU of how blocks come to one."""

    def leased(self, name, case_name="lstm"):
        """An arena with the blocks of a case, and leases of them."""
        saved = case(case_name)
        arena = HostArena(1, name, 4, saved.meta["schema"]["bytes"], saved.meta["schema"])
        leases = []
        for _, blob in sorted(saved.blobs.items()):
            loan = arena.view.loan()
            loan.array[:] = numpy.frombuffer(blob, numpy.uint8)
            leases.append(arena.view.lease(loan.commit()))
        return arena, leases

    def test_columns_of_whole_blocks_are_those_of_the_arrays(self):
        for name in ("separate", "box", "lstm"):
            _, leases = self.leased("trajectories", name)
            blocks = [lease.trajectory for lease in leases]
            want = Dataset(blocks, 0).tensors()
            names = list(want)
            got = Upload(logging.getLogger("test")).columns(blocks, names, "cpu")
            for name in names:
                torch.testing.assert_close(got[name] != 0 if want[name].dtype == torch.bool else got[name], want[name], rtol=0, atol=0,
                                           equal_nan=True)
            before = blocks[0].obs.copy()
            got["obs"].zero_()
            numpy.testing.assert_array_equal(blocks[0].obs, before)

    def test_an_arena_is_registered_once_and_until_it_is_let_go(self):
        cudart = Registers()
        upload = Upload(logging.getLogger("test"), cudart)
        arena, leases = self.leased("trajectories")
        segment = leases[0].trajectory.segment
        for lease in leases * 2:
            upload._register(lease.trajectory.segment, torch.device("cpu"))
        address, size = segment.address, segment.memory.nbytes
        self.assertEqual(cudart.calls, [("register", address, size, 1)])
        for lease in leases:
            lease.release()
        del arena, leases, lease, segment
        gc.collect()
        self.assertEqual(cudart.calls[1:], [("unregister", address)])

    def test_what_the_driver_refuses_is_said_once(self):
        cudart = Registers(code=304)
        upload = Upload(logging.getLogger("test"), cudart)
        arenas = [self.leased(name) for name in ("one", "two")]
        with self.assertLogs("test", logging.WARNING) as told:
            for _, leases in arenas * 2:
                upload._register(leases[0].trajectory.segment, torch.device("cpu"))
        self.assertEqual((len(cudart.calls), len(told.records), told.records[0].fields), (2, 1, {"arena": "one", "error": 304}))
        del arenas, leases
        gc.collect()
        self.assertNotIn("unregister", [call[0] for call in cudart.calls])


class PluginTest(unittest.TestCase):
    def begin(self, saved, **keys):
        """Starts the learner beside an arena with the blocks of a case; returns it and their handles."""
        arena = HostArena(1, "rollout.trajectories", 4, saved.meta["schema"]["bytes"], saved.meta["schema"])
        datasets = HostArena(2, "batcher.datasets", 2, 4096)
        host = FakeHost(python(str(HERE / "learner.py")), arenas=[arena, datasets]).connect()
        self.addCleanup(host.close)
        c = saved.meta["config"]
        answer = host.configure("learner", {
            "policy": "main", "epochs": c["Epochs"], "minibatch": c["Minibatch"], "learning_rate": saved.meta["rates"]["LearningRate"],
            "normalize_advantage": c["NormalizeAdvantage"], "value_clip": c["ValueClip"], "target_kl": c["TargetKL"],
            "adaptive_kl": c["AdaptiveKL"], "separate_grad_norms": c["SeparateGradNorms"], "vtrace": c["VTrace"], "vtrace_recompute": c["VTraceRecompute"],
            "accumulate": c.get("Accumulate", 1), "burn_in_rows": c.get("BurnInRows", 0), **keys},
            run={"name": "test", "seed": saved.meta["seed"]}, readers={"weights": 3}, envs={"env": saved.meta["schema"]["spec"]},
            policies={"main": {"env": "env", "table": saved.meta["table"]}})
        self.assertEqual(answer["errors"], [])
        start = host.channel.unary_unary("/rlhost.plugin.v1.Plugin/Start").future(b"", wait_for_ready=True)
        weights = host.grant_arena(90)
        start.result(60)
        self.assertEqual((weights.name, weights.blocks), ("learner.weights", 5))
        handles = []
        for _, blob in sorted(saved.blobs.items()):
            loan = arena.view.loan()
            loan.array[:] = numpy.frombuffer(blob, numpy.uint8)
            handles.append(loan.commit())
        return host, arena, datasets, weights, handles

    def restore(self, host, saved):
        """Restores a state of the built-in learner with the parameters of a case."""
        tensors = {}
        for name, p, turned in network_of(saved).tensors():
            value = (p.t() if turned else p).detach().numpy().copy()
            tensors |= {name: value, "adam_m." + name: value * 0, "adam_v." + name: value * 0}
        meta = {"network": saved.meta["nodes"], "policy_version": 5, "env_steps": 100, "optimizer_steps": 10, "datasets": saved.meta["index"],
                "adam_steps": 0, "anneal_env_steps": 0}
        data = state.pack(rlhost.State(meta, tensors))
        fd = os.memfd_create("state")
        os.write(fd, data)
        host.send_frame({"state": {"call": 1, "bytes": len(data)}}, [fd])
        host.call("Restore", {"call": 1, "bytes": len(data)})

    def test_a_dataset_makes_new_weights_a_report_and_a_boundary(self):
        self.learns(case("separate"))

    def test_parts_of_blocks_are_learned_like_the_blocks(self):
        for name in ("separate", "turns_lstm"):
            with self.subTest(name):
                self.learns(case(name), cut=True)

    def test_the_device_can_be_the_processor(self):
        self.learns(case("separate"), device="cpu")

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_it_learns_on_a_gpu(self):
        for name in ("separate", "lstm", "several"):
            with self.subTest(name):
                self.learns(case(name), device="cuda")

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_a_device_that_is_not_there_is_said_of_its_key(self):
        host = FakeHost(python(str(HERE / "learner.py"))).connect()
        self.addCleanup(host.close)
        [error] = host.configure("learner", {"policy": "main", "device": "cuda:1"}, check_only=True)["errors"]
        self.assertEqual((error["key"], error["code"]), ("device", "E039"))
        self.assertIn("finds no GPU", error["reason"])

    def test_a_box_is_learned_too(self):
        kept = self.learns(case("box"))
        self.assertEqual(kept.tensors["actor.log_std.value"].shape, (2,))
        self.assertEqual(kept.meta["network"]["policy"][0]["gaussian"], {"n": 2})

    def test_cores_are_learned_too(self):
        kept = self.learns(case("lstm"))
        self.assertEqual(kept.tensors["critic.core.weight_hh"].shape, (5, 20))
        self.assertEqual(kept.meta["network"]["chunk"], 4)

    def test_burn_in_and_accumulation_are_learned_too(self):
        saved = case("warmed_lstm")
        kept = self.learns(saved)
        self.assertEqual(kept.meta["optimizer_steps"], 10 + 2 * saved.meta["stats"]["OptimizerSteps"])

    def test_agents_in_turns_are_learned_too(self):
        kept = self.learns(case("turns_lstm"))
        self.assertEqual(kept.meta["network"]["chunk"], 8)

    def test_several_actions_are_learned_too(self):
        kept = self.learns(case("several"))
        self.assertEqual({name: value.shape for name, value in kept.tensors.items() if name.startswith("actor.") and "." in name[6:]}, {
            "actor.0.weight": (5, 12), "actor.0.bias": (12,), "actor.1.weight": (12, 7), "actor.1.bias": (7,),
            "actor.head.weight": (7, 2), "actor.head.bias": (2,), "actor.log_std.value": (2,), "actor.head.1.weight": (7, 3),
            "actor.head.1.bias": (3,), "actor.head.2.weight": (7, 2), "actor.head.2.bias": (2,), "actor.head.3.weight": (7, 1),
            "actor.head.3.bias": (1,), "actor.log_std.3.value": (1,)})

    def test_networks_are_described_as_by_the_built_in_learner(self):
        for name in CASES:
            with self.subTest(name):
                saved = case(name)
                policy = policy_of(saved)
                self.assertEqual(policy.network(), saved.meta["nodes"])
                policy.check(saved.meta["nodes"])
                shapes = {name: (p.t() if turned else p).shape for name, p, turned in network_of(saved).tensors()}
                self.assertEqual(list(policy.tensors().items()), list(shapes.items()))

    def learns(self, saved, cut=False, **keys):
        """Two updates through the program; returns what it saves. With cut the first environment of each block is a part, and the
        others another one."""
        host, arena, datasets, weights, handles = self.begin(saved, **keys)
        self.restore(host, saved)
        host.send(rlhost.Message(slot=0xFF06))
        first = host.receive()
        self.assertEqual((first.signal, first.policy_version), (0, 5))
        loan = datasets.view.loan()
        envs = saved.meta["schema"]["envs"]
        if cut and envs > 1:
            listed = [h for h in handles for _ in range(2)]
            parts = [x for i in range(len(handles)) for x in (2 * i, 0, 1, 0, 2 * i + 1, 1, envs - 1, 1)]
        else:
            listed, parts = handles, []
        struct.pack_into(f"<QII{len(listed)}Q{len(parts)}I", loan.array, 0, 0, len(listed), len(parts) // 4, *listed, *parts)
        dataset = loan.commit()
        for version in (6, 7):
            host.send(rlhost.Message(handle=dataset))
            published = host.receive(60)
            if version == 6:
                stats = host.grant_arena()  # with the names of what the first update reports
                self.assertLessEqual({"losses/" + f.name for f in dataclasses.fields(ppo.Report)}, set(stats.schema["names"]))
            reported, boundary = host.receive(), host.receive()
            self.assertEqual((published.signal, published.policy_version, boundary.slot), (0, version, BOUNDARY))
            with weights.view.lease(published.handle) as lease:
                head = struct.unpack_from("<QII", lease.array)
                vector = lease.array[64:][:4 * head[1]].view("<f4").copy()
            with stats.view.lease(reported.handle) as lease:
                told = lease.values()
            size = host.call("Snapshot")
            host.send(rlhost.Message(slot=BOUNDARY_OVER))
        self.assertEqual(head, (7, len(saved.tensors["before"]), 0))
        numpy.testing.assert_allclose(vector, saved.tensors["after"], atol=2e-5)
        valid = sum(int(block["valid"].sum()) for block in trajectories(saved))
        self.assertEqual((told["policy_version"], told["global_step"]), (7, 100 + 2 * valid))
        self.assertEqual(told["losses/valid_rows"], saved.meta["stats"]["ValidRows"])
        self.assertAlmostEqual(told["losses/value_loss"], saved.meta["stats"]["ValueLoss"], delta=1e-4)
        _, [fd] = host.frame("state")
        _, [fd] = host.frame("state")
        kept = state.unpack(os.pread(fd, size["bytes"], 0))
        self.assertEqual((kept.meta["policy_version"], kept.meta["adam_steps"]), (7, kept.meta["optimizer_steps"] - 10))
        first = (5, saved.meta["table"]["net"]["hidden"][0])
        self.assertEqual(kept.tensors["actor.0.weight"].shape, first)
        numpy.testing.assert_array_equal(kept.tensors["actor.0.weight"].ravel(), vector[:first[0] * first[1]])
        host.call("Stop")
        self.assertEqual(host.shutdown(), 0)
        return kept


if __name__ == "__main__":
    unittest.main()
