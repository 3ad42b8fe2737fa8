# CartPole-v1 with Gymnasium's equations in float32. Every operation is a single IEEE operation in the order that the other languages
# share, so that the same seeds give the same bits in all of them.
type
  CartPole = object
    x, xDot, theta, thetaDot: cfloat
    steps, maxSteps: uint32
  Result = object
    reward: cfloat
    terminated, truncated: bool
  Rows = object
    action, obs, reward, terminated, truncated: ptr UncheckedArray[uint8]
    nextAction, nextObs, nextReward, nextTerminated, nextTruncated: uint32
    index: uint32
    current: ptr uint32
    rng: pointer
  Floats = ptr UncheckedArray[cfloat]
  Config = pointer
  Rng = pointer

{.push cdecl, importc.}
proc rl_guest_integer(config: Config, name: cstring, fallback: int64): int64
proc rl_guest_fail(text: cstring, len: uint32): bool
proc rl_guest_env(name: cstring, bytes: uint32, setup, reset, step: pointer)
proc rl_guest_box(part: uint32, name: cstring, element: uint32, low, high: cfloat, rank: uint32, shape: ptr uint32): uint32
proc rl_guest_discrete(part: uint32, name: cstring, first: int32, values: uint32): uint32
proc rl_guest_argument(name: cstring, kind: uint32, value, doc: cstring, min, max: cdouble, choices: cstring, affects: bool)
proc rl_guest_use_many(many: pointer)
proc rl_guest_use_save(version, bytes: uint32, save, load: pointer)
proc rl_guest_limit(steps: uint32)
proc rl_guest_uniform(rng: Rng, low, high: cfloat): cfloat
{.pop.}

# Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and lengths occur folded
# into these, each rounded once.
const
  gravity = 9.8'f32
  leftBits = 0xc111745d'u32 # -10 / 1.1, force over total mass; action 1 turns the sign
  poleRatio = 0.045454547'f32 # pole mass times half length, over total mass
  lengthFull = 0.6666667'f32 # half length times 4/3
  tau = 0.02'f32
  xLimitBits = 0x4019999a'u32 # 2.4
  thetaLimitBits = 0x3e567750'u32 # 12 degrees
  absBits = 0x7fffffff'u32
  one = 1'f32

# Coefficients of sine and cosine, each rounded once.
const
  s3 = cfloat(-1.0 / 6.0)
  s5 = cfloat(1.0 / 120.0)
  s7 = cfloat(-1.0 / 5040.0)
  c2 = -0.5'f32
  c4 = cfloat(1.0 / 24.0)
  c6 = cfloat(-1.0 / 720.0)

proc setup(env: ptr CartPole, config: Config): bool {.cdecl.} =
  let limit = rl_guest_integer(config, "max_steps", 500)
  if limit < 1 or limit > 0x7fffffff: return rl_guest_fail("max_steps must be 1 to 2147483647", 33)
  env.maxSteps = uint32(limit)
  true

proc look(env: CartPole, obs: Floats) {.inline.} =
  obs[3] = env.thetaDot
  obs[2] = env.theta
  obs[1] = env.xDot
  obs[0] = env.x

proc reset(env: ptr CartPole, rng: Rng, obs: ptr Floats) {.cdecl.} =
  env.x = rl_guest_uniform(rng, -0.05, 0.05)
  env.xDot = rl_guest_uniform(rng, -0.05, 0.05)
  env.theta = rl_guest_uniform(rng, -0.05, 0.05)
  env.thetaDot = rl_guest_uniform(rng, -0.05, 0.05)
  env.steps = 0
  look(env[], obs[])

proc advance(env: ptr CartPole, action: uint32, obs: Floats, res: var Result) {.inline.} =
  var e = env[]
  let force = cast[cfloat]((action shl 31) xor leftBits)
  let square = e.theta * e.theta
  let sine = e.theta * (one + square * (s3 + square * (s5 + square * s7)))
  let cosine = one + square * (c2 + square * (c4 + square * c6))
  let push = force + poleRatio * (e.thetaDot * e.thetaDot) * sine
  let thetaAcc = (gravity * sine - cosine * push) / (lengthFull - poleRatio * (cosine * cosine))
  let xAcc = push - poleRatio * (thetaAcc * cosine)
  e.x = e.x + tau * e.xDot
  e.theta = e.theta + tau * e.thetaDot
  e.xDot = e.xDot + tau * xAcc
  e.thetaDot = e.thetaDot + tau * thetaAcc
  inc e.steps
  look(e, obs)
  env[] = e
  res.reward = 1
  # A state that is not a number has large bits, so it also ends its episode.
  res.terminated = (cast[uint32](e.x) and absBits) > xLimitBits or (cast[uint32](e.theta) and absBits) > thetaLimitBits
  res.truncated = e.steps >= e.maxSteps

proc step(env: ptr CartPole, rng: Rng, action: ptr ptr uint32, obs: ptr Floats, res: var Result) {.cdecl.} =
  advance(env, action[][], obs[], res)

template stepOne(i, nextAction, nextObs, nextReward, nextTerminated, nextTruncated: untyped) =
  var res {.noinit.}: Result
  current[] = index + i
  advance(addr envs[i], cast[ptr uint32](addr action[i * nextAction])[], cast[Floats](addr obs[i * nextObs]), res)
  cast[ptr cfloat](addr reward[i * nextReward])[] = res.reward
  terminated[i * nextTerminated] = uint8(res.terminated)
  truncated[i * nextTruncated] = uint8(res.truncated)

# Rows that lie one behind the other are at known distances, which compilers make better loops of.
proc many(envs: ptr UncheckedArray[CartPole], count: uint32, rows: ptr Rows) {.cdecl.} =
  let
    action = rows.action
    obs = rows.obs
    reward = rows.reward
    terminated = rows.terminated
    truncated = rows.truncated
    index = rows.index
    current = rows.current
    (a, o, r, e, l) = (rows.nextAction, rows.nextObs, rows.nextReward, rows.nextTerminated, rows.nextTruncated)
  if a == 4 and o == 16 and r == 4 and e == 1 and l == 1:
    for i in 0'u32 ..< count: stepOne(i, 4, 16, 4, 1, 1)
  else:
    for i in 0'u32 ..< count: stepOne(i, a, o, r, e, l)

type Words = ptr UncheckedArray[uint32]

proc save(env: Words, to: Words) {.cdecl.} =
  for i in 0 ..< 5: to[i] = env[i]

proc load(env: ptr CartPole, source: Words): bool {.cdecl.} =
  if source[4] > env.maxSteps: return false
  for i in 0 ..< 5: cast[Words](env)[i] = source[i]
  true

proc rl_guest_describe(config: Config): bool {.exportc, cdecl.} =
  var four = 4'u32
  rl_guest_env("cartpole@1", uint32(sizeof(CartPole)), setup, reset, step)
  discard rl_guest_box(0, nil, 8, 0, 0, 1, addr four)
  discard rl_guest_discrete(1, nil, 0, 2)
  rl_guest_argument("max_steps", 1, "500", "steps after which an episode is truncated", 1, 0x7fffffff, nil, false)
  rl_guest_limit(uint32(rl_guest_integer(config, "max_steps", 500)))
  rl_guest_use_many(many)
  rl_guest_use_save(0, 20, save, load)
  true
