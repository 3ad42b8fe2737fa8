// Package place says on which processors of this machine something runs, how far it stands back for others, and with how many threads.
//
//	cores, err := place.ParseCores("0-3,6")
//	if missing := cores.Without(here); !missing.Empty() { … } // here, err := place.Available()
//	err = cores.Pin()                                          // the calling goroutine, with a thread of its own
//
// It knows no component, and starts nothing: processes get their place from the program that starts them.
package place
