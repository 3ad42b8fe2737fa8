package member

// rest is which instances of a host are to be paused, all others run. Of two the one with the higher number counts.
type rest struct {
	Number    uint64   `json:"number"`
	Instances []string `json:"instances,omitempty"`
}

// restReply says that the instances of a share are as a rest says, and that the owner has all that they have sent.
type restReply struct {
	Share  uint64 `json:"share"`
	Number uint64 `json:"number"`
}
