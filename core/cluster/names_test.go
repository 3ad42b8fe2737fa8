package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/registrytest"
)

func serve(t testing.TB) *Server {
	t.Helper()
	s, err := Serve(ServerOptions{Address: "127.0.0.1:0", Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, o LinkOptions) *Link {
	t.Helper()
	l, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func names(t testing.TB, l *Link, bucket string) *Names {
	t.Helper()
	n, err := NewNames(t.Context(), l, bucket)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNames_DoWhatMemoryDoes(t *testing.T) {
	for name, options := range map[string]func(*Server) LinkOptions{
		"InProcess": func(s *Server) LinkOptions { return LinkOptions{Server: s} },
		"Loopback":  func(s *Server) LinkOptions { return LinkOptions{URL: "nats://" + s.Address()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registrytest.Test(t, func(t *testing.T) registry.Names {
				return names(t, connect(t, options(serve(t))), "run")
			})
		})
	}
}

// restart ends a server and starts another at its address; the folder is kept, or it is another one.
func restart(t *testing.T, s *Server, folder string) *Server {
	t.Helper()
	address := s.Address()
	s.Close()
	next, err := Serve(ServerOptions{Address: address, Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	return next
}

// A watch hears soon that a server which starts again has forgotten its names, and of the names that are added then.
func TestNames_OutliveTheServer(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("FolderKept=", kept), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			s, err := Serve(ServerOptions{Address: "127.0.0.1:0", Folder: folder})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			n := names(t, connect(t, LinkOptions{URL: "nats://" + s.Address()}), "run")
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			lease, err := n.Add(ctx, "a/before", "1", registry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var down time.Time
			for e, err := range n.Watch(ctx, "a") {
				if err != nil {
					t.Fatalf("after %q: %v", got, err)
				}
				got = append(got, fmt.Sprint(e.Kind, e.Name, e.Value))
				switch len(got) {
				case 2:
					if !kept {
						folder = t.TempDir()
					}
					down = time.Now()
					s = restart(t, s, folder)
				case 3:
					t.Logf("the watch knew %v after the server had ended", time.Since(down))
					if err := n.Renew(ctx, "a/before", lease, 0); !errors.Is(err, registry.ErrLost) {
						t.Errorf("renew of a name that the server has forgotten: %v", err)
					}
					if _, err := n.Add(ctx, "a/after", "2", registry.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				if len(got) == 4 {
					break
				}
			}
			if want := []string{"1a/before1", "3", "2a/before", "1a/after2"}; !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
		})
	}
}

// While a server is away each call says so, within the caller's time.
func TestNames_WithoutAServer(t *testing.T) {
	s := serve(t)
	n := names(t, connect(t, LinkOptions{URL: "nats://" + s.Address()}), "run")
	s.Close()
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	if _, err := n.Add(ctx, "a", "", registry.Options{}); err == nil {
		t.Error("a name was added")
	}
	if _, err := n.Get(ctx, "a"); err == nil || errors.Is(err, registry.ErrUnknown) {
		t.Errorf("get: %v", err)
	}
	if _, err := n.List(ctx, ""); err == nil {
		t.Error("there is a list")
	}
}

func TestNames_AreBounded(t *testing.T) {
	n := names(t, connect(t, LinkOptions{Server: serve(t)}), "run")
	value := strings.Repeat("x", registry.MaxValue)
	var err error
	for i := 0; err == nil && i < 2*maxBytes/registry.MaxValue; i++ {
		_, err = n.Add(t.Context(), fmt.Sprint("a/", i), value, registry.Options{})
	}
	if !errors.Is(err, registry.ErrFull) {
		t.Errorf("error %v", err)
	}
}

func TestServe_RefusesAddresses(t *testing.T) {
	taken := serve(t).Address()
	for _, address := range []string{"", "4222", "0.0.0.0:0", "10.0.0.1:0", "example.com:0", "127.0.0.1:99999", taken} {
		s, err := Serve(ServerOptions{Address: address, Folder: t.TempDir()})
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := Connect(t.Context(), LinkOptions{URL: "nats://127.0.0.1:1"}); !errors.Is(err, ErrConnect) {
		t.Errorf("where nobody listens: %v", err)
	}
}

func FuzzKey_NamesHaveKeysOfTheirOwn(f *testing.F) {
	for _, name := range []string{"a/b", "a.b", "=2e", "*", "ü", ">"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if back, ok := nameOf(keyOf(name)); !ok || back != name {
			t.Errorf("%q has the key %q, which is the key of %q", name, keyOf(name), back)
		}
		if back, ok := nameOf(name); ok && keyOf(back) != name {
			t.Errorf("%q is the key of %q, whose key is %q", name, back, keyOf(back))
		}
	})
}
