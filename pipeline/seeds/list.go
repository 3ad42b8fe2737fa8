package seeds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxSeeds bounds a set.
const maxSeeds = 10_000

// Parse returns the seeds of a list such as 0-9 or 1,3,8-10, which names each once. The empty list has none.
func Parse(list string) ([]uint64, error) {
	var all []uint64
	if list == "" {
		return nil, nil
	}
	for _, part := range strings.Split(list, ",") {
		first, last, _ := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.ParseUint(first, 10, 63)
		to := from
		if err == nil && last != "" {
			to, err = strconv.ParseUint(last, 10, 63)
		}
		if err != nil || to < from || to-from >= maxSeeds || len(all) >= maxSeeds {
			return nil, fmt.Errorf("seeds %q: write it as 0-9 or 1,3,8-10, with %d seeds at most", list, maxSeeds)
		}
		for seed := from; seed <= to; seed++ {
			if slices.Contains(all, seed) {
				return nil, fmt.Errorf("seeds %q: %d is in it twice", list, seed)
			}
			all = append(all, seed)
		}
	}
	return all, nil
}
