// Package queue provides a bounded FIFO in shared memory with any number of producers and consumers, in any number of
// processes, each of which may be killed at any moment; Recover then repairs its claims.
//
//	q, err := queue.New("work", 1024, 48)
//	end := q.As(owner)
//	err = end.Put(queue.Item{Payload: data}, time.Second)
//
// Its layout, its waiting and its trust in peers are the same as core/ring's. The package does not know what messages
// mean, nor which processes are running. Pipelines do not use it (see RATIONALE.md). Authors' programs have the same queue
// in C, as rlhost.Queue in Python, which is tested against this one.
package queue
