//go:build !wasip1

package wasm

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

func TestServe_DescribesArguments(t *testing.T) {
	Serve(sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), PictureWidth: 3, PictureHeight: 2, Obs: sdk.Boxes([]float32{0, 0}, []float32{9, 9}), Args: []sdk.Arg{
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
	if want := (hostabi.Render{Modes: hostabi.RenderText | hostabi.RenderRGB, Width: 3, Height: 2}); spec.Render != want {
		t.Errorf("pictures are described as %+v, want %+v", spec.Render, want)
	}
	if low, high := spec.Tensors[tensorObs].Bounds(1); low != 0 || high != 9 {
		t.Errorf("bounds %v..%v: the values of tensors lie behind the arguments", low, high)
	}
	Serve(sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, 2), PictureWidth: 3}, newCounter)
	if _, err := served.describe(""); err == nil || !strings.Contains(err.Error(), "PictureWidth and PictureHeight of 1 to 16384") {
		t.Errorf("a picture without a height: %v", err)
	}
}
