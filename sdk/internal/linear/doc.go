// Package linear gives a module's memory in Go to its host: it implements rl_alloc and rl_free. It is empty except on wasip1.
package linear
