package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/files"
)

// Format is the version of the files of a run that this package writes. It reads those from oldestFormat on.
const (
	Format       = 1
	oldestFormat = 1
)

// States of a run. A run whose state is running and that is not locked was killed.
const (
	Running = "running"
	Ended   = "ended"
)

const infoFile = "run.json"

// maxDocument bounds the JSON files of a run.
const maxDocument = 64 << 20

// Info is the content of run.json.
type Info struct {
	Format int    `json:"format"`
	Rlhost string `json:"rlhost"` // version of the program
	Name   string `json:"name"`
	Number int    `json:"number"`
	Seed   uint64 `json:"seed"`
	Mode   string `json:"mode"`    // async or sync
	Kernel string `json:"kernels"` // set of kernels that parameter hashes hold for, such as avx512
	// Plugins has the SHA-256 of every plugin by its file or name, in hexadecimal.
	Plugins map[string]string `json:"plugins,omitempty"`
	// Policy is the leading learned policy; empty in runs of older versions. Run.Lead sets it.
	Policy string `json:"policy,omitempty"`
	// Policies describes each policy that is learned by its name in the file.
	Policies map[string]json.RawMessage `json:"policies,omitempty"`
	// Left has the newest version of each policy that was learned and was removed, by its name: versions continue should it come back.
	Left map[string]uint64 `json:"left_policy_versions,omitempty"`
	// File is the pipeline file that the run was begun with, which a reload without a file reads, and Sets are the overrides of
	// its keys. Empty in runs of older versions.
	File string   `json:"file,omitempty"`
	Sets []string `json:"sets,omitempty"`
	// Python is the interpreter that Gymnasium's environments were played with; empty where there are none.
	Python  string     `json:"python,omitempty"`
	Started time.Time  `json:"started"`
	Host    Host       `json:"host"`
	State   string     `json:"state"`
	Reason  string     `json:"reason,omitempty"` // why it ended
	Ended   *time.Time `json:"ended,omitempty"`
	Resumes []Resume   `json:"resumes,omitempty"`
	// Starting says what a process that does not listen to commands yet is doing, and how far it is; nil before and after.
	Starting *Starting `json:"starting,omitempty"`
	// Socket is where the process that writes to the run listens to commands such as rlhost status.
	Socket string `json:"control_socket,omitempty"`
	// SaveFailures counts checkpoints that could not be written.
	SaveFailures uint64 `json:"save_failures,omitempty"`
	// Env is the use of the leading policy's environment, such as cartpole@1.
	Env string `json:"env,omitempty"`
	// Outcome is an ended run's result; nil before, and of runs of older versions.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Starting says how far the start of a run is whose environments take long to make.
type Starting struct {
	Envs int `json:"envs"`
	Made int `json:"envs_made"`
}

// String describes it in a line.
func (s *Starting) String() string {
	noun := "environments"
	if s.Envs == 1 {
		noun = "environment"
	}
	return fmt.Sprintf("starting %d %s, %d made", s.Envs, noun, s.Made)
}

// Outcome is a run's result, with several policies the leading one's. Unknown numbers are nil.
type Outcome struct {
	EnvSteps      uint64   `json:"env_steps"`
	PolicyVersion uint64   `json:"policy_version"`
	WallSeconds   float64  `json:"wall_seconds"` // of the process that ended it
	MeanReturn    *float64 `json:"mean_return"`  // over the window of training episodes
	// Return is the mean return of the final evaluation that is judged; Greedy and Sampled are the mean returns of both ways of acting.
	Return     *float64 `json:"return"`
	Greedy     *float64 `json:"greedy"`
	Sampled    *float64 `json:"sampled"`
	ParamsHash string   `json:"params_hash,omitempty"`
	// ParamsHashes and Returns belong to the other learned policies, by their names.
	ParamsHashes map[string]string  `json:"params_hashes,omitempty"`
	Returns      map[string]float64 `json:"returns,omitempty"`
}

// Host is the machine that the run was started on.
type Host struct {
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"` // that the process may use
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// Resume records that the run was resumed from a checkpoint.
type Resume struct {
	At            time.Time `json:"at"`
	PolicyVersion uint64    `json:"policy_version"`
	EnvSteps      uint64    `json:"env_steps"`
	Exact         bool      `json:"exact"`
	Why           string    `json:"why,omitempty"` // why it is not exact
}

// ID returns name and number as name/0007.
func (i *Info) ID() string { return fmt.Sprintf("%s/%04d", i.Name, i.Number) }

// readInfo reads run.json of a folder and rejects unknown formats.
func readInfo(dir string) (Info, error) {
	path := filepath.Join(dir, infoFile)
	b, err := files.Read(path, maxDocument)
	if err != nil {
		return Info{}, err
	}
	var i Info
	err = json.Unmarshal(b, &i)
	if err != nil || i.Format < oldestFormat || i.Format > Format {
		if err := checkFormat(path, b); err != nil {
			return Info{}, err
		}
		return Info{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := CheckName(i.Name); err != nil || i.Number < 1 || i.Number > maxNumber {
		return Info{}, fmt.Errorf("%s is %w: it is of run %q, number %d", path, ErrCorrupt, i.Name, i.Number)
	}
	return i, nil
}

// checkFormat checks the format version of a JSON file before its contents are used.
func checkFormat(path string, b []byte) error {
	var head struct {
		Format *int   `json:"format"`
		Rlhost string `json:"rlhost"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	writer := "another rlhost"
	if head.Rlhost != "" {
		writer = "rlhost " + head.Rlhost
	}
	switch {
	case head.Format == nil:
		return fmt.Errorf("%s is damaged: it has no format version", path)
	case *head.Format > Format:
		return fmt.Errorf("%s was written by %s in format %d, this one reads formats up to %d: use that rlhost or a newer one",
			path, writer, *head.Format, Format)
	case *head.Format < oldestFormat:
		return fmt.Errorf("%s was written by %s in format %d, this one reads formats from %d on: use that rlhost",
			path, writer, *head.Format, oldestFormat)
	}
	return nil
}

// encodeJSON returns v as indented JSON with a final newline.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// ThisHost describes this machine. The processor's name is empty if the system does not report it.
func ThisHost() Host {
	h := Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Arch: runtime.GOARCH}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return h
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, ok := strings.Cut(s.Text(), ":")
		if ok && strings.TrimSpace(key) == "model name" {
			h.CPU = strings.TrimSpace(value)
			break
		}
	}
	return h
}
