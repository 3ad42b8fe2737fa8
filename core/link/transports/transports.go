// Package transports is the table of the transports between a host and the processes of its native plugins. Both find a
// transport in it by name:
//
//	t := transports.All()[0]
//	end, files, err := t.New(program)               // at the host; the process inherits the files
//	end, err := t.Open(native.FDTransport)          // in the process
package transports

import (
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/link/transports/rings"
	"github.com/rlhost/rlhost/hostabi/native"
)

// Transport is a row of the table.
type Transport struct {
	Name string
	// New makes the host's end and the files that the plugin makes its own of. The caller closes the files. program is
	// for messages.
	New func(program string) (end link.Transport, files []*os.File, err error)
	// Open makes the plugin's end of the files of New, which have the descriptors from first on. The end owns them.
	Open func(first int) (link.Transport, error)
}

// All returns the table. The host uses the first row and gives the process its name.
func All() []Transport {
	return []Transport{
		{Name: native.TransportRings, New: rings.New, Open: rings.Open},
	}
}

// Named returns the row of that name.
func Named(name string) (Transport, error) {
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
	}
	return Transport{}, fmt.Errorf("the host uses the transport %q, which this program does not have", name)
}
