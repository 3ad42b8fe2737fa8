// Rlhost trains reinforcement-learning policies on environments that are WebAssembly modules.
//
// This package is flags and text: it parses the command line, gives the packages below the literal table of parts
// (plugins/builtin), and turns their results into text and exit codes. Each command is one file.
package main
