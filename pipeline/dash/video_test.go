package dash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// A page has the newest videos of its run, and nothing else of the folder can be had by their address.
func TestVideos_TheNewestAreShown(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	if err := os.Mkdir(filepath.Join(j.run.Dir, runs.VideoFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 6; step++ {
		j.write(fmt.Sprintf("videos/%012d.gif", step*1000), fmt.Sprintf("GIF89a%d", step))
	}
	j.write("videos/notes.gif", "secret")
	j.write("secret.gif", "secret")
	root := serve(t, Options{Dir: dir})
	_, page := get(t, root+"run?run=pole/0001")
	for step := 1; step <= 6; step++ {
		if shown := strings.Contains(page, fmt.Sprintf("at=%012d", step*1000)); shown != (step > 2) {
			t.Errorf("the video of %d000 env steps is shown: %t", step, shown)
		}
	}
	if code, gif := get(t, root+"video.gif?run=pole/0001&at=000000006000"); code != 200 || gif != "GIF89a6" {
		t.Errorf("%d %q", code, gif)
	}
	for _, at := range []string{"notes", "../secret", "7000", "", "-1", "000000006000.gif"} {
		if code, answer := get(t, root+"video.gif?run=pole/0001&at="+at); code != 404 || strings.Contains(answer, "secret") {
			t.Errorf("%q: %d %q", at, code, answer)
		}
	}
}
