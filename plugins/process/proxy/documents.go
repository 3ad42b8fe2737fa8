package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// maxPorts bounds a manifest from outside.
const maxPorts = 256

func manifestOf(p *spawn.Program, kind string, signals, slots []native.Port, requests, asks []hostabi.Request) (component.Manifest, error) {
	m := component.Manifest{Requests: requests, Asks: asks}
	if err := cmp.Or(hostabi.CheckRequests(requests), hostabi.CheckRequests(asks)); err != nil {
		return m, &spawn.Error{Code: spawn.CodeProtocol, Program: p.Name, Reason: fmt.Sprintf("kind %q: %v", kind, err)}
	}
	for _, list := range []struct {
		from []native.Port
		to   *[]component.Port
	}{{signals, &m.Signals}, {slots, &m.Slots}} {
		if len(list.from) > maxPorts {
			return m, &spawn.Error{Code: spawn.CodeProtocol, Program: p.Name, Reason: fmt.Sprintf("kind %q has %d ports", kind, len(list.from))}
		}
		seen := map[string]bool{}
		for _, port := range list.from {
			if port.Name == "" || port.Payload == "" || seen[port.Name] {
				return m, &spawn.Error{Code: spawn.CodeProtocol, Program: p.Name,
					Reason: fmt.Sprintf("kind %q has a port %q with payload %q, twice or without a name", kind, port.Name, port.Payload)}
			}
			seen[port.Name] = true
			*list.to = append(*list.to, component.Port{Name: port.Name, Payload: port.Payload, Doc: port.Doc, OnLoan: port.OnLoan, Schema: uint64(port.Schema)})
		}
	}
	return m, nil
}

func ports(list []component.Port) []link.Port {
	out := make([]link.Port, len(list))
	for i, p := range list {
		out[i] = link.Port{Name: p.Name, OnLoan: p.OnLoan}
	}
	return out
}

// logLevel names the lowest level that a log takes.
func logLevel(log *slog.Logger) string {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if log.Enabled(context.Background(), level) {
			return strings.ToLower(level.String())
		}
	}
	return "error"
}

func runOf(r *component.Run) native.Run {
	doc := native.Run{
		Name: r.Name, Seed: native.U64(r.Seed), Policy: r.Policy, Dir: r.Dir, Synchronous: r.Synchronous, Resumes: r.Resumes,
		StopReturn: r.Stop.Return, StopWindow: r.Stop.Window, StopEnvSteps: r.Stop.EnvSteps, StopWallNS: int64(r.Stop.WallTime / time.Nanosecond),
	}
	for name, rule := range r.Stop.Policies {
		if doc.StopPolicies == nil {
			doc.StopPolicies = map[string]native.PolicyRule{}
		}
		doc.StopPolicies[name] = native.PolicyRule(rule)
	}
	return doc
}
