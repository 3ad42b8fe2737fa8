package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestViews_AreFresh(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	views, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		got, err := os.ReadFile(filepath.Join(root, v.path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != v.text {
			t.Errorf("%s is stale: go run ./hostabi/internal/abigen", v.path)
		}
	}
}

func TestTemplated_GivesALanguageAllOfBothABIs(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	env, err := load(filepath.Join(root, "hostabi"), envABI())
	if err != nil {
		t.Fatal(err)
	}
	component, err := load(filepath.Join(root, "hostabi"), componentABI())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "sdk", "toy", "abi.toy.tmpl")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) ([]view, error) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return templated(dir, env, component)
	}
	views, err := write(`{{with .Env}}{{.Major}}.{{.Minor}} {{.Module}}
{{range .Constants}}{{.Name}} {{.Type}} {{.Value}}
{{end}}{{range .Records}}{{.Name}} {{.Size}}{{range .Fields}} {{.Name}}@{{.Offset}}:{{.Type}}{{end}}
{{end}}{{range .Exports}}{{.Name}}({{range .Params}}{{.Name}} {{.Type}},{{end}}){{range .Results}}{{.}}{{end}} {{.Required}}
{{end}}{{end}}{{range .Component.Imports}}{{.Name}}: {{.Doc}}
{{end}}`)
	if err != nil || len(views) != 1 || views[0].path != "sdk/toy/abi.toy" {
		t.Fatalf("%v, %v", views, err)
	}
	for _, want := range []string{"1.1 rl\n", "\nF32 DType 8\n", "\nTensorDesc 128 role@0:uint16 ", " shape@12:[6]uint32 ", "rl_step(", ",)i32 true\n", "\nreport: report: (metric, value f64). Adds to a counter"} {
		if !strings.Contains(views[0].text, want) {
			t.Errorf("no %q in\n%s", want, views[0].text)
		}
	}
	for _, text := range []string{"{{.Env", "{{.Env.Functions}}"} {
		if _, err := write(text); err == nil || !strings.Contains(err.Error(), "abi.toy.tmpl") {
			t.Errorf("%s: %v, want an error that names the template", text, err)
		}
	}
}

func TestRenderPython_NamesTheReleaseAsPythonDoes(t *testing.T) {
	for release, want := range map[string]string{"0.1.0-dev": `"0.1.0.dev0"`, "1.2.3": `"1.2.3"`, "1.0.0-rc": `"1.0.0.rc0"`} {
		if got := renderPython(release); !strings.Contains(got, "__version__ = "+want+"\n") || !strings.Contains(got, "RELEASE = \""+release+"\"  #") {
			t.Errorf("renderPython(%q) = %q, want %s", release, got, want)
		}
	}
}

func TestSnake_SplitsInitialisms(t *testing.T) {
	for name, want := range map[string]string{
		"StrideT": "stride_t", "ABIMajor": "abi_major", "DType": "dtype", "N": "n", "MaxEnvs": "max_envs",
		"CapPreferSoA": "cap_prefer_soa", "TensorDesc": "tensor_desc",
	} {
		if got := snake(name); got != want {
			t.Errorf("snake(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestHostName_SaysOfWhat(t *testing.T) {
	for name, want := range map[string]string{
		"FDWire": "RLH_FD_WIRE", "Version": "RLH_PROTOCOL_VERSION", "LinkAck": "RLH_LINK_ACK", "MaxRingCells": "RLH_MAX_RING_CELLS",
	} {
		if got := hostName(name); got != want {
			t.Errorf("hostName(%q) = %q, want %q", name, got, want)
		}
	}
}
