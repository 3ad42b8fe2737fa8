package registry_test

import (
	"testing"

	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/registrytest"
)

func TestMemory_PassesTheSuite(t *testing.T) {
	registrytest.Test(t, func(*testing.T) registry.Names { return registry.NewMemory(registry.Limits{}) })
}
