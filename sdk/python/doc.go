// Package python is not Go: this folder is the SDK for Python, the package rlhost of pip.
//
//	pip install ./sdk/python
//
//	import rlhost
//	class Count(rlhost.Component): ...
//	rlhost.serve(Count)
//
// The package's documentation is in rlhost/__init__.py. Here are the tests that run it: its own, and the suite that
// every runtime passes. They need .venv, which `make tools` makes.
package python
