//go:build !wasip1

package wasm

import (
	"reflect"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

func TestServe_DescribesArguments(t *testing.T) {
	Serve(sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), Obs: sdk.Boxes([]float32{0, 0}, []float32{9, 9}), Args: []sdk.Arg{
		{Name: "limit", Doc: "steps of an episode", Kind: sdk.IntegerArg, Default: "3", Min: 1, Max: 100},
		{Name: "rules", Kind: sdk.ChoiceArg, Choices: []string{"chinese", "japanese"}, AffectsSpaces: true},
		{Name: "title"}, {Name: "wind", Kind: sdk.NumberArg}, {Name: "loud", Kind: sdk.BoolArg, Default: "false"},
	}}, newCounter)
	data, err := served.describe("")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hostabi.ParseSpec(data)
	want := []hostabi.Arg{
		{Name: "limit", Doc: "steps of an episode", Type: hostabi.ArgInteger, Default: "3", Min: 1, Max: 100},
		{Name: "rules", Type: hostabi.ArgChoice, Choices: []string{"chinese", "japanese"}, Flags: hostabi.ArgAffectsSpaces},
		{Name: "title", Type: hostabi.ArgText}, {Name: "wind", Type: hostabi.ArgNumber}, {Name: "loud", Type: hostabi.ArgBool, Default: "false"},
	}
	if err != nil || !reflect.DeepEqual(spec.Args, want) {
		t.Errorf("described as %+v, %v; want %+v", spec.Args, err, want)
	}
	if low, high := spec.Tensors[tensorObs].Bounds(1); low != 0 || high != 9 {
		t.Errorf("bounds %v..%v: the values of tensors lie behind the arguments", low, high)
	}
}
