package proxy

import (
	"testing"

	"github.com/rlhost/rlhost/plugins/process/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m, play, func() {}) }

func play(role string, args []string) {
	switch role {
	case "probe":
		serveProbe()
	case "unpausable":
		serveUnpausable()
	case "host":
		playHost(args[0])
	case "keeper":
		serveKeeper()
	case "asker":
		serveAsker()
	case "liar":
		playLiar(args[0], args[1])
	case "hostile":
		playHostile(args[0], args[1])
	default:
		panic("no role " + role)
	}
}
