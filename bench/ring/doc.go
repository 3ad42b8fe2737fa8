// Command ring measures core/ring and core/queue between processes against faster-fifo, its C++ core and its Python package,
// in the six mixes of producers and consumers of faster-fifo's own table.
//
//	bench/ring/driver/prepare.sh    fetches and compiles faster-fifo into .cache/peers
//	go run ./bench/ring             prints the table, in about three minutes
//	go run ./bench/ring -mix 20x20 -rounds 15 -python 0
//
// Messages have 16 bytes. The three forms are put one and get one; put one and get up to 100 at once; put 32 and
// get up to 100 at once; both sides hold about 4,100 messages. Our queue runs between processes in Go and, "in C",
// between processes that use the library for native plugins: with 40 processes on a few processors, much of what Go
// processes do is Go's own scheduling. Rounds are long enough for it to calm down: after the gate, each process's system
// monitor wakes some 60 times, which is six tenths of all switches in a round of a twentieth of a second.
//
// Contenders take turns, so that a moment in which the machine does something else hits all of them; a ratio is the
// median of the ratios of the rounds, and "again" is our queue against itself: its difference from 1 is noise. It is
// no test: it asserts that messages arrive, not how fast.
package main
