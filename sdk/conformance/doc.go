// Package conformance has a second host of the environment ABI, in Python over wasmtime, and its test. It was written from
// docs/reference/env-abi.md alone: what the page says is frozen, and not what the first host does.
//
//	python sdk/conformance/run.py           # the whole set of hostabi/conformance
//	python sdk/conformance/run.py mask box  # some cases
//
// spec.py reads descriptions, host.py runs environments, run.py plays the set.
package conformance
