package manifest

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// Format names a kind of file.
type Format string

// The formats.
const (
	JobSet  Format = "jobset.yaml"  // for kubectl, where JobSet is installed
	Compose Format = "compose.yaml" // for docker compose and podman compose
	Nomad   Format = "nomad.hcl"    // for nomad job run
	Slurm   Format = "slurm.sh"     // for sbatch
	SSH     Format = "ssh.sh"       // for sh, on the run's own machine
)

// Job is a run on several machines.
type Job struct {
	Name     string           // of the run
	File     string           // the pipeline file, as the working folder sees it
	Runs     string           // folder of runs, likewise
	Listen   string           // HOST:PORT, where the file says so; empty = any address, port 4222
	Hosts    int              // other machines than the run's own; all formats but ssh
	Cores    int              // processors of each; all formats but ssh
	Image    string           // of containers; JobSet, Compose and Nomad
	Machines []placement.Host // that ssh reaches, without the run's own
}

// defaultPort is where a run listens whose file does not say it.
const defaultPort = "4222"

// startsWithin is how long machines wait for the run, which a scheduler may start after them.
const startsWithin = "10m"

//go:embed *.yaml *.hcl *.sh
var sources embed.FS

// Write writes the file of a format. An error of the job is one that its user can mend.
func Write(w io.Writer, f Format, j Job) error {
	if err := j.check(f); err != nil {
		return err
	}
	t, err := template.New(string(f)).Funcs(template.FuncMap{"yaml": yaml, "list": list, "hcl": hcl, "hclList": hclList, "sh": text.Shell, "words": words, "inner": inner}).
		ParseFS(sources, string(f))
	if err != nil {
		return err
	}
	return t.Execute(w, &j)
}

func (j *Job) check(f Format) error {
	if f == SSH {
		if len(j.Machines) == 0 {
			return errors.New("there is no machine but the run's own: write a line for each, the run's own first")
		}
		for _, h := range j.Machines {
			if strings.HasPrefix(h.Name, "-") {
				return fmt.Errorf("%q is no machine that ssh reaches", h.Name)
			}
		}
		return nil
	}
	if !filepath.IsLocal(j.File) || !filepath.IsLocal(j.Runs) {
		return fmt.Errorf("%s and %s must be below the working folder, which all machines see: go to the folder of the pipeline file", j.File, j.Runs)
	}
	if j.Image == "" || strings.ContainsFunc(j.Image, func(c rune) bool { return c <= ' ' }) {
		return fmt.Errorf("%q is no name of an image", j.Image)
	}
	return nil
}

// Nodes is how many machines there are.
func (j *Job) Nodes() int { return j.Hosts + 1 }

// Train is the command of the run's own machine, without the program.
func (j *Job) Train() []string {
	args := []string{"train", j.File}
	if j.Listen == "" {
		args = append(args, "--listen", "0.0.0.0:"+defaultPort)
	}
	return args
}

// Port is where the run listens.
func (j *Job) Port() string {
	if i := strings.LastIndexByte(j.Listen, ':'); i >= 0 {
		return j.Listen[i+1:]
	}
	return defaultPort
}

// Join is the command of another machine, without the program; host is the run's own, or empty for the address in the token.
func (j *Job) Join(host string) []string {
	args := []string{"join"}
	if host != "" {
		args = append(args, host+":"+j.Port())
	}
	return append(args, "--token-file", j.Tokens(), "--wait", startsWithin)
}

// Tokens matches the token of each run of this name.
func (j *Job) Tokens() string { return path.Join(filepath.ToSlash(j.Runs), j.Name, "*", "join.token") }

// Machine is a line of the script for ssh.
type Machine struct {
	Name string
	Join string // the command, quoted for the shell there
}

// Reached are the machines of the script for ssh, which get the token by their standard input.
func (j *Job) Reached() (list []Machine) {
	for _, h := range j.Machines {
		_, name, user := strings.Cut(h.Name, "@")
		if !user {
			name = h.Name
		}
		args := []string{"rlhost", "join", "--token-file", "/dev/stdin", "--name", name}
		if h.Slots != placement.Unknown {
			args = append(args, "--slots", strconv.Itoa(h.Slots))
		}
		var labels []string
		for key, value := range h.Labels {
			labels = append(labels, "--label="+key+"="+value)
		}
		slices.Sort(labels)
		list = append(list, Machine{h.Name, words(append(args, labels...))})
	}
	return list
}

// longestLabel is what Kubernetes leaves a JobSet of its 63 letters: it appends the names of jobs and pods.
const longestLabel = 40

// Label is the run's name as Kubernetes and Nomad take names: small letters, digits and hyphens.
func (j *Job) Label() string {
	label := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, j.Name)
	label = strings.Trim(label[:min(len(label), longestLabel)], "-")
	if label == "" || label[0] <= '9' {
		return strings.TrimSuffix("rlhost-"+label, "-")
	}
	return label
}

// yaml quotes for YAML, which takes JSON's texts.
func yaml(s string) (string, error) {
	quoted, err := json.Marshal(s)
	return string(quoted), err
}

func list(all []string) (string, error) {
	quoted, err := json.Marshal(all)
	return string(quoted), err
}

// hcl quotes for HCL, where ${ and %{ begin an expression.
func hcl(s string) (string, error) {
	quoted, err := yaml(s)
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(quoted), err
}

func hclList(all []string) (string, error) {
	quoted, err := list(all)
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(quoted), err
}

func words(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = text.Shell(s)
	}
	return strings.Join(quoted, " ")
}

// inner quotes for the inside of a text that stands between single quotes of sh.
func inner(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }
