// Package channel is a queue of items with keys and weights, for programs and components: RLinf's Channel.
//
//	c := channel.NewMemory(channel.Limits{Items: 1000})
//	err := c.Put(ctx, "default", channel.Item{Weight: 3, Data: data})
//	items, err := c.GetBatch(ctx, "default", channel.Batch{Weight: 12}) // items of a weight of 12, or fewer where one more would be too many
//
// Each key is a FIFO of its own. A key exists while it has an item or a caller that waits; nobody registers it, and an idle one costs nothing.
// Callers of one key are served in the order in which they came. A batch is taken from its key as a whole, at the moment at which it is
// complete: until then its items lie in the channel, so that a caller that ends or dies takes none with it.
//
// A batch cannot stall a channel. It is complete where its items weigh what it wants, where one more would weigh too much (an item that is
// heavier than that comes alone), where it has as many items as it may, where its time is over, where the channel is closed, and where it could not
// grow because a put of its key, or one that needs its memory, waits for room. No caller waits for an item of a key while a put of that key
// waits.
//
// Memory is the back end in this process; package remote serves one to other processes.
package channel
