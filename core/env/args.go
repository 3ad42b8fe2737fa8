package env

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// CheckArgs checks the arguments of a source against the environment's description; an environment that describes none takes any.
// The error joins a table.Error for each unknown key and each value of another type, out of range or outside the choices.
func CheckArgs(described []hostabi.Arg, given map[string]string) error {
	if len(described) == 0 {
		return nil
	}
	var names []string
	for i := range described {
		names = append(names, described[i].Name)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		i := slices.Index(names, key)
		if i < 0 {
			errs = append(errs, &table.Error{Code: table.CodeUnknown, Key: "args." + key, Reason: "is not an argument of this environment",
				Help: knownArgs(key, names)})
			continue
		}
		a := &described[i]
		err := a.Accepts(given[key])
		if err == nil {
			continue
		}
		code := table.CodeRange
		if errors.Is(err, hostabi.ErrArgType) {
			code = table.CodeType
		}
		errs = append(errs, &table.Error{Code: code, Key: "args." + key, Reason: err.Error(), Help: argHelp(a)})
	}
	return errors.Join(errs...)
}

// maxListed is how many arguments an error lists.
const maxListed = 14

// knownArgs lists the arguments that there are, and begins with the one that was meant.
func knownArgs(key string, names []string) string {
	list := "arguments: " + strings.Join(slices.Sorted(slices.Values(names))[:min(len(names), maxListed)], ", ")
	if more := len(names) - maxListed; more > 0 {
		list += fmt.Sprintf(" and %d more, which rlhost check lists", more)
	}
	near, ok := table.Nearest(key, names)
	switch {
	case ok && len(names) == 1:
		return fmt.Sprintf("did you mean `%s`?", near)
	case ok:
		return fmt.Sprintf("did you mean `%s`? %s", near, list)
	}
	return list
}

// argHelp describes an argument's purpose and its default.
func argHelp(a *hostabi.Arg) string {
	switch {
	case a.Doc != "" && a.Default != "":
		return a.Doc + "; default " + a.Default
	case a.Default != "":
		return "the default is " + a.Default
	}
	return cmp.Or(a.Doc, "write "+a.Wants())
}
