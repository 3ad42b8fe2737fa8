package env

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// refused checks that an error is nil if want is empty, and contains want otherwise.
func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (!errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestCheckOptions(t *testing.T) {
	bounded := &hostabi.EnvSpec{Name: "e@1", MaxEnvs: 8, Autoreset: hostabi.SameStep | hostabi.NextStep}
	free := &hostabi.EnvSpec{Name: "e@1", Autoreset: hostabi.SameStep}
	for _, c := range []struct {
		what      string
		spec      *hostabi.EnvSpec
		envs      int
		autoreset hostabi.Autoreset
		instances int
		want      string
	}{
		{"as many as there may be", bounded, 8, hostabi.SameStep, 1, ""},
		{"one more", bounded, 9, hostabi.SameStep, 1, "9 environments, e@1 takes 1 to 8"},
		{"in two processes", bounded, 16, hostabi.SameStep, 2, ""},
		{"one more in two processes", bounded, 17, hostabi.SameStep, 2, "9 environments in each process, e@1 takes 1 to 8"},
		{"none", bounded, 0, hostabi.SameStep, 0, "0 environments, want 1 to"},
		{"less than none", free, math.MinInt, hostabi.SameStep, math.MinInt, "want 1 to"},
		{"without a bound", free, maxBatch, hostabi.SameStep, 1, ""},
		{"too many for anybody", free, math.MaxInt, hostabi.SameStep, 4, "want 1 to 1048576"},
		{"another mode", free, 1, hostabi.NextStep, 1, "offers modes"},
		{"two modes", bounded, 1, hostabi.SameStep | hostabi.NextStep, 1, "offers modes"},
		{"no mode", bounded, 1, 0, 1, "offers modes"},
	} {
		o := Options{Name: "x", Envs: c.envs, Autoreset: c.autoreset}
		err := o.Check(c.spec, c.instances)
		refused(t, c.what, err, c.want)
		var coded *table.Error
		if many := strings.Contains(c.want, "takes 1 to"); errors.As(err, &coded) != many || many && (coded.Code != CodeMany || coded.Help == "") {
			t.Errorf("%s: %v, want the code %s where there are too many", c.what, err, CodeMany)
		}
	}
}

func TestCheckBlock(t *testing.T) {
	spec := testkit.Spec(4, 2, false)
	o := Options{Name: "x", Envs: 4}
	schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: 2, Envs: 4})
	if err != nil {
		t.Fatal(err)
	}
	block := func(change func(*Block)) *Block {
		b := Block{Trajectory: trajectory.Trajectory{Schema: schema}, Index: 7}
		change(&b)
		return &b
	}
	other, more := testkit.Spec(5, 2, false), Options{Name: "x", Envs: 5}
	for _, c := range []struct {
		options *Options
		spec    *hostabi.EnvSpec
		block   *Block
		want    string
	}{
		{&o, &spec, block(func(*Block) {}), ""},
		{&o, &spec, block(func(b *Block) { b.Schema = nil }), "x: block 7 has no schema"},
		{&o, &spec, block(func(b *Block) { b.FD = -1 }), "ordinary memory"},
		{&o, &spec, block(func(b *Block) { b.Offset = -4096 }), "is at offset -4096"},
		{&more, &spec, block(func(*Block) {}), "has room for 4 environments, this batch has 5"},
		{&o, &other, block(func(*Block) {}), "is laid out for another environment (" + spec.Name + ")"},
	} {
		refused(t, c.want, c.options.CheckBlock(c.spec, c.block), c.want)
	}
}

func TestCheckResetAndStep(t *testing.T) {
	o := Options{Name: "x", Envs: 2}
	for _, c := range []struct {
		rows, t      int
		masks, seeds int // -1: nil
		step, reset  bool
	}{
		{4, 0, -1, -1, true, true},
		{4, 3, 2, 2, true, true},
		{4, 4, 2, -1, false, true}, // the row after the last step has an observation
		{4, 5, -1, 2, false, false},
		{4, -1, -1, -1, false, false},
		{4, math.MinInt, -1, -1, false, false},
		{4, math.MaxInt, -1, -1, false, false},
		{0, 0, -1, -1, false, false}, // nothing is bound
		{4, 0, 0, -1, true, false},
		{4, 0, 3, -1, true, false},
		{4, 0, -1, 1, true, false},
	} {
		var mask []uint8
		var seeds []uint64
		if c.masks >= 0 {
			mask = make([]uint8, c.masks)
		}
		if c.seeds >= 0 {
			seeds = make([]uint64, c.seeds)
		}
		for what, x := range map[string]struct {
			err error
			ok  bool
		}{"reset": {o.CheckReset(c.rows, c.t, mask, seeds), c.reset}, "step": {o.CheckStep(c.rows, c.t), c.step}} {
			want := ""
			if !x.ok {
				want = "x: " + what + " at row"
			}
			refused(t, what, x.err, want)
		}
	}
}
