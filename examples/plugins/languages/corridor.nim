# A corridor: the policy stands in one of its cells and must find the right end.
type
  Corridor = object
    length, cell, steps: int32
  Result = object
    reward: cfloat
    terminated, truncated: bool
  Rows[T] = ptr UncheckedArray[ptr UncheckedArray[T]]
  Config = pointer
  Rng = pointer

{.push cdecl, importc.}
proc rl_guest_integer(config: Config, name: cstring, fallback: int64): int64
proc rl_guest_fail(text: cstring, len: uint32): bool
proc rl_guest_env(name: cstring, bytes: uint32, setup, reset, step: pointer)
proc rl_guest_box(part: uint32, name: cstring, element: uint32, low, high: cfloat, rank: uint32, shape: ptr uint32): uint32
proc rl_guest_discrete(part: uint32, name: cstring, first: int32, values: uint32): uint32
proc rl_guest_limit(steps: uint32)
proc rl_guest_below(rng: Rng, n: uint32): uint32
{.pop.}

proc setup(env: ptr Corridor, config: Config): bool {.cdecl.} =
  let length = rl_guest_integer(config, "length", 8)
  if length < 2 or length > 1000: return rl_guest_fail("length must be 2 to 1000", 24)
  env.length = int32(length)
  true

proc look(env: ptr Corridor, obs: Rows[cfloat]) =
  obs[0][0] = cfloat(env.cell) / cfloat(env.length - 1)

proc reset(env: ptr Corridor, rng: Rng, obs: Rows[cfloat]) {.cdecl.} =
  env.cell = int32(rl_guest_below(rng, uint32(env.length - 1))) # anywhere but the end
  env.steps = 0
  look(env, obs)

proc step(env: ptr Corridor, rng: Rng, action: Rows[int32], obs: Rows[cfloat], res: ptr Result) {.cdecl.} =
  env.cell = max(env.cell + (if action[0][0] == 1: 1'i32 else: -1'i32), 0)
  inc env.steps
  look(env, obs)
  res.terminated = env.cell == env.length - 1
  res.truncated = env.steps >= 50
  res.reward = if res.terminated: 1.0 else: -0.01

proc rl_guest_describe(config: Config): bool {.exportc, cdecl.} =
  var one = 1'u32
  rl_guest_env("corridor@1", uint32(sizeof(Corridor)), setup, reset, step)
  discard rl_guest_box(0, nil, 8, 0, 1, 1, addr one)
  discard rl_guest_discrete(1, nil, 0, 2)
  rl_guest_limit(50)
  true
