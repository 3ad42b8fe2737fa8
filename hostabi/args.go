//go:build !wasip1

package hostabi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrArgType is wrapped by Accepts's error for a value of another type.
var ErrArgType = errors.New("another type")

// Accepts returns nil if the environment accepts the value, else an error such as "is 0, want a whole number from 1 to 19".
func (a *Arg) Accepts(value string) error {
	inside := true
	switch a.Type {
	case ArgInteger:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return &argError{fmt.Sprintf("is %q, want %s", value, a.Wants())}
		}
		inside = a.within(float64(n))
	case ArgNumber:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return &argError{fmt.Sprintf("is %q, want %s", value, a.Wants())}
		}
		inside = a.within(x)
	case ArgBool:
		if value != "true" && value != "false" {
			return &argError{fmt.Sprintf("is %q, want %s", value, a.Wants())}
		}
	case ArgChoice:
		if !slices.Contains(a.Choices, value) {
			return fmt.Errorf("is %q, want %s", value, a.Wants())
		}
	}
	if !inside {
		return fmt.Errorf("is %s, want %s", value, a.Wants())
	}
	return nil
}

// Written returns a value that the environment accepts as the configuration has it: a whole number in decimal digits, a number as JSON
// writes it, anything else as it is.
func (a *Arg) Written(value string) string {
	switch a.Type {
	case ArgInteger:
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case ArgNumber:
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			return number(x)
		}
	}
	return value
}

// Settled reports whether a value is written alike whatever the type of its argument is.
func Settled(value string) bool {
	return (&Arg{Type: ArgInteger}).Written(value) == value && (&Arg{Type: ArgNumber}).Written(value) == value
}

// number writes a number as JSON does, in its shortest form.
func number(x float64) string {
	b, err := json.Marshal(x)
	if err != nil { // it is no finite number, which no argument accepts
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return string(b)
}

// argError is an ErrArgType with its own text.
type argError struct{ text string }

func (e *argError) Error() string { return e.text }

func (e *argError) Unwrap() error { return ErrArgType }

// within reports whether a number lies within the bounds, if there are any.
func (a *Arg) within(x float64) bool { return a.Min == 0 && a.Max == 0 || x >= a.Min && x <= a.Max }

// Wants describes the values that the argument takes, such as "a whole number from 1 to 19".
func (a *Arg) Wants() string {
	switch a.Type {
	case ArgInteger, ArgNumber:
		kind := "a number"
		if a.Type == ArgInteger {
			kind = "a whole number"
		}
		if a.Min == 0 && a.Max == 0 {
			return kind
		}
		bound := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
		return kind + " from " + bound(a.Min) + " to " + bound(a.Max)
	case ArgBool:
		return "true or false"
	case ArgChoice:
		return "one of " + strings.Join(a.Choices, ", ")
	}
	return "a text"
}

// checkArgs checks every argument, and that names are unique.
func (s *EnvSpec) checkArgs() error {
	for i := range s.Args {
		a := &s.Args[i]
		if err := a.check(); err != nil {
			return fmt.Errorf("argument %d, %q: %w", i, a.Name, err)
		}
		for k := range s.Args[:i] {
			if s.Args[k].Name == a.Name {
				return fmt.Errorf("arguments %d and %d are both called %q", k, i, a.Name)
			}
		}
	}
	return nil
}

func (a *Arg) check() error {
	switch {
	case a.Name == "":
		return errors.New("it has no name")
	case strings.ContainsAny(a.Name, "=\n"):
		return errors.New("its name has = or a line break")
	case a.Type == 0:
		return errors.New("it has no type: its kind is 0")
	case math.IsNaN(a.Min) || math.IsNaN(a.Max) || a.Min > a.Max:
		return fmt.Errorf("bounds %g..%g, want numbers, the lower first", a.Min, a.Max)
	case a.Type == ArgChoice && len(a.Choices) == 0:
		return errors.New("there is nothing to choose from")
	}
	if a.Default == "" {
		return nil
	}
	if err := a.Accepts(a.Default); err != nil {
		return fmt.Errorf("its default %w", err)
	}
	return nil
}
