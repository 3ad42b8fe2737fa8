package rollout

// EnvProber is what an Env may offer besides, for checks of environments: what a guest did that no block shows. It is
// not on the step path.
type EnvProber interface {
	// Probe returns what has happened since the call before it; the first one only gets things ready. trespass says
	// what was written where nothing of the environment lies, words is the error that the environment spoke of although
	// its calls returned none. Both are empty where nothing is known.
	Probe() (trespass, words string, err error)
}

// Examiner is what a Plugin may offer besides, for checks of environments: what can be told from its source alone.
type Examiner interface {
	Examine() Examination
}

// Examination is what a source looks like to somebody who does not run it.
type Examination struct {
	Wrong string // what cannot work, or ""
	Risky string // what may go wrong unseen, or ""
	Fine  string // what was looked at
	Help  string // remedy of what is wrong or risky
}
