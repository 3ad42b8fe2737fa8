package wrap

import "github.com/rlhost/rlhost/hostabi"

// wrapper is the configuration of a wrapper. table.Decode fills it from the wrapper's table.
type wrapper interface {
	// validate reports errors in the values, with keys as in the wrapper's table.
	validate(bad func(key, reason, help string))
	// describe changes a description into that of the wrapped environments, or says why there can be none. It must not
	// write to what the description refers to.
	describe(s *hostabi.EnvSpec) error
}

// layered is a wrapper of environments that step in the caller's block.
type layered interface {
	wrapper
	// around returns the wrapper's layer around a batch, which has no bound block yet.
	around(w *wrapped) layer
}

// opened is a wrapper whose layer can fail to be made.
type opened interface {
	wrapper
	// open is around. Where the layer is an io.Closer it is closed once it is used no more.
	open(w *wrapped) (layer, error)
}

// CodeUnsuited is the code of wrappers that do not suit their environments; rlhost explain has its page.
const CodeUnsuited = "E056"
