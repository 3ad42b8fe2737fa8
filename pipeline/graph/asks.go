package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// Ask says which request answers a question that a component asks.
type Ask struct {
	Component string
	Index     int // of the instance; -1: that with the asker's own index, counted around
	Request   string
}

// String returns the request as the file names it.
func (a *Ask) String() string {
	name := a.Component
	if a.Index >= 0 {
		name += "[" + strconv.Itoa(a.Index) + "]"
	}
	return component.Qualified(name, a.Request)
}

// InstanceFor returns which of count instances answers an asker with that index.
func (a *Ask) InstanceFor(asker, count int) int {
	if a.Index >= 0 {
		return a.Index
	}
	return asker % count
}

// askLines returns the questions as a key, if there are any.
func (x *Component) askLines() []keyValue {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(x.Asks)) {
		to := x.Asks[name]
		list = append(list, name+" = "+quote(to.String()))
	}
	if list == nil {
		return nil
	}
	return []keyValue{{Key: "asks", Value: "{ " + strings.Join(list, ", ") + " }"}}
}

// askReader reads the key asks of components, once all of them are known.
type askReader struct{ check *checker }

func (k *askReader) askTables() {
	for i := range k.check.graph.Components {
		if x := &k.check.graph.Components[i]; !k.check.unsure[x.Name] {
			k.asksOf(x)
		}
	}
}

// asksOf reads the questions of a component: each that it asks must be there, and no other.
func (k *askReader) asksOf(x *Component) {
	n := x.table.at("asks")
	var names []string
	for _, ask := range x.Manifest.Asks {
		names = append(names, ask.Name)
	}
	if n != nil {
		for _, name := range n.names {
			if !slices.Contains(names, name) {
				k.check.Add("E127", n.at(name).key, table.DidYouMean(name, "%s", "questions", names), "[component.%s] asks no question %q", x.Name, name)
			}
		}
	}
	for i := range x.Manifest.Asks {
		ask := &x.Manifest.Asks[i]
		at := n.at(ask.Name)
		if at == nil {
			k.check.Add("E126", x.table.key, "write asks."+ask.Name+" = \""+k.suggested(ask)+"\"", "[component.%s] asks %s, and nothing says which component answers", x.Name, ask)
			continue
		}
		text, ok := at.text()
		if to, good := k.askOf(at, text, ok); good {
			k.fits(at, x, ask, &to)
		}
	}
}

// suggested returns a request that could answer, as the file would name it.
func (k *askReader) suggested(ask *hostabi.Request) string {
	for i := range k.check.graph.Components {
		x := &k.check.graph.Components[i]
		if r, ok := x.Manifest.Request(ask.Name); ok && mismatch(ask, r) == "" {
			return component.Qualified(x.Name, r.Name)
		}
	}
	return "COMPONENT.REQUEST"
}

// askOf reads the name of a request; ok is false after an error, and where the component is not known because of another error.
func (k *askReader) askOf(at *node, text string, isText bool) (to Ask, ok bool) {
	name, request, dot := component.SplitQualified(text)
	if !isText || !dot {
		if isText { // else it was reported
			k.check.Add("E127", at.val, "write COMPONENT.REQUEST", "%q names no request", text)
		}
		return to, false
	}
	owner, index, single := strings.Cut(name, "[")
	to = Ask{Component: owner, Index: -1, Request: request}
	if k.check.broken["component."+to.Component] || k.check.unsure[to.Component] {
		return to, false
	}
	x := k.check.graph.Component(to.Component)
	if x == nil {
		var names []string
		for i := range k.check.graph.Components {
			names = append(names, k.check.graph.Components[i].Name)
		}
		k.check.Add("E127", at.val, table.DidYouMean(to.Component, "%s", "components", names), "there is no component %q", to.Component)
		return to, false
	}
	if single {
		n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || n < 0 || n >= x.Count {
			k.check.Add("E127", at.val, "", "there is no instance %q: [component.%s] has count = %d", name, x.Name, x.Count)
			return to, false
		}
		to.Index = n
	}
	return to, true
}

// fits checks that the component answers the request, with these arguments.
func (k *askReader) fits(at *node, x *Component, ask *hostabi.Request, to *Ask) {
	asked := k.check.graph.Component(to.Component)
	r, ok := asked.Manifest.Request(to.Request)
	if !ok {
		var names []string
		for i := range asked.Manifest.Requests {
			names = append(names, asked.Manifest.Requests[i].Name)
		}
		k.check.Add("E127", at.val, table.DidYouMean(to.Request, "%s", "requests", names), "[component.%s] does not answer the request %q", to.Component, to.Request)
		return
	}
	if why := mismatch(ask, r); why != "" {
		k.check.Add("E128", at.val, fmt.Sprintf("it asks %s, and %s answers %s", ask, to.Component, r), "the arguments of %s do not fit: %s", component.Qualified(x.Name, ask.Name), why)
		return
	}
	if x.Asks == nil {
		x.Asks = map[string]Ask{}
	}
	x.Asks[ask.Name] = *to
}

// mismatch says why the arguments of a question do not fit a request; empty if they do.
func mismatch(ask, r *hostabi.Request) string {
	find := func(list []hostabi.RequestArg, name string) int {
		return slices.IndexFunc(list, func(a hostabi.RequestArg) bool { return a.Name == name })
	}
	for _, given := range ask.Args {
		i := find(r.Args, given.Name)
		switch {
		case i < 0:
			return "there is no argument " + given.Name
		case !takes(r.Args[i].Type, given.Type):
			return fmt.Sprintf("the argument %s is %s, want %s", given.Name, given.Type, r.Args[i].Type)
		}
	}
	for _, wanted := range r.Args {
		i := find(ask.Args, wanted.Name)
		if !wanted.Optional && (i < 0 || ask.Args[i].Optional) {
			return fmt.Sprintf("the argument %s must be given", wanted.Name)
		}
	}
	return ""
}

// takes reports whether values of a type can be right for an argument of another.
func takes(want, given hostabi.RequestType) bool {
	return want == given || want == hostabi.RequestAny || given == hostabi.RequestAny || want == hostabi.RequestNumber && given == hostabi.RequestInteger ||
		want == hostabi.RequestInteger && given == hostabi.RequestNumber
}
