package process

import "os"

// playOther is where roles of single tests stand.
func playOther(role string) {
	switch role {
	case "env":
		playEnv(os.Args[2])
	case "env-host":
		playEnvHost(os.Args[2])
	case "host":
		playHost(os.Args[2])
	case "keeper":
		serveKeeper()
	case "liar":
		playLiar(os.Args[2], os.Args[3])
	case "hostile":
		playHostile(os.Args[2], os.Args[3])
	default:
		panic("no role " + role)
	}
}
