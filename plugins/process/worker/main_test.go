package worker

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m, play, removeCache) }

func play(role string, args []string) {
	switch role {
	case "env":
		playEnv(args[0])
	case "env-host":
		playEnvHost(args[0])
	case "plain":
		rig.Serve(native.Version, rig.Answers{})
	default:
		panic("no role " + role)
	}
}

func removeCache() {
	if dir, err := envCache(); err == nil {
		_ = os.RemoveAll(dir) // only a folder for temporary files remains
	}
}
