package results

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/plugins/runner"
)

// Episodes lists episodes of a run.
type Episodes struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name, cartpole/7, or latest."`
	Folder
	Worst  int    `placeholder:"N" xor:"which" help:"The N episodes with the lowest return, the lowest first."`
	Best   int    `placeholder:"N" xor:"which" help:"The N episodes with the highest return, the highest first."`
	Last   int    `placeholder:"N" xor:"which" help:"The N newest episodes, the newest first; default 20."`
	Policy string `placeholder:"NAME" help:"Episodes of this policy alone."`
	As     string `name:"as" enum:"table,csv,json" default:"table" help:"table, csv or json."`
}

// Help explains the first column.
func (c *Episodes) Help() string {
	return `Each line of episodes.csv is an episode of an agent in training. The column episode counts the lines, from 1 on.

  rlhost runs episodes cartpole/3 --worst 5
  rlhost runs episodes --best 3 --policy hunters --as csv`
}

// mostEpisodes bounds how many are listed.
const mostEpisodes = 100_000

// Run lists.
func (c *Episodes) Run(p *Program) error {
	for _, n := range []int{c.Worst, c.Best, c.Last} {
		if n < 0 || n > mostEpisodes {
			return usage(fmt.Errorf("%d episodes: want 1 to %d", n, mostEpisodes))
		}
	}
	run, err := c.Find(c.RunID)
	if err != nil {
		return err
	}
	file, err := files.Open(filepath.Join(run.Dir, runner.EpisodesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s has no %s\n  help: `log` of the component runner has \"jsonl\" where episodes are kept", run.ID(), runner.EpisodesFile))
	}
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := c.choose(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	return p.rows(rows, c.As)
}

// ended is an episode: its line, and the number that it is chosen by.
type ended struct {
	cells []string
	rank  float64 // the highest are listed first
}

// choose reads all episodes and keeps no more than it lists.
func (c *Episodes) choose(r io.Reader) ([][]string, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("it has no first line: %w", err)
	}
	returned, policy := slices.Index(head, "return"), slices.Index(head, "policy")
	switch {
	case returned < 0:
		return nil, fmt.Errorf("its first line has no column %q", "return")
	case policy < 0 && c.Policy != "":
		return nil, errors.New("an earlier version wrote it, without the column policy")
	}
	var kept []ended
	keep := max(c.Worst, c.Best, c.Last)
	if keep == 0 {
		keep = 20
	}
	for number := 1; ; number++ {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) || errors.Is(err, csv.ErrFieldCount) { // the last line may be cut
			break
		}
		if err != nil {
			return nil, err
		}
		value, err := strconv.ParseFloat(cells[returned], 64)
		if c.Policy != "" && cells[policy] != c.Policy || err != nil || math.IsNaN(value) {
			continue
		}
		e := ended{append([]string{strconv.Itoa(number)}, cells...), c.rank(number, value)}
		kept = insert(kept, keep, e)
	}
	rows := [][]string{append([]string{"episode"}, head...)}
	for _, e := range kept {
		rows = append(rows, e.cells)
	}
	return rows, nil
}

// rank is what episodes are chosen by.
func (c *Episodes) rank(number int, value float64) float64 {
	switch {
	case c.Worst > 0:
		return -value
	case c.Best > 0:
		return value
	}
	return float64(number)
}

// insert puts an episode into a list that is in order and has no more than keep.
func insert(kept []ended, keep int, e ended) []ended {
	if len(kept) == keep && e.rank <= kept[keep-1].rank {
		return kept
	}
	at, _ := slices.BinarySearchFunc(kept, e, func(a, b ended) int {
		if a.rank >= b.rank {
			return -1 // of equal ones the older is first
		}
		return 1
	})
	kept = slices.Insert(kept, at, e)
	return kept[:min(len(kept), keep)]
}
