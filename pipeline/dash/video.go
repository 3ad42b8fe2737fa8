package dash

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Bounds on videos.
const (
	shownVideos = 4
	videoBytes  = 32 << 20
)

// film is a video of a run: the file's name without its ending, which is a number of env steps.
type film struct {
	Name     string
	EnvSteps uint64
}

// filmsIn lists the newest videos of a folder, the newest first.
func filmsIn(folder string) (list []film) {
	entries, _ := os.ReadDir(folder) // mostly there is none
	for _, e := range slices.Backward(entries) {
		name, is := strings.CutSuffix(e.Name(), ".gif")
		if steps, err := strconv.ParseUint(name, 10, 64); is && err == nil && len(list) < shownVideos {
			list = append(list, film{name, steps})
		}
	}
	return list
}

// video answers with a video of a run.
func (s *Server) video(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	one, err := s.find.run(q.Get("run"))
	_, number := strconv.ParseUint(q.Get("at"), 10, 64) // a number is no path
	if err != nil || one == nil || number != nil {
		http.NotFound(w, r)
		return
	}
	gif, err := files.Read(filepath.Join(one.dir, runs.VideoFolder, q.Get("at")+".gif"), videoBytes)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/gif")
	_, _ = w.Write(gif)
}
