package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// maxPorts bounds a manifest from outside.
const maxPorts = 256

func manifestOf(p *spawn.Program, kind string, signals, slots []native.Port) (component.Manifest, error) {
	var m component.Manifest
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
			*list.to = append(*list.to, component.Port{Name: port.Name, Payload: port.Payload, Doc: port.Doc, OnLoan: port.OnLoan})
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

func configErrors(list []native.ConfigError) error {
	errs := make([]error, len(list))
	for i, e := range list {
		errs[i] = &component.ConfigError{Key: e.Key, Reason: e.Reason, Help: e.Help, Code: e.Code}
	}
	return errors.Join(errs...)
}

// linesOf writes a table as sorted lines; see native.Configuration.
func linesOf(table map[string]any) string {
	var lines []string
	appendLines(&lines, "", table)
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func appendLines(lines *[]string, prefix string, table map[string]any) {
	for key, value := range table {
		if inner, ok := value.(map[string]any); ok {
			appendLines(lines, prefix+key+".", inner)
			continue
		}
		*lines = append(*lines, prefix+key+"="+lineValue(value)+"\n")
	}
}

func lineValue(value any) string {
	switch v := value.(type) {
	case string:
		return strings.NewReplacer("\n", " ", "\r", " ").Replace(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = lineValue(v[i])
		}
		return strings.Join(items, ",")
	}
	return fmt.Sprint(value)
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
		Name: r.Name, Seed: r.Seed, Policy: r.Policy, Dir: r.Dir, Synchronous: r.Synchronous, Resumes: r.Resumes,
		StopWindow: r.Stop.Window, StopEnvSteps: r.Stop.EnvSteps, StopWallNS: int64(r.Stop.Wall / time.Nanosecond),
	}
	if r.Stop.HasReturn {
		doc.StopReturn = &r.Stop.Return
	}
	return doc
}
