package module

import (
	"maps"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// Capabilities that the source of a module may be granted.
const (
	GrantLog    = "log"    // rl.log, rl.log_enabled, and the guest's stdout and stderr
	GrantClock  = "clock"  // rl.clock_ns
	GrantMetric = "metric" // rl.metric_env; rl_component.declare, rl_component.report
	GrantStop   = "stop"   // rl_component.stop
)

// WASI is the import module of WASI preview 1, which compilers link in unasked.
const WASI = "wasi_snapshot_preview1"

// HostFunction is a function that the host offers to guests. Params and Results are value types as encoded in a module.
type HostFunction struct {
	Name            string
	Params, Results []byte
	Grant           string // capability that a guest needs to import it, "" if none
}

// HostModule holds what guests import by one module name.
type HostModule struct {
	Name      string
	Functions []HostFunction
}

// HostModules returns everything that a guest can import. WASI needs no grant because it exposes nothing.
func HostModules() []HostModule {
	return []HostModule{
		{hostabi.ImportModule, granted(hostabi.EnvImports(), map[string]string{
			hostabi.ImportLog: GrantLog, hostabi.ImportLogEnabled: GrantLog,
			hostabi.ImportClock: GrantClock, hostabi.ImportMetricEnv: GrantMetric,
		})},
		{hostabi.ImportComponent, granted(hostabi.ComponentImports(), map[string]string{
			hostabi.ImportLog: GrantLog, hostabi.ImportLogEnabled: GrantLog,
			hostabi.ImportDeclare: GrantMetric, hostabi.ImportReport: GrantMetric, hostabi.ImportStop: GrantStop,
		})},
		{WASI, wasiFunctions()},
	}
}

// granted returns host functions with the names and signatures of an ABI, and the capabilities that they need.
func granted(specs []hostabi.Function, grants map[string]string) (all []HostFunction) {
	for _, f := range specs {
		all = append(all, HostFunction{f.Name, valueTypes(f.Params), valueTypes(f.Results), grants[f.Name]})
	}
	return all
}

// valueTypes returns value types as encoded in a module, which is also how wazero has them.
func valueTypes(types []hostabi.ValueType) []byte {
	out := make([]byte, len(types))
	for i, t := range types {
		out[i] = byte(t)
	}
	return out
}

// wasiFunctions is WASI preview 1. Parameters are written as letters: i for i32, I for i64.
func wasiFunctions() []HostFunction {
	params := map[string]string{
		"args_get": "ii", "args_sizes_get": "ii", "environ_get": "ii", "environ_sizes_get": "ii",
		"clock_res_get": "ii", "clock_time_get": "iIi", "fd_fdstat_get": "ii", "fd_read": "iiii",
		"fd_write": "iiii", "poll_oneoff": "iiii", "random_get": "ii", "sched_yield": "", "proc_raise": "i",
		"fd_advise": "iIIi", "fd_allocate": "iII", "fd_close": "i", "fd_datasync": "i",
		"fd_fdstat_set_flags": "ii", "fd_fdstat_set_rights": "iII", "fd_filestat_get": "ii",
		"fd_filestat_set_size": "iI", "fd_filestat_set_times": "iIIi", "fd_pread": "iiiIi",
		"fd_prestat_get": "ii", "fd_prestat_dir_name": "iii", "fd_pwrite": "iiiIi", "fd_readdir": "iiiIi",
		"fd_renumber": "ii", "fd_seek": "iIii", "fd_sync": "i", "fd_tell": "ii",
		"path_create_directory": "iii", "path_filestat_get": "iiiii", "path_filestat_set_times": "iiiiIIi",
		"path_link": "iiiiiii", "path_open": "iiiiiIIii", "path_readlink": "iiiiii",
		"path_remove_directory": "iii", "path_rename": "iiiiii", "path_symlink": "iiiii",
		"path_unlink_file": "iii", "sock_accept": "iii", "sock_recv": "iiiiii", "sock_send": "iiiii",
		"sock_shutdown": "ii",
	}
	all := []HostFunction{{Name: "proc_exit", Params: letters("i")}}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		all = append(all, HostFunction{Name: name, Params: letters(params[name]), Results: letters("i")})
	}
	return all
}

func letters(s string) []byte {
	types := make([]byte, len(s))
	for i, c := range s {
		types[i] = byte(hostabi.TypeI32)
		if c == 'I' {
			types[i] = byte(hostabi.TypeI64)
		}
	}
	return types
}
