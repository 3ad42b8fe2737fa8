package main

import (
	"bytes"
	"os"
	"testing"
)

func TestMan_PrintsThePageOfTheReference(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"man", "--markdown"}, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	page, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil || !bytes.Equal(page, out.Bytes()) {
		t.Errorf("docs/reference/cli.md is not what the command line says of itself: run go run ./docs/generate (%v)", err)
	}
}
