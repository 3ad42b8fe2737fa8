// Hand-written. The exports of env ABI v1 out of the author's class: export * from "rlhost-env/exports".
import * as abi from "./abi";
import { Config, Env, Picture, Result, Rng, Tensor, batch, clear, error, fail, spec, view } from "./index";

export * from "./marker";
export function rl_sdk_assemblyscript(): void {} // for the words of messages

let acts: StaticArray<u8> = [], over: StaticArray<u8> = [];
let legal: StaticArray<u8> = [], turn: StaticArray<u8> = [], ended: u32 = 0, mode: u32 = 0, bound = false;
let kept: StaticArray<u8> = [], mislaid = false; // of agents that respawn: whose last observation the author has given; one is missing
batch.run = run; batch.end = end; batch.keep = keep;
const given = new Map<u32, usize>();

function rng(i: u32): Rng { return changetype<Rng>(batch.rngs + 8 * i); }

function read(at: u32, len: u32): Config {
  clear();
  const config = new Config(String.UTF8.decodeUnsafe(at, len));
  spec.describe(config, spec);
  spec.list();
  return config;
}

export function rl_alloc(size: u32, align: u32): u32 {
  if (align & (align - 1) || align > 65536 || size > 0x7fff0000) return 0;
  const whole: usize = max(align, 4096), bytes: usize = (size + 4095) & ~4095;
  const raw = heap.alloc(bytes + whole), at = (raw + whole - 1) & ~(whole - 1);
  given.set(<u32>at, raw);
  return <u32>at;
}
export function rl_free(pointer: u32, size: u32): void {
  if (!given.has(pointer)) return;
  heap.free(given.get(pointer));
  given.delete(pointer);
}

// ---- description

let strings: usize = 0, text: usize = 0; // the string table, and where its next string goes
function put(s: string): u32 {
  if (s.length == 0) return 0;
  const at = text;
  text += String.UTF8.encodeUnsafe(changetype<usize>(s), s.length, text, true);
  return <u32>(at - strings);
}

export function rl_describe(at: u32, len: u32, buf: u32, cap: u32): i32 {
  read(at, len);
  if (error != "") return abi.STATUS_CONFIG;
  const all = spec.tensors, agents = spec.agents > 1 || spec.turns || spec.apart, groups: u32 = spec.agents > 1 ? 1 : 0;
  let values: usize = abi.SPEC_BYTES + groups * abi.GROUP_BYTES + all.length * abi.TENSOR_BYTES + spec.args.length * abi.ARG_BYTES;
  let room = values + 4 * (<usize>spec.name.length + 8);
  for (let k = 0; k < all.length; k++) room += 4 * (all[k].space.counts.length + all[k].space.name.length) + 4;
  for (let k = 0; k < spec.args.length; k++) {
    const a = spec.args[k];
    room += 4 * (a.name.length + a.doc.length + a.value.length + a.choices.length) + 4;
  }
  room += 4 * (spec.agentNames.length + spec.keys.length) + 8;
  const head = heap.alloc(room);
  memory.fill(head, 0, room);
  strings = head + values;
  for (let k = 0; k < all.length; k++) strings += 4 * all[k].space.counts.length;
  text = strings + 1;
  let r = head + abi.SPEC_BYTES;
  if (groups) {
    store<u32>(r + abi.GroupDesc_name, put("agents"));
    store<u32>(r + abi.GroupDesc_agents, spec.agents);
    store<u32>(r + abi.GroupDesc_agent_names, put(spec.agentNames));
    r += abi.GROUP_BYTES;
  }
  for (let k = 0; k < all.length; k++, r += abi.TENSOR_BYTES) {
    const t = all[k], s = t.space;
    store<u16>(r + abi.TensorDesc_role, <u16>t.role);
    store<u16>(r + abi.TensorDesc_index, <u16>t.index);
    store<u16>(r + abi.TensorDesc_pair, <u16>t.pair);
    store<u8>(r + abi.TensorDesc_dtype, <u8>s.dtype);
    store<u8>(r + abi.TensorDesc_rank, <u8>s.shape.length);
    store<u32>(r + abi.TensorDesc_flags, t.flags | (s.low == s.high && !s.discrete ? abi.TENSOR_NO_LOW | abi.TENSOR_NO_HIGH : 0));
    for (let d = 0; d < s.shape.length; d++) store<u32>(r + abi.TensorDesc_shape + 4 * d, s.shape[d]);
    store<f32>(r + abi.TensorDesc_low, s.low);
    store<f32>(r + abi.TensorDesc_high, s.high);
    store<u32>(r + abi.TensorDesc_n, s.n);
    store<i32>(r + abi.TensorDesc_start, s.start);
    store<f32>(r + abi.TensorDesc_scale, s.scale);
    store<u32>(r + abi.TensorDesc_path, put(s.name));
    if (s.counts.length) store<u32>(r + abi.TensorDesc_values, <u32>values);
    for (let i = 0; i < s.counts.length; i++, values += 4) store<u32>(head + values, s.counts[i]);
  }
  for (let k = 0; k < spec.args.length; k++, r += abi.ARG_BYTES) {
    const a = spec.args[k];
    store<u32>(r + abi.ArgDesc_name, put(a.name));
    store<u32>(r + abi.ArgDesc_doc, put(a.doc));
    store<u32>(r + abi.ArgDesc_kind, a.kind);
    store<u32>(r + abi.ArgDesc_flags, a.flags);
    store<f64>(r + abi.ArgDesc_min, a.min);
    store<f64>(r + abi.ArgDesc_max, a.max);
    store<u32>(r + abi.ArgDesc_value, put(a.value));
    store<u32>(r + abi.ArgDesc_choices, put(a.choices));
  }
  const cut = spec.name.indexOf("@");
  store<u32>(head + abi.Spec_name, put(cut < 0 ? spec.name : spec.name.substring(0, cut)));
  if (cut >= 0) store<u32>(head + abi.Spec_version, put(spec.name.substring(cut + 1)));
  store<u32>(head + abi.Spec_keys, put(spec.keys));
  store<f32>(head + abi.Spec_dt, spec.dt);
  store<u32>(head + abi.Spec_size, abi.SPEC_BYTES);
  store<u16>(head + abi.Spec_abi_major, abi.ABI_MAJOR);
  store<u16>(head + abi.Spec_abi_minor, abi.ABI_MINOR);
  store<u64>(head + abi.Spec_caps, abi.CAP_STRIDES);
  store<u64>(head + abi.Spec_needs, agents ? abi.FEATURE_AGENTS : 0);
  store<u16>(head + abi.Spec_tensor_bytes, abi.TENSOR_BYTES);
  store<u16>(head + abi.Spec_binding_bytes, abi.BINDING_BYTES);
  store<u16>(head + abi.Spec_group_bytes, abi.GROUP_BYTES);
  store<u16>(head + abi.Spec_arg_bytes, abi.ARG_BYTES);
  store<u32>(head + abi.Spec_tensors, all.length);
  store<u32>(head + abi.Spec_groups, groups);
  store<u32>(head + abi.Spec_args, spec.args.length);
  store<u32>(head + abi.Spec_strings_at, <u32>(strings - head));
  store<u32>(head + abi.Spec_strings_len, <u32>(text - strings));
  store<u32>(head + abi.Spec_max_envs, spec.maxEnvs);
  store<u32>(head + abi.Spec_episode_limit, spec.limit);
  store<u32>(head + abi.Spec_autoreset, abi.AUTORESET_SAME_STEP | (agents ? 0 : abi.AUTORESET_NEXT_STEP | abi.AUTORESET_DISABLED));
  store<u32>(head + abi.Spec_flags, spec.turns || spec.apart ? abi.SPEC_DYNAMIC_AGENTS : 0);
  store<f32>(head + abi.Spec_reward_threshold, <f32>NaN);
  store<u32>(head + abi.Spec_state_version, spec.version);
  store<u32>(head + abi.Spec_render_modes, (spec.text ? abi.RENDER_TEXT : 0) | (spec.pictureWidth ? abi.RENDER_RGB : 0));
  store<u32>(head + abi.Spec_render_width, spec.pictureWidth);
  store<u32>(head + abi.Spec_render_height, spec.pictureHeight);
  store<f32>(head + abi.Spec_render_fps, spec.pictureFps);
  const need = <u32>(text - head);
  if (cap >= need) memory.copy(buf, head, need);
  heap.free(head);
  return need;
}

// ---- life of a batch

export function rl_create(at: u32, len: u32, n: u32, autoreset: u32): i32 {
  const config = read(at, len);
  if (batch.envs.length) return abi.STATUS_STATE;
  if (autoreset != abi.AUTORESET_NEXT_STEP && autoreset != abi.AUTORESET_SAME_STEP && autoreset != abi.AUTORESET_DISABLED) return abi.STATUS_UNSUPPORTED;
  if (!n || (spec.maxEnvs && n > spec.maxEnvs)) return abi.STATUS_ARGUMENT;
  const all = new StaticArray<Env>(n), agents = spec.agents;
  batch.rngs = heap.alloc(8 * n);
  for (let i: u32 = 0; i < n; i++) {
    all[i] = spec.make();
    all[i].setup(config);
    seed(i, i);
  }
  for (let k = 0; k < config.keys.length; k++) if (!config.asked[k]) fail("unknown argument " + config.keys[k]);
  if (error != "") return abi.STATUS_CONFIG;
  batch.envs = all; mode = autoreset; ended = n; bound = false;
  batch.waiting = new StaticArray<u8>(n); batch.waiting.fill(1);
  acts = new StaticArray<u8>(n * agents); over = new StaticArray<u8>(n * agents); kept = new StaticArray<u8>(agents); turn = new StaticArray<u8>(agents);
  let choices = 0;
  for (let j = 0; j < spec.masks.length; j++) choices += spec.masks[j].elems;
  legal = new StaticArray<u8>(agents * choices);
  view.infos = new StaticArray<f32>(spec.infos.length);
  view.out = new StaticArray<Result>(agents);
  for (let k = 0; k < agents; k++) view.out[k] = new Result();
  return 0;
}
function seed(i: u32, s: u64): void { rng(i).state = Rng.mix(s + 0x9E3779B97F4A7C15); }

export function rl_destroy(which: u32): i32 {
  if (which || !batch.envs.length) return abi.STATUS_ARGUMENT;
  batch.envs = [];
  return abi.STATUS_OK;
}

export function rl_bind(which: u32, bindings: u32, n: u32): i32 {
  const all = spec.tensors;
  if (which || !batch.envs.length || n != all.length) return abi.STATUS_ARGUMENT;
  for (let k: u32 = 0; k < n; k++) {
    const from: usize = bindings + k * abi.BINDING_BYTES, t = all[k];
    const needed = t.role == abi.ROLE_FINAL_OBSERVATION ? mode == abi.AUTORESET_SAME_STEP : !(t.flags & abi.TENSOR_OPTIONAL);
    t.ptr = load<u32>(from + abi.Binding_ptr);
    t.strideT = load<u32>(from + abi.Binding_stride_t);
    t.env = load<u32>(from + abi.Binding_stride_env);
    t.agent = load<u32>(from + abi.Binding_stride_agent);
    t.elem = load<u32>(from + abi.Binding_stride_elem);
    if ((t.ptr | t.strideT | t.env | t.agent | t.elem) & (t.bytes - 1) || (needed && !t.ptr)) return abi.STATUS_ARGUMENT;
    t.base = t.ptr;
  }
  bound = true;
  return abi.STATUS_OK;
}

// ---- episodes

function begin(i: u32): void {
  batch.current = i;
  ended -= batch.waiting[i]; batch.waiting[i] = 0;
  if (spec.params) view.params.row(i);
  for (let j = 0; j < spec.seen.length; j++) spec.seen[j].row(i);
  for (let j = 0; j < spec.starts.length; j++) { spec.starts[j].row(i); view.tell(j, 0); }
  batch.envs[i].reset(rng(i), view);
  for (let k = 0; k < spec.agents; k++) over[i * spec.agents + k] = 0;
}

// after writes who acts next and what is legal, at the time that its tensors have.
function after(i: u32): void {
  const agents = spec.agents, now = i * agents;
  if (spec.turns || spec.apart) {
    turn.fill(1);
    if (spec.turns) batch.envs[i].active(turn);
    spec.actives.row(i);
    for (let k = 0; k < agents; k++) {
      acts[now + k] = <u8>(turn[k] && !over[now + k]);
      spec.actives.set<u8>(0, acts[now + k], k);
    }
  }
  if (!spec.masks.length) return;
  if (batch.waiting[i]) legal.fill(1);
  else batch.envs[i].mask(legal);
  const choices = legal.length / agents;
  for (let j = 0, off = 0; j < spec.masks.length; off += spec.masks[j].elems, j++) {
    const mask = spec.masks[j];
    mask.row(i);
    for (let k = 0; k < agents; k++) {
      const idle = (spec.turns || spec.apart) && !acts[now + k];
      for (let e = 0; e < mask.elems; e++) mask.set<u8>(e, idle ? 1 : legal[k * choices + off + e], k);
    }
  }
}
function later(t: u32): void {
  for (let j = 0; j < spec.seen.length; j++) spec.seen[j].time(t);
  for (let j = 0; j < spec.masks.length; j++) spec.masks[j].time(t);
  for (let j = 0; j < spec.starts.length; j++) spec.starts[j].time(t);
  if (spec.turns || spec.apart) spec.actives.time(t);
}

export function rl_reset(which: u32, t: u32, mask: u32, seeds: u32): i32 {
  if (which || !batch.envs.length) return abi.STATUS_ARGUMENT;
  if (!bound) return abi.STATUS_STATE;
  later(t);
  for (let i: u32 = 0, n: u32 = batch.envs.length; i < n; i++) {
    if (mask && !load<u8>(mask + i)) continue;
    if (seeds) seed(i, load<u64>(seeds + 8 * i));
    begin(i);
    after(i);
  }
  return abi.STATUS_OK;
}

function keepLast(i: u32, k: i32): void {
  for (let j = 0; j < spec.finals.length; j++) {
    spec.finals[j].row(i);
    spec.finals[j].copy(spec.seen[j], k);
  }
}
function mislay(text: string): void {
  if (!mislaid) { clear(); fail(text); }
  mislaid = true;
}
function keep(k: i32): void {
  if (!spec.respawn || k < 0 || k >= spec.agents) return mislay("view.last: it is for a step with spec.respawn, and for agents that there are");
  keepLast(batch.current, k);
  kept[k] = 1;
}
// respawned looks at the agents whose episodes have ended: the author has put them back, or ends the environment's own.
function respawned(i: u32): void {
  let ended = 0, given = 0, unkept = false;
  for (let k = 0; k < spec.agents; k++) {
    const o = view.out[k], over = o.terminated || o.truncated;
    spec.terminated.set<u8>(0, <u8>o.terminated, k);
    spec.truncated.set<u8>(0, <u8>(o.truncated && !o.terminated), k);
    ended += <i32>over; given += kept[k];
    if (over && !kept[k]) unkept = true;
  }
  if (!unkept || mislaid) return;
  if (ended < spec.agents || given) return mislay("an agent's episode has ended without its last observation: give it to view.last, then put the agent back");
  for (let k = 0; k < spec.agents; k++) keepLast(i, k);
  begin(i);
}
function run(i: u32): void {
  const agents = spec.agents, out = view.out;
  for (let k = 0; k < agents; k++) { const o = out[k]; o.reward = 0; o.discount = 0; o.terminated = false; o.truncated = false; }
  for (let j = 0; j < spec.acted.length; j++) spec.acted[j].row(i);
  if (batch.waiting[i]) {
    write(i);
    if (mode == abi.AUTORESET_NEXT_STEP) return begin(i);
    for (let j = 0; j < spec.seen.length; j++) {
      const seen = spec.seen[j], to = seen.base + i * seen.env;
      for (let e = 0; e < seen.elems; e++) memory.copy(to + e * seen.elem, to - seen.strideT + e * seen.elem, seen.bytes);
    }
    return;
  }
  batch.current = i;
  for (let j = 0; j < spec.seen.length; j++) spec.seen[j].row(i);
  for (let j = 0; j < spec.infos.length; j++) view.infos[j] = 0;
  if (spec.respawn) kept.fill(0);
  batch.envs[i].step(rng(i), view, out[0]);
  write(i);
  if (spec.respawn) return respawned(i);
  let news = 0, left = 0;
  for (let k = 0; k < (spec.apart ? agents : 1); k++) {
    const was = spec.apart && over[i * agents + k];
    const stop = (out[k].terminated || out[k].truncated) && !was;
    spec.terminated.set<u8>(0, <u8>(stop && out[k].terminated), k);
    spec.truncated.set<u8>(0, <u8>(stop && !out[k].terminated), k);
    if (stop) { over[i * agents + k] = 1; news++; if (spec.apart) keepLast(i, k); }
    if (!stop && !was) left++;
  }
  if (!news || left) return;
  if (mode != abi.AUTORESET_SAME_STEP) { batch.waiting[i] = 1; ended++; return; }
  for (let k = 0; !spec.apart && k < agents; k++) keepLast(i, k);
  begin(i);
}
// end is what run does where the episode of an environment that plain stepped is over.
function end(i: u32): void {
  if (mode != abi.AUTORESET_SAME_STEP) { batch.waiting[i] = 1; ended++; return; }
  keepLast(i, 0);
  begin(i);
}
function write(i: u32): void {
  spec.reward.row(i); spec.terminated.row(i); spec.truncated.row(i);
  for (let k = 0; k < spec.agents; k++) spec.reward.set<f32>(0, view.out[k].reward, k);
  for (let k = 0; k < (spec.apart ? spec.agents : 1); k++) { spec.terminated.set<u8>(0, 0, k); spec.truncated.set<u8>(0, 0, k); }
  if (spec.discounted) { spec.discounts.row(i); spec.discounts.set<f32>(0, view.out[0].discount); }
  for (let j = 0; j < spec.told.length; j++) if (spec.told[j].ptr) { spec.told[j].row(i); spec.told[j].set<f32>(0, batch.waiting[i] ? 0 : view.infos[j]); }
}

function good(a: Tensor, first: u32, count: u32): bool {
  const agents = spec.agents, s = a.space;
  if (!s.discrete) return true;
  if (a.elems == 1 && agents == 1 && s.n && !s.start) {
    let any: u32 = 0, at = a.base + first * a.env;
    for (let left = count, next = a.env; left; left--, at += next) any |= load<u32>(at);
    if (any < <u32>s.n) return true; // no action is larger than all of them put together
  }
  for (let i = first; i < first + count; i++) {
    if (batch.waiting[i]) continue;
    a.row(i);
    for (let k = 0; k < agents; k++) {
      if ((spec.turns || spec.apart) && !acts[i * agents + k]) continue;
      for (let e = 0; e < a.elems; e++) if (<u32>(a.get<i32>(e, k) - s.start) >= <u32>s.count(e)) { batch.current = i; return false; }
    }
  }
  return true;
}

export function rl_step_range(which: u32, t: u32, first: u32, count: u32): i32 {
  const n: u32 = batch.envs.length;
  if (which || !n || first > n || count > n - first) return abi.STATUS_ARGUMENT;
  if (!bound || (ended && mode == abi.AUTORESET_SAME_STEP)) return abi.STATUS_STATE;
  for (let j = 0; j < spec.acted.length; j++) {
    spec.acted[j].time(t);
    if (!good(spec.acted[j], first, count)) { clear(); fail("an action is outside its space"); return abi.STATUS_ACTION; }
  }
  later(t + 1);
  spec.reward.time(t); spec.terminated.time(t); spec.truncated.time(t);
  if (spec.discounted) spec.discounts.time(t);
  for (let j = 0; j < spec.told.length; j++) spec.told[j].time(t);
  const more = spec.masks.length > 0 || spec.turns || spec.apart;
  if (!more && spec.agents == 1 && spec.acted.length == 1 && spec.seen.length == 1 && !spec.told.length && !spec.discounted) {
    spec.many(first, count);
    return abi.STATUS_OK;
  }
  for (let i = first; i < first + count; i++) {
    run(i);
    if (more) after(i);
  }
  if (mislaid) { mislaid = false; return abi.STATUS_INTERNAL; }
  return abi.STATUS_OK;
}
export function rl_step(which: u32, t: u32): i32 { return rl_step_range(which, t, 0, batch.envs.length); }

// ---- the rest: a saved environment has version and length, the author's bytes, flags, random stream and, apart, who has ended

export function rl_save(which: u32, env: u32, buf: u32, cap: u32): i32 {
  if (which || env >= <u32>batch.envs.length) return abi.STATUS_ARGUMENT;
  const own = batch.envs[env].saveBytes(), agents = spec.apart ? spec.agents : 0, need = 8 + own + 12 + agents;
  if (<i32>cap < need) return need;
  store<u32>(buf, spec.version);
  store<u32>(buf, need - 8, 4);
  batch.envs[env].save(buf + 8);
  const tail = buf + 8 + own;
  store<u32>(tail, batch.waiting[env]);
  store<u64>(tail, rng(env).state, 4);
  for (let k = 0; k < agents; k++) store<u8>(tail + 12 + k, over[env * agents + k]);
  return need;
}
export function rl_load(which: u32, env: u32, buf: u32, len: u32): i32 {
  if (which || env >= <u32>batch.envs.length || len < 8) return abi.STATUS_ARGUMENT;
  if (load<u32>(buf) != spec.version) return abi.STATUS_VERSION;
  const own = batch.envs[env].saveBytes(), agents = spec.apart ? spec.agents : 0, tail = buf + 8 + own;
  if (len != 8 + own + 12 + agents || load<u32>(buf, 4) != len - 8 || load<u32>(tail) > 1 || !batch.envs[env].load(buf + 8)) return abi.STATUS_ARGUMENT;
  ended += load<u8>(tail) - batch.waiting[env];
  batch.waiting[env] = load<u8>(tail);
  rng(env).state = load<u64>(tail, 4);
  for (let k = 0; k < agents; k++) over[env * agents + k] = load<u8>(tail + 12 + k);
  if (spec.turns || spec.apart) {
    turn.fill(1);
    if (spec.turns) batch.envs[env].active(turn);
    for (let k = 0; k < spec.agents; k++) acts[env * spec.agents + k] = <u8>(turn[k] && !over[env * spec.agents + k]);
  }
  return abi.STATUS_OK;
}
function tell(s: string, buf: u32, cap: u32): i32 {
  const n = String.UTF8.byteLength(s);
  if (<i32>cap >= n) String.UTF8.encodeUnsafe(changetype<usize>(s), s.length, buf);
  return n;
}
const canvas = new Picture(0, 0, 0); // one for all: nothing is freed
export function rl_render(which: u32, env: u32, mode: u32, buf: u32, cap: u32): i32 {
  if (which || env >= <u32>batch.envs.length) return abi.STATUS_ARGUMENT;
  if (mode == 1 && spec.pictureWidth) { // the number of the bit RENDER_RGB
    const need = 3 * spec.pictureWidth * spec.pictureHeight;
    if (<i32>cap >= need) {
      memory.fill(buf, 0, need);
      canvas.rgb = buf; canvas.width = spec.pictureWidth; canvas.height = spec.pictureHeight;
      batch.envs[env].draw(canvas);
    }
    return need;
  }
  const s = mode ? "" : batch.envs[env].render();
  return s == "" ? abi.STATUS_UNSUPPORTED : tell(s, buf, cap);
}
export function rl_last_error(buf: u32, cap: u32): i32 { return tell(error, buf, cap); }
export function rl_current_env(): i32 { return batch.current; }
