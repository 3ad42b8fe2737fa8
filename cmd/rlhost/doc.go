// Rlhost trains reinforcement-learning policies on environments that are WebAssembly modules.
//
// This package is flags and text: it parses the command line, hands the packages below the literal table of what pipelines
// may be made of (plugins/builtin), and turns what comes back into text and exit codes. Each command is one file.
package main
