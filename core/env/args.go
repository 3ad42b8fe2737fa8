package env

import (
	"cmp"
	"errors"
	"maps"
	"slices"

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
				Help: cmp.Or(table.DidYouMean(key, "`%s`", "arguments", names), "rlhost check lists its arguments")})
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
