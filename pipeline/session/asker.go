package session

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/rlhost/rlhost/core/control"
)

// asker is the origin of a change.
type asker struct {
	uid     int
	command []string
}

// maxCommand bounds the kept part of a command line.
const maxCommand = 4096

// askerOf returns who made the request that ctx is of.
func askerOf(ctx context.Context) asker {
	peer, ok := control.PeerOf(ctx)
	if !ok {
		return asker{uid: os.Getuid()}
	}
	a := asker{uid: peer.UID}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", peer.PID))
	if err != nil {
		return a // it has ended already, or this system does not report it
	}
	a.command = strings.Split(strings.TrimSuffix(string(line[:min(len(line), maxCommand)]), "\x00"), "\x00")
	return a
}

// itself is the asker where a version on probation has failed.
func itself() asker { return asker{uid: os.Getuid(), command: []string{"rlhost"}} }
