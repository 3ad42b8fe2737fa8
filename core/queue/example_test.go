package queue_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/queue"
)

// Each message goes to one consumer. Owners have numbers, by which Recover repairs the claims of a killed one.
func Example() {
	q, err := queue.New("work", 64, 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	producer, consumer := q.As(1), q.As(2)
	fmt.Println(producer.Put(queue.Item{Kind: 7, Payload: []byte("step")}, time.Second))
	item, err := consumer.Get(make([]byte, q.Payload()), time.Second)
	fmt.Println(item.Kind, string(item.Payload), err)
	_, err = consumer.Get(make([]byte, q.Payload()), 0)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	// Output:
	// <nil>
	// 7 step <nil>
	// true
}
