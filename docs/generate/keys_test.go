package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/wrap"
)

func parts(t *testing.T) *graph.Parts {
	t.Helper()
	p, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestKeys_EachHasItsMeaning(t *testing.T) {
	tables := append(parts(t).Describe(), graph.TableDescription{Header: "wrap", Keys: wrap.Describe()})
	for _, d := range tables {
		for _, k := range d.Keys {
			if !strings.HasSuffix(k.Meaning, ".") || k.Type == "any" {
				t.Errorf("%s %s: key %s has the meaning %q and the type %q: give the field's tag a doc, a sentence, and a type", d.Header, d.Kind, k.Key, k.Meaning, k.Type)
			}
		}
	}
}

// TestKeys_ThePageHasAllThatIsExpanded: each key that rlhost show --expanded writes, for a pipeline of each preset, has its row.
func TestKeys_ThePageHasAllThatIsExpanded(t *testing.T) {
	p := parts(t)
	rows := map[string]bool{}
	for _, d := range p.Describe() {
		for _, k := range d.Keys {
			switch {
			case d.Kind != "":
				rows["component."+d.Kind+"."+k.Key] = true
			case d.Header == "[component.NAME]":
				for kind := range p.Kinds {
					rows["component."+kind+"."+k.Key] = true
				}
			default:
				rows[strings.TrimPrefix(d.Path+"."+k.Key, ".")] = true
			}
		}
	}
	index := regexp.MustCompile(`\[\d+\]`)
	for preset := range p.AboutPresets() {
		g := parsed(t, p, preset)
		keys, err := graph.Keys([]byte(g.Expanded()))
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) < 90 {
			t.Errorf("preset %s is expanded to %d keys only", preset, len(keys))
		}
		for key := range keys {
			key = index.ReplaceAllString(key, "")
			if rest, ok := strings.CutPrefix(key, "env.it."); ok {
				key = "env.NAME." + rest
			}
			if !rows[key] {
				t.Errorf("preset %s: the page has no row for %s", preset, key)
			}
		}
	}
}

func parsed(t *testing.T, p *graph.Parts, preset string, sets ...string) *graph.Graph {
	t.Helper()
	g, err := graph.Parse("page.toml", []byte(pipelineOf(preset)), graph.ParseOptions{Parts: p, Sets: sets})
	if g == nil {
		t.Fatal(err)
	}
	return g
}

var numbers = regexp.MustCompile(`^(above )?([0-9.e,-]+)(?: to ([0-9.e,]+)|(?:, up to ([0-9.e,]+))?| or more)(?:, .*)?$`)

// TestKeys_RangesAreAsDecodingHasThem: a number beyond the range of a key is refused, and its bounds are not.
func TestKeys_RangesAreAsDecodingHasThem(t *testing.T) {
	p := parts(t)
	checked := 0
	for _, d := range p.Describe() {
		at := d.Path
		if d.Path == "component.rollout" && d.Kind == "" || !slices.Contains([]string{"run", "swap", "component.rollout", "component.inference", "component.batcher", "component.learner"}, d.Path) {
			continue
		}
		for _, k := range d.Keys {
			m := numbers.FindStringSubmatch(k.Range)
			if m == nil || k.Type == "duration" || strings.Contains(k.Key, "POLICY") || strings.HasPrefix(k.Type, "table") {
				continue
			}
			checked++
			key := at + "." + k.Key
			low, high := number(t, m[2]), number(t, m[3]+m[4])
			refused := func(value float64) bool { return refuses(p, k, key, value) }
			beyond := 1.0
			if k.Type == "number" {
				beyond = 1e-6
			}
			if (m[1] == "") == refused(low) && !strings.Contains(k.Key, "learning_rate_m") && k.Key != "splits" {
				t.Errorf("%s = %g: refused is %t, and the range is %q", key, low, m[1] == "", k.Range)
			}
			if !refused(low - beyond*max(1, low)) {
				t.Errorf("%s below %g is not refused, and the range is %q", key, low, k.Range)
			}
			if high != 0 && !refused(high+max(1, beyond*high)) {
				t.Errorf("%s above %g is not refused, and the range is %q", key, high, k.Range)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d ranges were checked", checked)
	}
}

// number reads a number as the page writes it; 0 for none.
func number(t *testing.T, text string) float64 {
	t.Helper()
	if text == "" {
		return 0
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// refuses reports whether a pipeline with that value of a key has an error about the key.
func refuses(p *graph.Parts, k table.Description, key string, value float64) bool {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if k.Type == "number" && !strings.Contains(text, ".") {
		text += ".0"
	}
	sets := []string{key + "=" + text, "component.learner.adaptive_kl=0.01"}
	if strings.HasSuffix(key, "adaptive_kl") {
		sets = sets[:1]
	}
	_, err := graph.Parse("page.toml", []byte(pipelineOf("general")), graph.ParseOptions{Parts: p, Sets: sets})
	var problems graph.Problems
	if !errors.As(err, &problems) {
		return false
	}
	name := key[strings.LastIndex(key, ".")+1:] + "`"
	return slices.ContainsFunc(problems, func(x graph.Problem) bool { return strings.Contains(fmt.Sprint(x), name) })
}
