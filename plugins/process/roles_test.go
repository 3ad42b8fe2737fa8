package process

// playOther is where roles of single tests stand.
func playOther(role string) { panic("no role " + role) }
