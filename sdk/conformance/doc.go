// Package conformance has second hosts of the two ABIs, in Python over wasmtime, and their test. They were written from
// docs/reference/env-abi.md and component-abi.md alone: what the pages say is frozen, and not what the first host does.
//
//	python sdk/conformance/run.py             # the whole set of hostabi/conformance
//	python sdk/conformance/run.py mask box    # some cases
//	python sdk/conformance/run_components.py  # the set of hostabi/conformance/component
//
// page.py reads the numbers, records and signatures out of the pages' tables, so that none is written a second time. guest.py is an
// instance of a module and description.py what descriptions share. spec.py and env.py read and run
// environments, manifest.py and component.py components.
package conformance
