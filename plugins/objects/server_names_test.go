package objects

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/remote"
	"github.com/rlhost/rlhost/internal/testkit"
)

func TestNamedStore_IsAmongTheNamesUntilItsEnd(t *testing.T) {
	testkit.Sockets(t)
	names := registry.NewMemory(registry.Limits{})
	verbs := control.Verbs{}
	remote.On(verbs, names)
	registrar, err := control.Listen(remote.SocketPath(), verbs, control.ListenOptions{Clients: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer registrar.Close()

	s, err := Start(Options{Name: "replay"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := wire.NamedPath("replay")
	if err != nil || s.Path() != want {
		t.Errorf("it is served at %s, want %s, %v", s.Path(), want, err)
	}
	testkit.Until(t, "the store has its name", func() bool {
		path, err := names.Get(t.Context(), remote.Stores+"replay")
		return err == nil && path == s.Path()
	})
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := names.Get(t.Context(), remote.Stores+"replay"); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("after its end the name is %v, want ErrUnknown", err)
	}
	if _, err := Start(Options{Name: "a/b"}); !errors.Is(err, wire.ErrLimit) {
		t.Errorf("a store called a/b = %v, want ErrLimit", err)
	}
}
