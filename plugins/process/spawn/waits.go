package spawn

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/hostabi/native"
)

// tellAfter is how long an answer may take before it is reported.
const tellAfter = time.Second

// waits are the answers that the processes of a runtime owe.
type waits struct {
	mu   sync.Mutex
	list map[*wait]struct{}
}

// wait is one answer that a process owes.
type wait struct {
	child   *child
	program *Program
	method  string // empty: its hello
	since   time.Time
}

// begin notes that a process is waited for. It returns the function that ends that.
func (w *waits) begin(c *child, p *Program, method string) (end func()) {
	x := &wait{child: c, program: p, method: method, since: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list == nil {
		w.list = map[*wait]struct{}{}
	}
	w.list[x] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.list, x)
	}
}

// Waits lists the processes that have not answered for a second or longer, with their calls: the oldest first. Any goroutine.
func (r *Runtime) Waits() []string {
	var late []*wait
	r.waits.mu.Lock()
	for x := range r.waits.list {
		if time.Since(x.since) >= tellAfter {
			late = append(late, x)
		}
	}
	r.waits.mu.Unlock()
	slices.SortFunc(late, func(a, b *wait) int { return a.since.Compare(b.since) })
	told := make([]string, len(late))
	for i, x := range late {
		told[i] = x.String()
	}
	return told
}

// String names the process and the answer that it owes.
func (x *wait) String() string {
	process := "the process"
	select {
	case <-x.child.started:
		process = fmt.Sprintf("process %d", x.child.pid)
	default:
	}
	bound := ""
	switch x.method {
	case "", native.MethodDescribe, native.MethodConfigure, native.MethodStart:
		bound = fmt.Sprintf(" (`start` of the plugin allows %v)", x.program.Start)
	}
	owes := "answered " + x.method
	if x.method == "" {
		owes = "said hello"
	}
	text := fmt.Sprintf("%s of %s has not %s%s", process, x.program, owes, bound)
	if x.stopped() {
		text += ": it is stopped by a signal, and kill -CONT makes it go on"
	}
	return text
}

// stopped reports whether the process is stopped by a signal or a debugger.
func (x *wait) stopped() bool {
	select {
	case <-x.child.started:
	default:
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(x.child.pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return strings.HasPrefix(after, "T") || strings.HasPrefix(after, "t")
}
