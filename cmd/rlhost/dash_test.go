package main

import (
	"net"
	"strconv"
	"testing"
)

// A port that somebody else has is an error that says what to do.
func TestDash_PortsThatAreTakenAreNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	newWorkshop(t).fails(exitUsage, []string{"dash", "--port", port}, "--port "+port, codeNoPage, "leave --port out")
}
