// Package linear is what a module in Go gives its host of its memory: what rl_alloc and rl_free do. Only on wasip1 is there anything in it.
package linear
