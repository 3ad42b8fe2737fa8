// Package fifo is what core/ring and core/queue have in common: the header that both begin with and how it is checked,
// and how their ends wait for each other.
package fifo
