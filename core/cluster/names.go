package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rlhost/rlhost/core/registry"
)

// Names keeps names for several hosts, in the memory of the server. It is a registry.Names whose TTLs are rounded up to whole seconds.
type Names struct {
	link   *Link
	bucket string
}

var _ registry.Names = (*Names)(nil)

const (
	leaseSize = 8                // bytes before each value
	markTime  = 10 * time.Second // how long the server remembers that a name is gone
	maxBytes  = 64 << 20         // of names and values, as registry.Memory's
)

// NewNames returns the names of a bucket, made if there is none.
func NewNames(ctx context.Context, l *Link, bucket string) (*Names, error) {
	n := &Names{link: l, bucket: bucket}
	if _, err := n.open(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// open returns the bucket, which the server forgets when it ends.
func (n *Names) open(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := n.link.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: n.bucket, Storage: jetstream.MemoryStorage, MaxBytes: maxBytes, LimitMarkerTTL: markTime,
	})
	if err != nil {
		return nil, fmt.Errorf("the names of %s: %w", n.bucket, err)
	}
	return kv, nil
}

// item is a name's entry in the bucket.
type item struct {
	value    string
	lease    registry.Lease
	revision uint64
}

func itemOf(e jetstream.KeyValueEntry) (item, bool) {
	data := e.Value()
	if len(data) < leaseSize {
		return item{}, false
	}
	return item{string(data[leaseSize:]), registry.Lease(binary.LittleEndian.Uint64(data)), e.Revision()}, true
}

// newLease returns one that no other Add has.
func newLease() registry.Lease {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return cmp.Or(registry.Lease(binary.LittleEndian.Uint64(b[:])), 1)
}

// Add gives a name a value. See registry.Names.
func (n *Names) Add(ctx context.Context, name, value string, o registry.Options) (registry.Lease, error) {
	if err := registry.CheckEntry(name, value, o); err != nil {
		return 0, err
	}
	lease := newLease()
	if o.Replace {
		return lease, n.put(ctx, name, value, lease, o.TTL, 0)
	}
	return lease, n.create(ctx, name, value, lease, o.TTL)
}

// AddChild adds a name below another. See registry.Names.
func (n *Names) AddChild(ctx context.Context, name, value string, o registry.Options) (string, registry.Lease, error) {
	o.Replace = false
	for {
		child := name + "/" + strings.ToLower(rand.Text()[:8])
		lease, err := n.Add(ctx, child, value, o)
		if !errors.Is(err, registry.ErrExists) {
			return child, lease, err
		}
	}
}

// Renew lets a name last longer. See registry.Names.
func (n *Names) Renew(ctx context.Context, name string, l registry.Lease, ttl time.Duration) error {
	if err := cmp.Or(registry.CheckName(name), registry.CheckTTL(ttl)); err != nil {
		return err
	}
	for {
		it, err := n.get(ctx, name)
		if errors.Is(err, registry.ErrUnknown) || err == nil && it.lease != l {
			return fmt.Errorf("%w: %s", registry.ErrLost, name)
		}
		if err != nil {
			return err
		}
		if err := n.put(ctx, name, it.value, l, ttl, it.revision); !conflict(err) {
			return err
		}
	}
}

// Get returns a name's value. See registry.Names.
func (n *Names) Get(ctx context.Context, name string) (string, error) {
	if err := registry.CheckName(name); err != nil {
		return "", err
	}
	it, err := n.get(ctx, name)
	return it.value, err
}

// List returns a name and all below it. See registry.Names.
func (n *Names) List(ctx context.Context, root string) ([]registry.Entry, error) {
	if err := registry.CheckRoot(root); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var entries []registry.Entry
	for e, err := range n.Watch(ctx, root) {
		if err != nil {
			return nil, err
		}
		if e.Kind == registry.Listed {
			break
		}
		entries = append(entries, e.Entry)
	}
	slices.SortFunc(entries, func(a, b registry.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// Delete deletes one name. See registry.Names.
func (n *Names) Delete(ctx context.Context, name string, l registry.Lease) error {
	if err := registry.CheckName(name); err != nil {
		return err
	}
	for {
		it, err := n.get(ctx, name)
		switch {
		case l != 0 && (errors.Is(err, registry.ErrUnknown) || err == nil && it.lease != l):
			return fmt.Errorf("%w: %s", registry.ErrLost, name)
		case err != nil:
			return err
		}
		if err := n.purge(ctx, name, it.revision); !conflict(err) {
			return err
		}
	}
}

// Clear deletes a name and all below it. See registry.Names.
func (n *Names) Clear(ctx context.Context, root string) (int, error) {
	entries, err := n.List(ctx, root)
	if err != nil {
		return 0, err
	}
	for i, e := range entries {
		if err := n.purge(ctx, e.Name, 0); err != nil {
			return i, err
		}
	}
	return len(entries), nil
}

// in calls fn with the bucket, which is made again if the server has forgotten it.
func (n *Names) in(ctx context.Context, fn func(jetstream.KeyValue) error) error {
	kv, err := n.link.js.KeyValue(ctx, n.bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = n.open(ctx)
	}
	if err != nil {
		return err
	}
	return fn(kv)
}

func (n *Names) get(ctx context.Context, name string) (it item, err error) {
	err = n.in(ctx, func(kv jetstream.KeyValue) error {
		e, err := kv.Get(ctx, keyOf(name))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return fmt.Errorf("%w: %s", registry.ErrUnknown, name)
		}
		if err != nil {
			return fmt.Errorf("get %s: %w", name, err)
		}
		var ok bool
		if it, ok = itemOf(e); !ok {
			return fmt.Errorf("%w: the entry of %s was not written by rlhost", registry.ErrInvalid, name)
		}
		return nil
	})
	return it, err
}

// held returns the names below root that the server holds anything of, a mark that one is gone included.
func (n *Names) held(ctx context.Context, root string) (names []string, err error) {
	stream, err := n.link.js.Stream(ctx, "KV_"+n.bucket)
	if err != nil {
		return nil, fmt.Errorf("the names of %s: %w", n.bucket, err)
	}
	prefix := "$KV." + n.bucket + "."
	for _, filter := range filters(root) {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+filter))
		if err != nil {
			return nil, fmt.Errorf("the names of %s: %w", n.bucket, err)
		}
		for subject := range info.State.Subjects {
			if name, ok := nameOf(strings.TrimPrefix(subject, prefix)); ok {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func (n *Names) create(ctx context.Context, name, value string, l registry.Lease, ttl time.Duration) error {
	var options []jetstream.KVCreateOpt
	if ttl > 0 {
		options = append(options, jetstream.KeyTTL(wholeSeconds(ttl)))
	}
	return n.in(ctx, func(kv jetstream.KeyValue) error {
		_, err := kv.Create(ctx, keyOf(name), dataOf(value, l), options...)
		if conflict(err) {
			return fmt.Errorf("%w: %s", registry.ErrExists, name)
		}
		return fullOr(err, "add "+name)
	})
}

// put writes an entry over the one that has a revision, or over any where that is 0. The client library's own calls take no TTL here.
func (n *Names) put(ctx context.Context, name, value string, l registry.Lease, ttl time.Duration, revision uint64) error {
	m := nats.NewMsg("$KV." + n.bucket + "." + keyOf(name))
	m.Data = dataOf(value, l)
	var options []jetstream.PublishOpt
	if ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(wholeSeconds(ttl)))
	}
	if revision > 0 {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(revision))
	}
	return n.in(ctx, func(jetstream.KeyValue) error {
		_, err := n.link.js.PublishMsg(ctx, m, options...)
		return fullOr(err, "set "+name)
	})
}

// purge deletes an entry if it has a revision, or any where that is 0.
func (n *Names) purge(ctx context.Context, name string, revision uint64) error {
	return n.in(ctx, func(kv jetstream.KeyValue) error {
		err := kv.Purge(ctx, keyOf(name), jetstream.LastRevision(revision), jetstream.PurgeTTL(markTime))
		if err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		return nil
	})
}

func dataOf(value string, l registry.Lease) []byte {
	return append(binary.LittleEndian.AppendUint64(make([]byte, 0, leaseSize+len(value)), uint64(l)), value...)
}

// wholeSeconds rounds up: the server knows no fractions.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// conflict reports whether an entry was not the expected one.
func conflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) || hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence)
}

// codeStoreFailed is the server's for a message that does not fit into a stream, and for others that it cannot keep.
const codeStoreFailed = 10077

func fullOr(err error, what string) error {
	if err == nil {
		return nil
	}
	if hasCode(err, codeStoreFailed) {
		return fmt.Errorf("%w: %s: at most %d bytes", registry.ErrFull, what, maxBytes)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}
