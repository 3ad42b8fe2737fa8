//go:build race

package arena

// raced: the race detector is on. It sees nothing of other processes, and makes starting them slow.
const raced = true
