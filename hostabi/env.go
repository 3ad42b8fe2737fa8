package hostabi

// Names of env ABI v1. Pointers and lengths are i32, results are a Status or a non-negative value.
//
// A guest is a reactor: it exports _initialize or nothing to start with, never _start. The host calls
// _initialize once, rl_describe, rl_create, then rl_bind for each block it wants written, rl_reset, and
// rl_step for t = 0, 1, … Only one call runs at a time.
const (
	// ExportABI is the marker of the version. It is looked for, never called.
	ExportABI = "rl_env_v1"
	// ExportABIPrefix begins the marker of any version, so that a guest from the future is named as such.
	ExportABIPrefix = "rl_env_v"
	// ExportSDKPrefix begins the name of a function, without parameters and results, that says which SDK made the module. It is never
	// called, of components neither, and nothing depends on it but words.
	ExportSDKPrefix = "rl_sdk_"

	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportStart      = "_start"

	// ExportHost (optional): (host, len) -> status. Called once before rl_describe with a HostDesc of len bytes.
	ExportHost = "rl_host"
	// ExportDescribe: (config, config_len, buf, cap) -> needed length. Writes Spec and what follows it for that
	// configuration, or nothing if cap is too small. The configuration is UTF-8 lines "key=value\n", sorted by key, nested
	// keys joined with dots; an empty one is always accepted.
	ExportDescribe = "rl_describe"
	// ExportAlloc: (size, align) -> pointer, 0 when out of memory. The alignment is a power of two up to
	// 65536. The guest must leave the memory alone until ExportFree. With an alignment of 4096 or more it has
	// its own pages, over which the host maps windows.
	ExportAlloc = "rl_alloc"
	// ExportFree: (pointer, size) -> nothing.
	ExportFree = "rl_free"
	// ExportCreate: (config, config_len, num_envs, autoreset) -> environment batch, 0 or more. autoreset is
	// the one mode that the host chose from Spec.Autoreset.
	ExportCreate = "rl_create"
	// ExportBind: (batch, bindings, n) -> status. May be called between any two steps.
	ExportBind = "rl_bind"
	// ExportReset: (batch, t, mask or 0, seeds or 0) -> status. Starts a new episode in every environment, or
	// where mask (u8 per environment) is not 0, and writes obs[t] and mask[t]. seeds is u64 per environment
	// and starts the environment's own random stream; without it the stream continues.
	ExportReset = "rl_reset"
	// ExportStep: (batch, t) -> status. Reads action[t]; writes reward, terminated, truncated [t] and
	// obs, mask [t+1].
	ExportStep = "rl_step"
	// ExportStepRange (optional): (batch, t, first, count) -> status. ExportStep for some environments.
	ExportStepRange = "rl_step_range"
	// ExportRender (optional): (batch, env, mode, buf, cap) -> needed length. The low 8 bits of mode are the number of
	// a bit of RenderMode, bits 8 to 15 a camera or an agent. It changes no state.
	ExportRender = "rl_render"
	// ExportSave (optional): (batch, env, buf, cap) -> needed length. All state of one environment, its random
	// stream included, after a head of 8 bytes: the state version and the number of bytes that follow, u32 each.
	ExportSave = "rl_save"
	// ExportLoad (optional, with ExportSave): (batch, env, buf, len) -> status. StatusVersion for a state of a version that
	// the guest does not read.
	ExportLoad = "rl_load"
	// ExportDestroy (optional): (batch) -> status.
	ExportDestroy = "rl_destroy"
	// ExportLastError (optional): (buf, cap) -> needed length. Text of the newest error.
	ExportLastError = "rl_last_error"
	// ExportCurrentEnv (optional): () -> index of the environment being stepped, so that a trap can name it.
	ExportCurrentEnv = "rl_current_env"
	// ExportCurrentAgent (optional): () -> index of the agent, as ExportCurrentEnv.
	ExportCurrentAgent = "rl_current_agent"
)

// ImportModule is the module that the guest imports host functions from. Each import but yield is a
// capability that the pipeline grants by name.
const (
	ImportModule = "rl"

	// ImportOptional is the module of the same functions, of environments or of components, for a guest that runs without them: one that
	// is not granted, or does not exist, does nothing and returns StatusUnsupported, or 0 where its result is no status.
	ImportOptional = "rl_optional"

	// ImportYield: () -> nothing. Inserted by the host's rewriter; a guest must not import it.
	ImportYield = "yield"
	// ImportLog: (level, text, len). Levels 0 debug, 1 info, 2 warning, 3 error. Rate limited.
	ImportLog = "log"
	// ImportLogEnabled: (level) -> 0 or 1.
	ImportLogEnabled = "log_enabled"
	// ImportClock: () -> i64 nanoseconds of a virtual clock that advances by steps.
	ImportClock = "clock_ns"
	// ImportMetricEnv: (env, name, len, value f64, gather). A number of an environment, by its index, for the metrics under env/,
	// gathered over its episode as a tensor with that flag of TensorGather: 0 is the last value.
	ImportMetricEnv = "metric_env"
)

// ValueType is a type of the WebAssembly value stack.
type ValueType byte

// Value types as encoded in a module.
const (
	TypeI32 ValueType = 0x7f
	TypeI64 ValueType = 0x7e
	TypeF64 ValueType = 0x7c
)

// Function is the signature of a guest export or import.
type Function struct {
	Name     string
	Params   []ValueType
	Results  []ValueType
	Required bool
}

func i32s(n int) []ValueType {
	types := make([]ValueType, n)
	for i := range types {
		types[i] = TypeI32
	}
	return types
}

// EnvExports returns the functions of env ABI v1 that a guest exports, in the order of its life.
func EnvExports() []Function {
	return []Function{
		{ExportABI, nil, nil, true},
		{ExportInitialize, nil, nil, false},
		{ExportHost, i32s(2), i32s(1), false},
		{ExportDescribe, i32s(4), i32s(1), true},
		{ExportAlloc, i32s(2), i32s(1), true},
		{ExportFree, i32s(2), nil, true},
		{ExportCreate, i32s(4), i32s(1), true},
		{ExportBind, i32s(3), i32s(1), true},
		{ExportReset, i32s(4), i32s(1), true},
		{ExportStep, i32s(2), i32s(1), true},
		{ExportStepRange, i32s(4), i32s(1), false},
		{ExportRender, i32s(5), i32s(1), false},
		{ExportSave, i32s(4), i32s(1), false},
		{ExportLoad, i32s(4), i32s(1), false},
		{ExportDestroy, i32s(1), i32s(1), false},
		{ExportLastError, i32s(2), i32s(1), false},
		{ExportCurrentEnv, nil, i32s(1), false},
		{ExportCurrentAgent, nil, i32s(1), false},
	}
}

// EnvImports returns the host functions that an environment may be granted.
func EnvImports() []Function {
	return []Function{
		{ImportLog, i32s(3), nil, false},
		{ImportLogEnabled, i32s(1), i32s(1), false},
		{ImportClock, nil, []ValueType{TypeI64}, false},
		{ImportMetricEnv, []ValueType{TypeI32, TypeI32, TypeI32, TypeF64, TypeI32}, nil, false},
	}
}
