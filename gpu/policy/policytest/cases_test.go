package policytest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Every layer, activation and distribution is in a network of the suite: what no network has, no backend is held to.
func TestCases_HaveEveryPart(t *testing.T) {
	var text strings.Builder
	for _, o := range Cases {
		if err := json.NewEncoder(&text).Encode(&o.Network); err != nil {
			t.Fatal(err)
		}
	}
	parts := append(policy.Layers(), "categorical", "multi_categorical", "bernoulli", "gaussian")
	for i, name := range parts {
		parts[i] = strconv.Quote(name) + ":"
	}
	for _, f := range layer.Funcs() {
		parts = append(parts, `"func":`+strconv.Quote(string(f)))
	}
	for _, part := range parts {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no network here has %s", part)
		}
	}
}
