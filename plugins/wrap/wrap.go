package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
)

// kinds are the wrappers by name, in the order of messages.
var kinds = []struct {
	name string
	new  func() wrapper // with its defaults
}{
	{"time_limit", func() wrapper { return new(timeLimit) }},
	{"record_stats", func() wrapper { return new(recordStats) }},
	{"reward_scale", func() wrapper { return new(rewardScale) }},
	{"reward_clip", func() wrapper { return new(rewardClip) }},
	{"reward_normalize", newRewardNormalize},
	{"clip_action", func() wrapper { return new(clipAction) }},
	{"rescale_action", func() wrapper { return new(rescaleAction) }},
	{"action_repeat", func() wrapper { return new(actionRepeat) }},
	{"frame_skip", func() wrapper { return new(frameSkip) }},
	{"noop_reset", func() wrapper { return new(noopReset) }},
	{"fire_reset", func() wrapper { return new(fireReset) }},
	{"life_loss", func() wrapper { return new(lifeLoss) }},
	{"sticky_action", func() wrapper { return new(stickyAction) }},
	{"flatten", func() wrapper { return new(flatten) }},
	{"grayscale", func() wrapper { return new(grayscale) }},
	{"resize", func() wrapper { return new(resize) }},
	{"frame_stack", func() wrapper { return new(frameStack) }},
}

// names returns the names of all wrappers.
func names() []string {
	list := make([]string, len(kinds))
	for i := range kinds {
		list[i] = kinds[i].name
	}
	return list
}

// Check checks one table of a list without an environment. decode works as in Component.Configure. The error joins a
// *table.Error for each key that is wrong.
func Check(decode func(into any) error) error {
	var t map[string]any
	if err := decode(&t); err != nil {
		return err
	}
	_, _, err := read(t)
	return err
}

// read returns the wrapper of a table.
func read(t env.Wrapper) (name string, w wrapper, err error) {
	if _, module := t[env.KeyUse]; module {
		w, err := readModule(t)
		return env.KeyUse, w, err
	}
	keys := slices.Sorted(maps.Keys(t))
	if len(keys) != 1 {
		return "", nil, &table.Error{Code: "E005", Reason: fmt.Sprintf("names %d wrappers, want one", len(keys)),
			Help: "a table each: wrap = [{ time_limit = 500 }, { reward_clip = 1 }]"}
	}
	name = keys[0]
	i := slices.Index(names(), name)
	if i < 0 {
		return "", nil, &table.Error{Code: "E010", Key: name, Reason: "is not a wrapper", Help: table.DidYouMean(name, "`%s`", "wrappers", names())}
	}
	w = kinds[i].new()
	if err := table.Decode(table.Plain(map[string]any(t)), w); err != nil {
		return "", nil, err
	}
	var errs []error
	w.validate(func(key, reason, help string) {
		errs = append(errs, &table.Error{Code: table.CodeRange, Key: key, Reason: reason, Help: help})
	})
	return name, w, errors.Join(errs...)
}

// New returns a plugin of environments that have the wrappers of a list around them, the first one innermost. Closing it closes
// inner; without wrappers it is inner. load loads wrappers that are modules, or is nil where there can be none. The error is a
// *table.Error with a Key such as wrap[1].time_limit, or joins several.
func New(inner env.Plugin, list []env.Wrapper, load Loader) (env.Plugin, error) {
	for i, t := range list {
		p, err := around(inner, t, i == len(list)-1, load)
		if err != nil {
			return nil, placed(err, fmt.Sprintf("wrap[%d]", i))
		}
		inner = p
	}
	return inner, nil
}

// placed puts the place of a table before the keys of its errors.
func placed(err error, place string) error {
	var errs []error
	for _, e := range table.All(err) {
		at := *e
		at.Key = strings.TrimSuffix(place+"."+e.Key, ".")
		errs = append(errs, &at)
	}
	return errors.Join(errs...)
}

func around(inner env.Plugin, t env.Wrapper, last bool, load Loader) (env.Plugin, error) {
	name, w, err := read(t)
	if err != nil {
		return nil, err
	}
	if _, stacks := w.(*frameStack); stacks && !last {
		return nil, &table.Error{Code: CodeUnsuited, Key: name, Reason: "is not the last of the list", Help: "frames are stacked of what all wrappers have made: move it to the end"}
	} else if stacks {
		return inner, nil
	}
	p := &plugin{Plugin: inner, wrapper: w, spec: inner.Spec(), inner: inner.Spec()}
	if _, parts := w.(parted); parts && !env.StepsParts(inner) && !p.inner.HasAgents() {
		return nil, &table.Error{Code: CodeUnsuited, Key: name, Reason: fmt.Sprintf("does not suit %s: its runtime steps whole batches", p.inner.Name), Help: p.StepsWhole()}
	}
	if err := w.describe(&p.spec); err != nil {
		return nil, &table.Error{Code: CodeUnsuited, Key: name, Reason: "does not suit " + p.inner.Name + ": " + err.Error(), Err: err}
	}
	text, err := json.Marshal(t)
	if m, ok := w.(*moduleWrapper); ok {
		if err := m.load(load, &p.spec); err != nil {
			return nil, err
		}
		p.module = m
		text, err = m.text(t)
	}
	if err != nil {
		return nil, err
	}
	p.text, p.sum = string(text), sumOf(string(text))
	if c, ok := w.(painter); ok {
		return &paintedPlugin{p, c}, nil
	}
	if p.module != nil && p.module.observes() {
		p.Plugin = p.module.apart(inner)
	}
	return p, nil
}

// Describe describes the keys of all wrappers for readers, first rlhost's own, then the keys of a wrapper that is a module.
func Describe() (keys []table.Description) {
	for i := range kinds {
		keys = append(keys, table.Describe(kinds[i].new())...)
	}
	return append(keys, table.Describe(&ModuleTable{})...)
}
