package spawn

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/status"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi/native"
)

// Codes of Error.
const (
	CodeStart    = "E061" // the program cannot be run
	CodeHello    = "E062" // it runs, but does not answer as a plugin
	CodeVersion  = "E063" // it speaks another version of the protocol
	CodeChecksum = "E064" // it is not the file that was meant
	CodeKind     = "E065" // it does not have the requested kind
	CodeDied     = "E066" // its process ended or was killed, and may not be started again
	CodeProtocol = "E067" // it answers nonsense, or refuses
	CodeRaised   = "E068" // its component has ended itself, in its own words
	CodeModule   = "E069" // the Python that runs it lacks a module
)

// Error says why a program cannot be used as a plugin.
type Error struct {
	Code    string
	Program string // its name in the pipeline
	Reason  string
	Help    string // the remedy; may be empty
	Err     error  // may be nil
}

// Error returns everything but the code in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("plugin %q: %s", e.Program, e.Reason)
	if e.Help != "" {
		text += ": " + e.Help
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Refusal returns the code with which the plugin has refused a call, native.CodeFailed or a later one, and its words; 0
// if the error is something else.
func (e *Error) Refusal() (code int, words string) {
	said := status.Convert(e.Err)
	return int(said.Code()), said.Message()
}

// KeyErrors joins a table.Error for each error in a table that a plugin has reported; nil for none.
func KeyErrors(list []native.ConfigError) error {
	errs := make([]error, len(list))
	for i, e := range list {
		errs[i] = &table.Error{Key: e.Key, Reason: e.Reason, Help: e.Help, Code: e.Code}
	}
	return errors.Join(errs...)
}

// Why a process was ended, or a call to it.
var (
	ErrSlow  = errors.New("no answer in time")
	ErrDied  = errors.New("its process has ended")
	ErrGrace = errors.New("it does not stop")
)

var protocolVersion = strconv.Itoa(native.Version)

// runError explains why a program could not be executed.
func runError(p *Program, path string, err error) *Error {
	e := &Error{Code: CodeStart, Program: p.Name, Err: err}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return NotFound(&Program{Name: p.Name, Path: path}, err)
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Help = fmt.Sprintf("%s: no such file", path), "build it first, or correct the path"
	case errors.Is(err, fs.ErrPermission):
		e.Reason, e.Help = fmt.Sprintf("%s is not executable", path), "chmod +x, or set interpreter for a script"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = fmt.Sprintf("%s is no program for this machine", path)
		e.Help = "build it for linux on this processor, or set interpreter for a script"
	default:
		e.Reason = fmt.Sprintf("%s cannot be run: %v", path, err)
	}
	return e
}

// NotFound explains that PATH has no program of a plugin's name.
func NotFound(p *Program, err error) *Error {
	e := &Error{Code: CodeStart, Program: p.Name, Err: err, Reason: fmt.Sprintf("there is no program %s in PATH", p.Path),
		Help: "install it, or write its path with a slash in it"}
	if strings.HasPrefix(p.Path, "python") {
		e.Help = "install Python 3.10 or newer, or name one: RLHOST_PYTHON=/path/to/python"
	}
	return e
}

// helloError explains why a program that runs is no plugin, from its first output and how it ended.
func helloError(p *Program, c *child, said []string, slow bool, err error) *Error {
	e := &Error{Code: CodeHello, Program: p.Name, Err: err}
	line := c.hello.text()
	fields := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(fields) >= 4 && fields[0] == "1" && fields[1] != protocolVersion:
		e.Code = CodeVersion
		e.Reason = fmt.Sprintf("it speaks version %s of the plugin protocol, this host version %s", fields[1], protocolVersion)
		e.Help = "build it with the SDK that belongs to this rlhost"
	case len(fields) >= 4 && fields[0] == "1":
		e.Reason = fmt.Sprintf("its handshake %q is not accepted: %v", line, err)
		e.Help = "it must serve gRPC on a socket in the folder PLUGIN_UNIX_SOCKET_DIR"
	case line != "":
		e.Reason = fmt.Sprintf("it printed %.80q to standard output before the handshake", line)
		e.Help = "print to standard error: the first line of standard output belongs to the handshake"
	case slow:
		e.Reason = fmt.Sprintf("it did not say hello within %v", p.Start)
		e.Help = "raise `start` if it needs longer; if not, is it a plugin?"
	case missingModule(said) != "":
		return moduleError(p, c.cmd.Path, missingModule(said))
	default:
		e.Reason = fmt.Sprintf("it %s before it said hello", c.end())
		e.Help = "is it a plugin of rlhost?"
	}
	e.Reason += quoteWords(said)
	return e
}

// quoteWords returns a program's last output, in one line: of a traceback the end, without its frames.
func quoteWords(said []string) string {
	said = slices.DeleteFunc(slices.Clone(said), func(line string) bool {
		return line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "Traceback ")
	})
	if len(said) == 0 {
		return ""
	}
	return fmt.Sprintf(" (its last words: %s)", strings.Join(said, " / "))
}

var noModule = regexp.MustCompile(`ModuleNotFoundError: No module named '([\w.]+)'`)

// missingModule returns the package that Python looked for when it gave up.
func missingModule(said []string) string {
	if len(said) == 0 {
		return ""
	}
	m := noModule.FindStringSubmatch(said[len(said)-1])
	if m == nil {
		return ""
	}
	name, _, _ := strings.Cut(m[1], ".")
	return name
}

// moduleError explains that the Python at a path lacks a module, with the line that installs it.
func moduleError(p *Program, python, module string) *Error {
	source, from := module, ""
	if module == "rlhost" {
		source, from = "./sdk/python", " (in a clone of rlhost)"
	}
	if base := filepath.Base(python); base == "env" && len(p.Interpreter) > 1 {
		python = p.Interpreter[1] // that env starts
	}
	e := &Error{Code: CodeModule, Program: p.Name, Reason: fmt.Sprintf("%s has no module %q", python, module),
		Help: fmt.Sprintf("%s -m pip install %s%s", python, source, from)}
	if len(p.Interpreter) == 0 {
		e.Help += ", or name a Python that has it: RLHOST_PYTHON=/path/to/python"
	} else {
		e.Help += ", or name a Python that has it as `interpreter`"
	}
	return e
}
