package control

// Protocol is the version of the documents below. A job answers a client of another version with CodeProtocol.
const Protocol = 1

// Verb names a request.
type Verb string

// Verbs, with the types of their request and reply.
const (
	VerbStatus     Verb = "status"     // StatusRequest, StatusReply
	VerbSwap       Verb = "swap"       // SwapRequest, SwapReply
	VerbRollback   Verb = "rollback"   // RollbackRequest, SwapReply
	VerbReload     Verb = "reload"     // ReloadRequest, ReloadReply
	VerbScale      Verb = "scale"      // ScaleRequest, ReloadReply
	VerbRewire     Verb = "rewire"     // RewireRequest, ReloadReply
	VerbPause      Verb = "pause"      // GroupRequest, GroupReply
	VerbUnpause    Verb = "unpause"    // GroupRequest, GroupReply
	VerbCheckpoint Verb = "checkpoint" // CheckpointRequest, CheckpointReply
	VerbStop       Verb = "stop"       // StopRequest, StopReply
	VerbTap        Verb = "tap"        // TapRequest, TapReply; each TapRecord is a notice
	VerbLogs       Verb = "logs"       // LogsRequest, LogsReply; each record is a notice
	VerbRequest    Verb = "request"    // AskRequest, AskReply
)

// StatusRequest asks for the job's status.
type StatusRequest struct {
	// Wait answers only once nothing is in transition: no swap, no probation, no component starting.
	Wait bool `json:"wait,omitempty"`
}

// StatusReply describes a job at one moment.
type StatusReply struct {
	Run        string            `json:"run"` // name/0001
	Dir        string            `json:"dir"`
	PID        int               `json:"pid"`
	State      State             `json:"state"`
	Wall       float64           `json:"wall_seconds"`
	Components []ComponentStatus `json:"components"`
	Wires      []WireStatus      `json:"wires"`
	Steps      StepCounts        `json:"env_steps"`
	Policy     uint64            `json:"policy_version"`     // of the leading policy
	MeanReturn *float64          `json:"train_return"`       // its, over the window; null while that is not full
	Elo        *float64          `json:"eval_elo,omitempty"` // its rating in the newest evaluation, where it has a pool
	Learners   []LearnerStatus   `json:"learners,omitempty"` // where there are several
	Wrapped    uint64            `json:"wrapped_bytes"`      // that wrappers around environments have copied
	Processes  uint64            `json:"process_bytes"`      // memory of the processes of environments
	Swaps      SwapCounts        `json:"swaps"`
	Transition string            `json:"transition,omitempty"` // the change under way, in one line
	Probation  []Probation       `json:"probation,omitempty"`
	Resources  Resources         `json:"resources"`
	Hosts      []HostStatus      `json:"hosts,omitempty"` // that have joined
	Cause      string            `json:"cause,omitempty"` // why the run does not advance, if so: the first cause, and the blocked wire
}

// LearnerStatus is the state of one of several learners.
type LearnerStatus struct {
	Name       string   `json:"name"`
	Policy     string   `json:"policy"`
	Leads      bool     `json:"leads"` // stop rules and checkpoints are about this one
	Version    uint64   `json:"policy_version"`
	EnvSteps   uint64   `json:"env_steps"`    // learned from, since the job was started
	MeanReturn *float64 `json:"train_return"` // over the window of its policy's episodes; null while that is not full
}

// HostStatus describes another machine of the run.
type HostStatus struct {
	Name    string `json:"name"`
	State   string `json:"state"`   // HERE, LOST, LEFT
	Version string `json:"version"` // of rlhost
	Cores   int    `json:"cores"`
	Memory  uint64 `json:"memory_bytes"`
	Slots   int    `json:"slots"` // units of the pipeline that it may have

	Labels map[string]string `json:"labels,omitempty"`
}

// ComponentStatus describes one instance.
type ComponentStatus struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Runtime  string   `json:"runtime"` // builtin, wasm, process
	Host     string   `json:"host"`    // local, what process, what joined machine, or none
	State    State    `json:"state"`
	Version  *Version `json:"version,omitempty"`  // of the file that it or its environments are made from
	Previous *Version `json:"previous,omitempty"` // that rollback goes back to
	Rate     float64  `json:"rate"`               // per second, see Unit
	Unit     string   `json:"unit"`               // env steps, messages
	Queued   int      `json:"queued"`             // messages that wait for it
	Depth    int      `json:"depth"`              // room for such
	IdleSecs float64  `json:"idle_seconds"`       // since it last took a message
	WaitsFor string   `json:"waits_for,omitempty"`
	Note     string   `json:"note,omitempty"`
	Group    string   `json:"group,omitempty"` // that it is placed and counted with
	Placed   Placed   `json:"placed,omitzero"`
	Envs     Placed   `json:"environments_placed,omitzero"` // the processes of its environments
}

// Placed is where something runs on its machine; zero values are as the system likes.
type Placed struct {
	Cores   string `json:"cores,omitempty"`
	Nice    int    `json:"nice,omitempty"`
	Threads int    `json:"threads,omitempty"`
}

// Version names a running version.
type Version struct {
	File string `json:"file"`
	Hash string `json:"hash"` // SHA-256, hexadecimal
}

// WireStatus has the counters of one wire, all swaps included.
type WireStatus struct {
	Wire      string `json:"wire"`
	Mode      string `json:"mode"`
	Delivered uint64 `json:"delivered"`
	Dropped   uint64 `json:"dropped"`
	Coalesced uint64 `json:"coalesced"`
	Blocked   uint64 `json:"blocked"`
	Queued    int    `json:"queued"`
	Parked    int    `json:"parked"`
	Depth     int    `json:"depth"`
}

// StepCounts are of one moment, and add up: Made = Trained + Dropped + UnderWay. Each is counted where it happens.
type StepCounts struct {
	Made     uint64 `json:"made"`     // in finished trajectories, and in trajectories that were dropped unfinished
	Trained  uint64 `json:"trained"`  // learned from
	Dropped  uint64 `json:"dropped"`  // too old, lost in a fault or by a component or wire, dropped by an immediate swap, or of policies without a learner
	UnderWay uint64 `json:"underway"` // wait in wires, batcher and datasets
	// Reasons are "policy_lag", "fault", "swap", "wire", "not_learned", and "component." with the name of a component that took
	// trajectories and never sent them on.
	Reasons map[string]uint64 `json:"dropped_by"`
}

// SwapCounts counts changes since the run began, resumes included.
type SwapCounts struct {
	Committed  uint64 `json:"committed"`
	RolledBack uint64 `json:"rolled_back"`
	Refused    uint64 `json:"refused"`
}

// Probation is a version on probation.
type Probation struct {
	Component string  `json:"component"`
	Version   Version `json:"version"`
	Left      float64 `json:"left_seconds"`     // of the time that it is watched
	Idle      bool    `json:"idle,omitempty"`   // it has done nothing yet: it is watched until it has
	Paused    bool    `json:"paused,omitempty"` // something is paused, so the clock is stopped
	// Checked is what the checks have found that a brief change made afterwards: "25 checks ok"; empty until they have been made.
	Checked string `json:"checked,omitempty"`
}

// SwapRequest asks for another version of a component, or of the environments that it runs.
type SwapRequest struct {
	Component string `json:"component"` // or COMPONENT.wrap[PLACE], a wrapper of the environments that it runs
	// File is, but for a wrapper, a module, name@version, PLUGIN:ENVIRONMENT, a program, or builtin or process for the same kind elsewhere.
	// Paths are absolute. Of a wrapper it is a table, such as { time_limit = 200 }.
	File       string   `json:"file"`
	At         string   `json:"at,omitempty"` // step, trajectory, episode, now; empty is the pipeline's default
	KeepState  *bool    `json:"keep_state,omitempty"`
	TrialEnvs  *int     `json:"trial_envs,omitempty"`  // environments of the trial, 0 = none
	TrialSteps *int     `json:"trial_steps,omitempty"` // most env steps of each
	TrialLive  bool     `json:"trial_live,omitempty"`
	Probation  *float64 `json:"probation_seconds,omitempty"`
	// Force removes components that do not pause within 10 s and counts the losses; with boundary now, the time is 2 s.
	Force  bool `json:"force,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
}

// Outcome is the result of a change.
type Outcome string

// Outcomes.
const (
	Committed  Outcome = "committed"
	DryRun     Outcome = "dry_run"
	RolledBack Outcome = "rolled_back"
	Unchanged  Outcome = "unchanged" // the same version runs already
)

// SwapReply describes the effect of a swap or a rollback.
type SwapReply struct {
	Component string   `json:"component"`
	Outcome   Outcome  `json:"outcome"`
	Old       Version  `json:"old"`
	New       Version  `json:"new"`
	Checked   string   `json:"checked"` // "abi 1, spaces equal, 23 checks ok"
	Trial     *Trial   `json:"trial,omitempty"`
	At        string   `json:"at"`
	Envs      int      `json:"envs"`           // that went over; 0 for other components
	Kept      int      `json:"kept_episodes"`  // that continued
	Truncated int      `json:"ended_episodes"` // ended as truncated for the swap
	Dropped   uint64   `json:"dropped_env_steps"`
	EnvStep   uint64   `json:"env_step"` // made when it committed
	Took      float64  `json:"took_seconds"`
	PauseP50  float64  `json:"pause_ms_p50"`
	PauseMax  float64  `json:"pause_ms_max"`
	Probation float64  `json:"probation_seconds"`
	Notes     []string `json:"notes,omitempty"` // such as what a new reward means for critic and normaliser
	// Write is the change of the pipeline file that keeps the next reload from undoing a committed swap: lines of KEY = VALUE,
	// without a value for a key to remove.
	Write []string `json:"write,omitempty"`
}

// Trial compares two versions on the same seeds.
type Trial struct {
	Envs    int          `json:"envs"`
	Old     TrialVersion `json:"old"`
	New     TrialVersion `json:"new"`
	Faster  float64      `json:"faster"`  // steps per second of the new one over the old one's
	Verdict string       `json:"verdict"` // ok, or the objection to the new one
}

// TrialVersion is how one version did.
type TrialVersion struct {
	Episodes   int     `json:"episodes"`
	Unfinished int     `json:"unfinished"` // episodes that the ceiling of env steps ended
	Steps      uint64  `json:"env_steps"`
	MeanReturn float64 `json:"mean_return"`
	StdReturn  float64 `json:"std_return"`
	MeanLength float64 `json:"mean_length"`
	StdLength  float64 `json:"std_length"`
	Faults     int     `json:"faults"`
	FirstFault string  `json:"first_fault,omitempty"`
	PerSecond  float64 `json:"steps_per_second"`
}

// RollbackRequest asks for the previous version.
type RollbackRequest struct {
	Component string `json:"component"`
	At        string `json:"at,omitempty"`
	KeepState *bool  `json:"keep_state,omitempty"`
}

// ReloadRequest asks to apply a pipeline file.
type ReloadRequest struct {
	File   string   `json:"file"`   // absolute
	Source string   `json:"source"` // its content, as the client read it
	Sets   []string `json:"sets,omitempty"`
	At     string   `json:"at,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
	Force  bool     `json:"force,omitempty"` // see SwapRequest
	Undo   bool     `json:"undo,omitempty"`  // also versions that were swapped in since the file was last read
	// Brief makes only short checks of new environments before they take over, and no trial. Modules are checked in full afterwards, on
	// probation: the previous version runs again after a failed check.
	Brief bool `json:"brief,omitempty"`
}

// ReloadReply describes the effect of a reload.
type ReloadReply struct {
	Outcome Outcome     `json:"outcome"`
	Changes []Change    `json:"changes"`
	Swaps   []SwapReply `json:"swaps,omitempty"`
	Undoes  []string    `json:"undoes,omitempty"` // keys that were changed since the file was last read, and that it takes back
	EnvStep uint64      `json:"env_step"`
	Took    float64     `json:"took_seconds"`
	Notes   []string    `json:"notes,omitempty"` // where no swap has them
}

// Change is one difference between the running graph and the next.
type Change struct {
	What string `json:"what"` // env, component, wire, scale, limit, rule, run
	Name string `json:"name"`
	Text string `json:"text"` // "learning_rate 0.0015 → 0.0003"
	// Undoes says that the file has not changed: the run has, since the file was last read.
	Undoes bool `json:"undoes,omitempty"`
}

// ScaleRequest asks for more or fewer instances.
type ScaleRequest struct {
	Components map[string]int `json:"components"`
	DryRun     bool           `json:"dry_run,omitempty"`
}

// GroupRequest is for all components that one of the patterns names; see Match. None means all.
type GroupRequest struct {
	Patterns []string `json:"patterns,omitempty"`
	Deadline float64  `json:"deadline_seconds,omitempty"` // of the whole request; 0 is 30
}

// GroupReply has an answer for each component asked.
type GroupReply struct {
	Answers []Answer `json:"answers"`
}

// Answer is one component's answer.
type Answer struct {
	Name     string `json:"name"`
	State    State  `json:"state,omitempty"`
	Error    *Error `json:"error,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"`
}

// CheckpointRequest asks for a checkpoint at the next dataset boundary.
type CheckpointRequest struct{}

// CheckpointReply names it.
type CheckpointReply struct {
	PolicyVersion uint64 `json:"policy_version"`
	EnvSteps      uint64 `json:"env_steps"`
	Exact         bool   `json:"exact"`
	Why           string `json:"why_not_exact,omitempty"`
}

// StopRequest asks the run to end: at the next dataset boundary with a checkpoint, or at once.
type StopRequest struct {
	Now bool `json:"now,omitempty"`
}

// StopReply is sent when the run is about to end.
type StopReply struct {
	Checkpoint *CheckpointReply `json:"checkpoint,omitempty"`
}

// TapRequest asks for the messages of wires as they pass.
type TapRequest struct {
	Pattern string   `json:"pattern"` // of wires' signals, such as rollout.trajectories or *.episodes
	Limit   uint64   `json:"limit,omitempty"`
	Every   uint64   `json:"every,omitempty"`   // only every n-th message; 0 is 1
	Columns []string `json:"columns,omitempty"` // of trajectories, such as reward
	// Record is the path of a file that the job makes, in which it keeps the messages with their blocks; see core/recording.
	Record string `json:"record,omitempty"`
}

// TapRecord is one message.
type TapRecord struct {
	Signal        string               `json:"signal"`
	From          string               `json:"from"` // instance
	Sequence      uint64               `json:"sequence"`
	Time          float64              `json:"time"` // Unix, seconds
	Handle        string               `json:"handle,omitempty"`
	Bytes         int                  `json:"bytes,omitempty"` // of its block
	T             uint32               `json:"t"`
	Split         uint32               `json:"split"`
	PolicyVersion uint64               `json:"policy_version"`
	Values        map[string]any       `json:"values,omitempty"` // the payload's inline values: an episode's return
	Columns       map[string][]float64 `json:"columns,omitempty"`
}

// TapReply ends a tap.
type TapReply struct {
	Seen    uint64 `json:"seen"`
	Shown   uint64 `json:"shown"`
	Skipped uint64 `json:"skipped"` // passed while the client lagged: the run did not wait
	// Recorded is how many are in the file, Bytes how large it is, and Full says that it could become no larger.
	Recorded uint64 `json:"recorded,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Full     bool   `json:"full,omitempty"`
}

// LogsRequest asks for the job's log.
type LogsRequest struct {
	Component string `json:"component,omitempty"` // a pattern; empty is all
	Follow    bool   `json:"follow,omitempty"`
}

// LogsReply ends a log.
type LogsReply struct {
	Records uint64 `json:"records"`
}
