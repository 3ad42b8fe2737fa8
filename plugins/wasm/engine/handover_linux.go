package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// handover gives wazero code that was compiled before. wazero looks for it in a folder, by a name that only it can
// compute, and reads whatever is there. So the folder holds links to a descriptor of this process, which refers to the
// checked code while a module is compiled, and to nothing at any other time. The folder's name contains the
// descriptor's number: processes that have the same number may share it, because a link leads each to its own.
type handover struct {
	mu        sync.Mutex
	outer     string   // the folder
	folder    string   // the one in it that wazero uses
	fd        int      // of the code
	nothing   *os.File // the descriptor's file at all other times
	temporary bool     // the folder is removed with the handover
}

// openHandover opens a handover for a wazero cache that it returns. Without a cache of ours its folder is a temporary one.
func openHandover(c *codecache.Cache) (wazero.CompilationCache, *handover, error) {
	h := &handover{temporary: c == nil}
	cache, err := h.open(c)
	if err != nil {
		return nil, nil, errors.Join(err, h.close())
	}
	return cache, h, nil
}

func (h *handover) open(c *codecache.Cache) (wazero.CompilationCache, error) {
	var err error
	if h.nothing, err = os.Open(os.DevNull); err != nil {
		return nil, err
	}
	// Seldom another number than these, so that there are few folders. Beyond 63 the kernel makes the table of descriptors
	// larger, which takes a program of several threads 10 ms.
	for _, least := range []int{60, 40, 10} {
		if h.fd, err = unix.FcntlInt(h.nothing.Fd(), unix.F_DUPFD_CLOEXEC, least); err == nil {
			break
		}
	}
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if h.temporary {
		h.outer, err = os.MkdirTemp("", "rlhost-code-*")
	} else {
		// Kinds of machines may share a home.
		h.outer = c.Path(fmt.Sprintf("handover-%d-%s-%s", h.fd, wazeroVersion(), runtime.GOARCH))
		if err = os.Mkdir(h.outer, 0o700); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(h.outer)
	if err != nil {
		return nil, err
	}
	inner, err := onlyName(h.outer)
	h.folder = filepath.Join(h.outer, inner)
	return cache, err
}

// wazeroVersion returns the version of wazero in this program, as far as that is known.
func wazeroVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if strings.HasSuffix(d.Path, "/wazero") {
				return d.Version
			}
		}
	}
	return "unknown"
}

// compilerName distinguishes versions of wazero and kinds of machines.
func (h *handover) compilerName() string { return filepath.Base(h.folder) }

// during makes the descriptor refer to the code, and a link with its name exist, while use runs.
func (h *handover) during(code *codecache.Code, use func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	link, target := filepath.Join(h.folder, code.Name), fmt.Sprintf("/proc/self/fd/%d", h.fd)
	if there, err := os.Readlink(link); err != nil || there != target {
		if err := errors.Join(os.RemoveAll(link), os.Symlink(target, link)); err != nil {
			return err
		}
	}
	if err := unix.Dup3(int(code.File.Fd()), h.fd, unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("dup3", err)
	}
	err := use()
	return errors.Join(err, os.NewSyscallError("dup3", unix.Dup3(int(h.nothing.Fd()), h.fd, unix.O_CLOEXEC)))
}

// give compiles a module from code that was compiled before.
func (s *sandbox) give(ctx context.Context, module []byte, code *codecache.Code) (compiled wazero.CompiledModule, err error) {
	err = s.hand.during(code, func() error {
		compiled, err = s.wz.CompileModule(ctx, module)
		return err
	})
	return compiled, err
}

func (h *handover) close() error {
	var errs []error
	if h.fd > 0 {
		errs = append(errs, unix.Close(h.fd))
	}
	if h.nothing != nil {
		errs = append(errs, h.nothing.Close())
	}
	if h.temporary && h.outer != "" {
		errs = append(errs, os.RemoveAll(h.outer))
	}
	return errors.Join(errs...)
}
