package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rlhost": main})
}

// TestScript runs the command lines in testdata/script against the program itself, in a folder and with a cache
// of their own.
func TestScript(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCodeIs,
			"samehash": sameHash,
		},
	})
}

// exitCodeIs runs a program and checks its exit code: exitcode 3 rlhost validate bad.toml.
func exitCodeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = err.Error()[len("exit status "):]
	}
	if code != args[0] {
		ts.Fatalf("%v: exit code %s, want %s", args[1:], code, args[0])
	}
}

var paramsHash = regexp.MustCompile(`"params_hash":"([0-9a-f]{64})"`)

// sameHash checks that the end events in several files have one parameter hash.
func sameHash(ts *testscript.TestScript, neg bool, args []string) {
	first := ""
	for _, name := range args {
		found := paramsHash.FindStringSubmatch(ts.ReadFile(name))
		if found == nil {
			ts.Fatalf("%s: no params_hash", name)
		}
		if first == "" {
			first = found[1]
		}
		if neg != (found[1] != first) {
			ts.Fatalf("%s has params_hash %.12s, %s has %.12s", name, found[1], args[0], first)
		}
	}
}
