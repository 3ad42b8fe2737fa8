package touch

import (
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestPage_NamesTheExampleOfEachAxis: the page for newcomers has a row for each axis, with its number of existing files.
func TestPage_NamesTheExampleOfEachAxis(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/contributing/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	doors := map[string]int{} // by the names of functions; a kind's row has its payload's next to it
	for _, row := range regexp.MustCompile("(?m)^\\| [^|]* \\* `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		numbers := strings.Replace(row[2], "1 a backend", "3", 1) // two compute the toys, and one says that it leaves them out
		for _, n := range regexp.MustCompile(`\d+`).FindAllString(numbers, -1) {
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			doors[row[1]] += count
		}
	}
	for _, a := range axes() {
		name := runtime.FuncForPC(reflect.ValueOf(a).Pointer()).Name()
		name = name[strings.LastIndex(name, ".")+1:]
		want := a().doors
		if each := doors[name]; each != want {
			t.Errorf("docs/contributing/architecture.md says %d existing files for %s, which changes %d", each, name, want)
		}
		delete(doors, name)
	}
	if len(doors) > 0 {
		t.Errorf("docs/contributing/architecture.md names %v, which are no axes", doors)
	}
}
