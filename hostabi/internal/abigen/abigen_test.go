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

func TestRenderPython_NamesTheReleaseAsPythonDoes(t *testing.T) {
	for release, want := range map[string]string{"0.1.0-dev": `"0.1.0.dev0"`, "1.2.3": `"1.2.3"`, "1.0.0-rc": `"1.0.0.rc0"`} {
		if got := renderPython(release); !strings.HasSuffix(got, "= "+want+"\n") {
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
