// Rlhost trains reinforcement-learning policies on environments that are WebAssembly modules.
//
// This package is wiring: it parses the command line, hands package pipeline the literal table of what pipelines
// may be made of (parts.go), and turns what comes back into text, files and exit codes. Each command is one file.
// Work belongs to the packages below.
package main
