package control

import (
	"os"
	"testing"
)

func TestReadResources_CountsOpenResources(t *testing.T) {
	before := ReadResources()
	if before.Goroutines < 1 || before.Descriptors < 3 || before.Mappings < 3 || before.Resident < 1<<20 {
		t.Errorf("%+v", before)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if now := ReadResources(); now.Descriptors != before.Descriptors+1 {
		t.Errorf("%d descriptors with one more open file, want %d", now.Descriptors, before.Descriptors+1)
	}
}
