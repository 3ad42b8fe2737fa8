package main

import (
	"fmt"
	"strings"
	"testing"
)

// asker sends values to a component in Go and compares what comes back; the last one is too long for the answer.
const asker = `import numpy
import rlhost

VALUES = [None, True, -1, 1 << 70, 2.5, "é", b"\0\xff", (), [1, [2]], {"a": 1, 2: {"b": (None,)}}, numpy.arange(6, dtype="f4").reshape(2, 3),
          numpy.float32(0.5), numpy.array(7), {"obs": numpy.zeros((3, 0), ">i2")}]


class Asker(rlhost.Component):
    signals = [rlhost.Signal("asked", "value")]
    slots = [rlhost.Slot("on_told", "value")]

    def configure(self, config):
        self.long = config.get("long", False)

    def begin(self):
        self.count = 0
        self.ask()

    def ask(self):
        self.host.emit("asked", VALUES[self.count % len(VALUES)])

    def on_told(self, told):
        assert list(told) == ["asked", "count"]
        numpy.testing.assert_equal(told["asked"], VALUES[self.count % len(VALUES)])
        assert type(told["asked"]) is type(VALUES[self.count % len(VALUES)]), told
        self.count += 1
        assert told["count"] == self.count
        if self.count < 500:
            self.ask()
        elif self.long:
            self.host.emit("asked", "x" * 5000)
        else:
            self.host.stop("component")


rlhost.serve(Asker)
`

// Components in Python and Go send each other values, and get what was sent.
func TestValues_AreTheSameInGoAndPython(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	python := w.python()
	w.build("echo", "go", "./cmd/rlhost/testdata/values")
	w.write("asker.py", asker)
	w.write("values.toml", fmt.Sprintf(`rlhost = 1
[run]
name = "values"
stop = { wall_time = "2m" }
[plugin.asker]
path = "./asker.py"
interpreter = [%q]
[plugin.echo]
path = "./echo"
[component.asker]
plugin = "asker"
[component.echo]
plugin = "echo"
[[wire]]
signal = "asker.asked"
slot = "echo.on_asked"
[[wire]]
signal = "echo.told"
slot = "asker.on_told"
depth = 1
on_full = "fail"
`, python))
	out, err := w.command("run", "values.toml").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ended (component)") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = w.command("run", "values.toml", "--set", "component.asker.long=true").CombinedOutput()
	if want := "E096 signal echo.told: a value of 5039 bytes, at most 4096"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, want %q\n%s", err, want, out)
	}
}
