"""Components for the tests."""

import os
import time

import rlhost


class Count(rlhost.Component):
    """Counts blocks and passes them on."""

    kind = "count"
    signals = [rlhost.Signal("trajectories", "trajectory", "every block"), rlhost.Signal("sums", "sum")]
    slots = [rlhost.Slot("on_trajectories", "trajectory", "blocks")]

    def configure(self, config):
        self.factor = config.pop("factor", 1)
        if self.factor == 0:
            raise rlhost.ConfigError("factor", "is 0, want another", "write 1")
        self.write = config.pop("write", [])
        super().configure(config)

    def start(self, host):
        self.seen = 0
        self.sums = host.add_arena("sums", 4, 16, names=["blocks", "sum"])

    def on_trajectories(self, m):
        with self.host.lease(m.handle, write=self.write) as block:
            if self.write:
                block.trajectory.reward[...] *= 2
            total = float(block.trajectory.reward.sum()) * self.factor
        self.seen += 1
        self.host.stats.count("blocks")
        self.host.stats.gauge("sum", total)
        self.host.stats.observe("sums", total)
        self.host.forward("trajectories", m)
        with self.sums.loan() as loan:
            loan.array.view("f8")[:] = [self.seen, total]
            handle = loan.commit()
        self.host.emit("sums", handle=handle, policy_version=m.policy_version, inline=(m.t, 9))
        self.host.release(handle)

    def snapshot(self):
        import numpy
        return rlhost.State({"seen": self.seen}, {"w": numpy.arange(6, dtype="f4").reshape(2, 3)}, {"b": b"\0\1"})

    def restore(self, state):
        self.seen = state.meta["seen"]
        assert state.tensors["w"].shape == (2, 3) and state.blobs["b"] == b"\0\1", state


class Wrong(rlhost.Component):
    """Does what a component should not."""

    kind = "wrong"
    slots = [rlhost.Slot("on_text", "text")]
    signals = [rlhost.Signal("said", "text")]

    def configure(self, config):
        self.do = config

    def start(self, host):
        if self.do.get("start"):
            raise RuntimeError("cannot start")
        if self.do.get("lease"):
            host.lease(0, write=["reward"])

    def on_text(self, m):
        print("printed by a slot")
        if m.kind == 1:
            raise ValueError("this slot is broken")
        if m.kind == 2:
            time.sleep(3600)
        if m.kind == 3:
            self.host.boundary()
        if m.kind == 4:
            self.host.lease(m.inline[0])
        if m.kind == 6:
            self.kept = self.host.lease(m.inline[0])
        if m.kind == 7:
            self.kept.release()
        if m.kind == 8:
            with self.host.lease(m.inline[0]):
                self.host.boundary()
        if m.kind == 5:
            self.host.after(0.01, lambda: self.host.emit("said", kind=55))
            return
        self.host.log.warning("said %d", m.kind)
        self.host.emit("said", kind=m.kind, inline=(os.getpid(), len(os.listdir("/proc/self/fd"))))


if __name__ == "__main__":
    rlhost.serve(Count, Wrong)
