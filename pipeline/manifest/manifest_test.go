package manifest_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/manifest"
	"github.com/rlhost/rlhost/pipeline/placement"
)

var update = flag.Bool("update", false, "write the golden files")

var job = manifest.Job{
	Name: "Cart_Pole", File: "pipeline.toml", Runs: "runs", Hosts: 3, Cores: 8, Image: "registry.example/rlhost:1",
	Machines: []placement.Host{
		{Name: "b", Slots: 8, Labels: map[string]string{"gpu": "h100", "zone": "x'y"}},
		{Name: "me@c.example", Slots: placement.Unknown},
	},
}

func TestWrite_EachFormat(t *testing.T) {
	for _, f := range []manifest.Format{manifest.JobSet, manifest.Compose, manifest.Nomad, manifest.Slurm, manifest.SSH} {
		var got bytes.Buffer
		if err := manifest.Write(&got, f, job); err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		golden := filepath.Join("testdata", string(f))
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s (%v):\n%s", f, err, got.Bytes())
		}
	}
}

// TestWrite_ScriptsTakeAnyName runs what the scripts run, by programs that note their arguments.
func TestWrite_ScriptsTakeAnyName(t *testing.T) {
	for f, called := range map[manifest.Format]string{manifest.Slurm: "srun", manifest.SSH: "rlhost"} {
		dir := t.TempDir()
		odd := job
		odd.File = `it's "odd" $HOME ${x} %{y}.toml`
		var script bytes.Buffer
		if err := manifest.Write(&script, f, odd); err != nil {
			t.Fatal(err)
		}
		said := filepath.Join(dir, "said")
		program := "#!/bin/sh\nfor a; do printf '<%s>\\n' \"$a\"; done >>'" + said + "'\nexit 7\n"
		if f == manifest.Slurm { // it runs the command as task 0
			program = "#!/bin/sh\nshift\nSLURM_PROCID=0 exec \"$@\"\n"
			write(t, filepath.Join(dir, "rlhost"), "#!/bin/sh\nfor a; do printf '<%s>\\n' \"$a\"; done >>'"+said+"'\nexit 7\n")
		}
		write(t, filepath.Join(dir, called), program)
		c := exec.Command("sh")
		c.Stdin, c.Dir, c.Env = &script, dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 7 {
			t.Errorf("%s: %v, want the exit code of the run:\n%s", f, err, out)
		}
		got, err := os.ReadFile(said)
		if err != nil || !strings.HasPrefix(string(got), "<train>\n<"+odd.File+">\n<--listen>\n<0.0.0.0:4222>\n") {
			t.Errorf("%s: %v, called with\n%s", f, err, got)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestWrite_SaysWhatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*manifest.Job) manifest.Format{
		"must be below the working folder":      func(j *manifest.Job) manifest.Format { j.File = "/etc/p.toml"; return manifest.Slurm },
		"no name of an image":                   func(j *manifest.Job) manifest.Format { j.Image = "a\nb"; return manifest.Compose },
		"there is no machine but the run's own": func(j *manifest.Job) manifest.Format { j.Machines = nil; return manifest.SSH },
		"no machine that ssh reaches": func(j *manifest.Job) manifest.Format {
			j.Machines = []placement.Host{{Name: "-oProxyCommand=x"}}
			return manifest.SSH
		},
	} {
		j := job
		f := change(&j)
		var out bytes.Buffer
		if err := manifest.Write(&out, f, j); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%v and %d bytes, want %q", err, out.Len(), want)
		}
	}
}

func TestJob_LabelSuitsKubernetes(t *testing.T) {
	for name, want := range map[string]string{
		"cartpole": "cartpole", "Cart_Pole.v1": "cart-pole-v1", "1x": "rlhost-1x", "_": "rlhost-", strings.Repeat("a", 60): strings.Repeat("a", 40),
	} {
		j := manifest.Job{Name: name}
		if got := j.Label(); got != strings.TrimSuffix(want, "-") {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
