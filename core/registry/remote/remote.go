// Package remote serves a registry of names to other processes of the same user, and reaches one that another process serves: the requests
// of core/control whose verbs begin with "names.".
package remote

import (
	"context"
	"errors"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/registry"
)

// Verbs of a served registry.
const (
	verbAdd    control.Verb = "names.add"
	verbRenew  control.Verb = "names.renew"
	verbGet    control.Verb = "names.get"
	verbList   control.Verb = "names.list"
	verbDelete control.Verb = "names.delete"
	verbClear  control.Verb = "names.clear"
	verbWatch  control.Verb = "names.watch"
)

// Codes of errors of a registry. Each has a page in rlhost explain.
const (
	CodeExists  control.Code = "E102"
	CodeUnknown control.Code = "E103"
	CodeLost    control.Code = "E104"
	CodeInvalid control.Code = "E105"
	CodeFull    control.Code = "E106"
)

var codes = map[control.Code]error{
	CodeExists: registry.ErrExists, CodeUnknown: registry.ErrUnknown, CodeLost: registry.ErrLost, CodeInvalid: registry.ErrInvalid, CodeFull: registry.ErrFull,
}

// SocketPath is where the names of this user are served, unless somebody says otherwise.
func SocketPath() string { return control.ServicePath("names.sock") }

type (
	addRequest struct {
		Name    string        `json:"name"`
		Value   string        `json:"value"`
		TTL     time.Duration `json:"ttl_ns,omitempty"`
		Replace bool          `json:"replace,omitempty"`
		Child   bool          `json:"child,omitempty"` // see registry.Names.AddChild
	}
	addReply struct {
		Name  string         `json:"name"`
		Lease registry.Lease `json:"lease,string"`
	}
	leaseRequest struct {
		Name  string         `json:"name"`
		Lease registry.Lease `json:"lease,string"`
		TTL   time.Duration  `json:"ttl_ns,omitempty"` // for renew
	}
	nameRequest struct {
		Name string `json:"name"`
	}
	valueReply struct {
		Value string `json:"value"`
	}
	listReply struct {
		Entries []registry.Entry `json:"entries"`
	}
	clearReply struct {
		Cleared int `json:"cleared"`
	}
	none struct{}
)

// On answers the verbs of a registry with n. Each event of a watch is a notice.
func On(v control.Verbs, n registry.Names) {
	s := served{n}
	control.On(v, verbAdd, s.add)
	control.On(v, verbRenew, s.renew)
	control.On(v, verbGet, s.get)
	control.On(v, verbList, s.list)
	control.On(v, verbDelete, s.delete)
	control.On(v, verbClear, s.clear)
	control.On(v, verbWatch, s.watch)
}

type served struct{ names registry.Names }

func (s served) add(ctx context.Context, q addRequest, _ control.Notice) (r addReply, err error) {
	o := registry.Options{TTL: q.TTL, Replace: q.Replace}
	r.Name = q.Name
	if q.Child {
		r.Name, r.Lease, err = s.names.AddChild(ctx, q.Name, q.Value, o)
	} else {
		r.Lease, err = s.names.Add(ctx, q.Name, q.Value, o)
	}
	return r, coded(err)
}

func (s served) renew(ctx context.Context, q leaseRequest, _ control.Notice) (none, error) {
	return none{}, coded(s.names.Renew(ctx, q.Name, q.Lease, q.TTL))
}

func (s served) get(ctx context.Context, q nameRequest, _ control.Notice) (r valueReply, err error) {
	r.Value, err = s.names.Get(ctx, q.Name)
	return r, coded(err)
}

func (s served) list(ctx context.Context, q nameRequest, _ control.Notice) (r listReply, err error) {
	r.Entries, err = s.names.List(ctx, q.Name)
	return r, coded(err)
}

func (s served) delete(ctx context.Context, q leaseRequest, _ control.Notice) (none, error) {
	return none{}, coded(s.names.Delete(ctx, q.Name, q.Lease))
}

func (s served) clear(ctx context.Context, q nameRequest, _ control.Notice) (r clearReply, err error) {
	r.Cleared, err = s.names.Clear(ctx, q.Name)
	return r, coded(err)
}

func (s served) watch(ctx context.Context, q nameRequest, notice control.Notice) (none, error) {
	for e, err := range s.names.Watch(ctx, q.Name) {
		if err != nil {
			return none{}, coded(err)
		}
		if err := notice(e); err != nil {
			return none{}, err
		}
	}
	return none{}, context.Cause(ctx)
}

// coded gives an error of a registry its code.
func coded(err error) error {
	for code, is := range codes {
		if errors.Is(err, is) {
			return control.Errorf(code, "%v", err)
		}
	}
	return err
}
