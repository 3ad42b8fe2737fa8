package rlmath_test

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/rlmath"
)

func first(f func(float64) float64) func(x, y float64) float64 {
	return func(x, _ float64) float64 { return f(x) }
}

// draw is that of bits.c.
func draw(rng *sdk.Rand) float64 {
	bits := rng.Next()
	switch bits & 3 {
	case 0:
		return math.Float64frombits(rng.Next())
	case 1:
		return float64(int64(bits>>40)) * (3.14159265358979311600e+00 / 2)
	case 2:
		return math.Float64frombits(0x3ff0000000000000+bits>>32) - 1
	default:
		return float64(int64(bits)) * 0x1p-59
	}
}

// Functions have the bits of rl_math.h on this machine too; tests of guests show them in modules.
func TestFunctions_HaveTheBitsOfC(t *testing.T) {
	cc := testkit.Needs(t, "cc", "gcc", "clang")
	testkit.Reads(t, "../c/rl_math.h", "../c/rl_author.h")
	program := filepath.Join(t.TempDir(), "bits")
	if text, err := exec.Command(cc, "-O2", "-ffp-contract=off", "-I", "../c", "testdata/bits.c", "-o", program, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]func(x, y float64) float64{
		"Sin": first(rlmath.Sin), "Cos": first(rlmath.Cos), "Tan": first(rlmath.Tan), "Asin": first(rlmath.Asin), "Acos": first(rlmath.Acos),
		"Atan": first(rlmath.Atan), "Atan2": rlmath.Atan2, "Exp": first(rlmath.Exp), "Ln": first(rlmath.Ln), "Pow": rlmath.Pow,
		"Sqrt": first(rlmath.Sqrt), "Tanh": first(rlmath.Tanh), "Floor": first(rlmath.Floor), "Ceil": first(rlmath.Ceil),
		"Trunc": first(rlmath.Trunc), "Round": first(rlmath.Round), "Fmod": rlmath.Fmod,
	}
	for line := range strings.Lines(string(out)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		f := functions[name]
		delete(functions, name)
		rng, hash := sdk.NewRand(1), uint64(0)
		for range 200_000 {
			x := draw(&rng)
			hash = hash*0x100000001b3 ^ math.Float64bits(f(x, draw(&rng)))
		}
		if got := fmt.Sprintf("%016x", hash); got != want {
			t.Errorf("%s: hash %s, in C %s", name, got, want)
		}
	}
	if len(functions) > 0 {
		t.Errorf("C does not show %v", functions)
	}
}

func ExampleSin() {
	fmt.Println(rlmath.Sin(1), rlmath.Tanh(0.5))
	// Output: 0.8414709848078965 0.4621171572600098
}
