// Command ring measures the queue of sdk/c/native, and core/ring, between processes against faster-fifo, its C++ core and
// its Python package, in the six mixes of producers and consumers of faster-fifo's own table.
//
//	bench/ring/driver/prepare.sh    fetches and compiles faster-fifo into .cache/peers
//	go run ./bench/ring             prints the table, in about three minutes
//	go run ./bench/ring -mix 20x20 -rounds 15 -python 0
//
// Messages of the queues have 16 bytes. The three forms are put one and get one; put one and get up to 100 at once; put 32
// and get up to 100 at once; both sides hold about 4,100 messages. The ring is between one producer and one consumer.
//
// Contenders take turns, so that a moment in which the machine does something else hits all of them; a ratio is the
// median of the ratios of the rounds, and "again" is our queue against itself: its difference from 1 is noise. It is
// no test: it asserts that messages arrive, not how fast.
package main
