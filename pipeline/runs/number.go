package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/files"
)

// numberFile holds the highest number given so far, so that removing a folder does not free its number.
const numberFile = ".number"

// maxNumber keeps numbers readable; no one reaches it.
const maxNumber = 1 << 30

// CheckName returns an error for an invalid name of a run, which becomes the name of a folder.
func CheckName(name string) error {
	const help = `use letters, digits, ".", "_" and "-", starting with a letter or a digit`
	switch {
	case name == "":
		return fmt.Errorf("the run has no name: %s", help)
	case len(name) > 100:
		return fmt.Errorf("the name of a run may have 100 bytes, this one has %d", len(name))
	case name == Latest || name == Best:
		return fmt.Errorf("a run cannot be called %q: that word selects one", name)
	}
	for i, c := range name {
		plain := c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c))
		if !plain && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("run name %q: %s", name, help)
		}
	}
	return nil
}

// claimNumber makes the next numbered folder in parent. The lock on the number file makes numbers unique among
// processes that use it, mkdir among all.
func claimNumber(parent string) (number int, path string, err error) {
	f, err := files.OpenFile(filepath.Join(parent, numberFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, "", err
	}
	defer f.Close() // releases the lock
	if _, err := flock(f, true); err != nil {
		return 0, "", err
	}
	last, err := lastNumber(parent, f)
	if err != nil {
		return 0, "", err
	}
	for number = last + 1; number <= maxNumber; number++ {
		path = filepath.Join(parent, numberName(number))
		err := os.Mkdir(path, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return 0, "", err
		}
		if err := writeText(f, strconv.Itoa(number)); err != nil {
			return 0, "", errors.Join(err, os.Remove(path))
		}
		return number, path, nil
	}
	return 0, "", fmt.Errorf("%s has used up its %d run numbers: choose another run.name", parent, maxNumber)
}

// lastNumber returns the highest number that was given in parent: the file's, or that of a folder which the
// file does not count.
func lastNumber(parent string, f *os.File) (int, error) {
	last, _ := parseNumber(readText(f))
	numbers, err := numbersIn(parent)
	if err != nil {
		return 0, err
	}
	for _, n := range numbers {
		last = max(last, n)
	}
	return last, nil
}

// numbersIn returns the numbers of the folders in parent, ascending.
func numbersIn(parent string) ([]int, error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if n, ok := parseNumber(e.Name()); ok && e.IsDir() && e.Name() == numberName(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func numberName(n int) string { return fmt.Sprintf("%04d", n) }

func parseNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && n <= maxNumber
}
