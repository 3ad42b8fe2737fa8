// Hand-written. Environments in AssemblyScript: a class, and a line that describes it; see docs/reference/sdk-assemblyscript.md.
import * as abi from "./abi";

export let error: string = ""; // what the host shows

export const U8 = abi.U8, I8 = abi.I8, I16 = abi.I16, I32 = abi.I32, I64 = abi.I64, F32 = abi.F32;
export const INTEGER = abi.ARG_INTEGER, NUMBER = abi.ARG_NUMBER, BOOL = abi.ARG_BOOL, TEXT = abi.ARG_TEXT, CHOICE = abi.ARG_CHOICE;
export const LAST = 0, SUM = abi.TENSOR_SUM, MEAN = abi.TENSOR_MEAN, MAX = abi.TENSOR_MAX, MIN = abi.TENSOR_MIN;

// Space is the elements of an observation or action.
export class Space {
  name: string = "";
  low: f32 = 0;
  high: f32 = 0; // equal to low: unbounded
  n: i32 = 0; // values of a discrete space, or of each element
  start: i32 = 0;
  counts: i32[] = []; // values of each element, where they differ
  flags: u32 = 0;
  scale: f32 = 0;
  constructor(public dtype: u32, public shape: i32[]) {}
  from(first: i32): Space { this.start = first; return this; }
  scaled(factor: f32): Space { this.scale = factor; return this; }
  get elems(): i32 { let n = 1; for (let i = 0; i < this.shape.length; i++) n *= this.shape[i]; return n; }
  get bytes(): u32 { return this.dtype == U8 || this.dtype == I8 ? 1 : this.dtype == I16 ? 2 : this.dtype == I64 ? 8 : 4; }
  get discrete(): bool { return this.n > 0 || this.counts.length > 0; }
  count(i: i32): i32 { return this.counts.length ? this.counts[i] : this.n; }
  get choices(): i32 { let n = 0; for (let i = 0; i < this.elems; i++) n += this.count(i); return n; }
}
// box is a tensor from low to high, discrete one I32 of 0 to n-1, multiDiscrete several, multiBinary n of 0 or 1, image a picture of U8.
export function box(dtype: u32, low: f32, high: f32, shape: i32[]): Space { const s = new Space(dtype, shape); s.low = low; s.high = high; return s; }
export function discrete(n: i32): Space { const s = new Space(I32, []); s.n = n; return s; }
export function multiDiscrete(counts: i32[]): Space { const s = new Space(I32, [counts.length]); s.counts = counts; return s; }
export function multiBinary(n: i32): Space { const s = new Space(I32, [n]); s.n = 2; s.flags = abi.TENSOR_BINARY; return s; }
export function image(height: i32, width: i32, channels: i32): Space {
  const s = box(U8, 0, 255, [height, width, channels]); s.flags = abi.TENSOR_IMAGE_HWC; s.scale = 1.0 / 255.0; return s;
}

// Tensor is an observation, or an action, of the environment that is reset or stepped: element i, of agent k.
@final export class Tensor {
  index: i32 = 0;
  pair: i32 = 0;
  elems: i32;
  bytes: u32;
  ptr: usize = 0;
  strideT: u32 = 0;
  env: u32 = 0;
  agent: u32 = 0;
  elem: u32 = 0;
  base: usize = 0; // at a time
  at: usize = 0; // of an environment
  constructor(public role: i32, public flags: u32, public space: Space) { this.elems = space.elems; this.bytes = space.bytes; }
  // Zero times a stride is written out: the compiler would load the stride.
  @inline place(i: i32, k: i32): usize { return this.at + (k == 0 ? 0 : k * this.agent) + (i == 0 ? 0 : i * this.elem); }
  @inline get<T>(i: i32 = 0, k: i32 = 0): T { return load<T>(this.place(i, k)); }
  @inline set<T>(i: i32, value: T, k: i32 = 0): void { store<T>(this.place(i, k), value); }
  @inline time(t: u32): void { this.base = this.ptr + t * this.strideT; }
  @inline row(i: u32): void { this.at = this.base + i * this.env; }
  copy(from: Tensor, k: i32): void { this.copyFrom(from.at + k * from.agent, from.elem, k); }
  // copyFrom copies elements that lie so far apart. A short memory.copy costs more than many words.
  copyFrom(from: usize, next: u32, k: i32): void {
    let to = this.at + k * this.agent;
    const whole = this.elem == this.bytes && next == this.bytes;
    if (whole && this.elems * this.bytes >= 128) { memory.copy(to, from, this.elems * this.bytes); return; }
    for (let i = this.elems; i; i--, to += this.elem, from += next) {
      if (this.bytes == 4) store<u32>(to, load<u32>(from));
      else if (this.bytes == 1) store<u8>(to, load<u8>(from));
      else if (this.bytes == 2) store<u16>(to, load<u16>(from));
      else store<u64>(to, load<u64>(from));
    }
  }
}

// Rng is the random stream of one environment (splitmix64), the same in every SDK.
@unmanaged export class Rng {
  state: u64;
  @inline static mix(x: u64): u64 {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9; x = (x ^ (x >> 27)) * 0x94D049BB133111EB; return x ^ (x >> 31);
  }
  @inline next(): u64 { this.state += 0x9E3779B97F4A7C15; return Rng.mix(this.state); }
  @inline uniform(low: f32, high: f32): f32 { return low + (high - low) * (<f32>(<i32>(this.next() >> 40)) * <f32>5.9604644775390625e-8); }
  @inline below(n: u32): u32 { return <u32>(((this.next() >> 32) * n) >> 32); }
}

// Result is what a step says besides its observation; it starts as zero. If both flags are set, terminated wins.
@final export class Result { reward: f32 = 0; terminated: bool = false; truncated: bool = false; discount: f32 = 0; }

// View is what reset and step read and write: action and obs are the first ones, others are found by name.
@final export class View {
  obs: Tensor = none; action: Tensor = none;
  out: StaticArray<Result> = []; // of each agent
  infos: StaticArray<f32> = [];
  params: Tensor = none;
  seen(name: string): Tensor { return named(spec.seen, name); }
  acted(name: string): Tensor { return named(spec.acted, name); }
  // last, in a step with spec.respawn: what agent k observes is its last observation. Its new life is written over it.
  last(k: i32): void { batch.keep(k); }
  // tell, in reset: number k of spec.resetInfo of the episode that begins; one that is not told is 0.
  tell(k: i32, value: f32): void { if (spec.starts[k].ptr) spec.starts[k].set<f32>(0, value); }
  param(k: i32): f32 { return this.params.ptr ? this.params.get<f32>(k) : <f32>NaN; }
}
function named(all: Tensor[], name: string): Tensor {
  for (let j = 0; j < all.length; j++) if (all[j].space.name == name) return all[j];
  throw new Error("no tensor has the name " + name);
}

// Config is the pipeline's args.
export class Config {
  keys: string[] = []; values: string[] = []; asked: bool[] = [];
  constructor(text: string) {
    const lines = text.split("\n");
    for (let i = 0; i < lines.length; i++) {
      const at = lines[i].indexOf("=");
      if (at > 0) { this.keys.push(lines[i].substring(0, at)); this.values.push(lines[i].substring(at + 1)); this.asked.push(false); }
    }
  }
  has(key: string): bool { return this.keys.includes(key); }
  text(key: string, fallback: string): string {
    const at = this.keys.indexOf(key);
    if (at < 0) return fallback;
    this.asked[at] = true;
    return this.values[at];
  }
  integer(key: string, fallback: i64): i64 {
    const s = this.text(key, fallback.toString());
    const from = s.startsWith("-") ? 1 : 0, digits = s.length - from;
    let good = digits > 0 && digits < 19, n: i64 = 0;
    for (let i = from; i < s.length; i++) {
      good = good && s.charCodeAt(i) >= 48 && s.charCodeAt(i) <= 57;
      n = 10 * n + s.charCodeAt(i) - 48;
    }
    if (good) return from ? -n : n;
    fail("argument " + key + ": want a whole number");
    return fallback;
  }
  number(key: string, fallback: f64): f64 {
    if (!this.has(key)) return fallback;
    const x = parseFloat(this.text(key, ""));
    if (isNaN(x)) fail("argument " + key + ": want a number");
    return x;
  }
  bool(key: string, fallback: bool): bool {
    const s = this.text(key, fallback ? "true" : "false");
    if (s != "true" && s != "false") fail("argument " + key + ": want true or false");
    return s == "true";
  }
}

// Picture is what an environment draws on: height rows of width pixels of three bytes, black at first. Places are in pixels from the upper left
// corner, with fractions; colours are 0xRRGGBB. What lies outside is cut off.
@final export class Picture {
  constructor(public rgb: usize, public width: i32, public height: i32) {}
  private pixel(at: f32, most: i32): i32 { return !(at > 0) ? 0 : at >= <f32>most ? most : <i32>(at + 0.5); }
  private span(row: i32, left: f32, right: f32, colour: u32): void {
    for (let k = this.pixel(left, this.width), end = this.pixel(right, this.width); k < end; k++) {
      const at = this.rgb + 3 * (row * this.width + k);
      store<u8>(at, colour >> 16); store<u8>(at, colour >> 8, 1); store<u8>(at, colour, 2);
    }
  }
  rect(x: f32, y: f32, width: f32, height: f32, colour: u32): void {
    for (let row = this.pixel(y, this.height), end = this.pixel(y + height, this.height); row < end; row++) this.span(row, x, x + width, colour);
  }
  disc(x: f32, y: f32, radius: f32, colour: u32): void {
    for (let row = this.pixel(y - radius, this.height), end = this.pixel(y + radius, this.height); row < end; row++) {
      const off = <f32>row + 0.5 - y, square = radius * radius - off * off;
      if (square > 0) this.span(row, x - sqrt<f32>(square), x + sqrt<f32>(square), colour);
    }
  }
}

// Env is one environment. A step that throws stops the run with the text, the file and the line.
export abstract class Env {
  setup(config: Config): void {} // read arguments; fail refuses them
  abstract reset(rng: Rng, view: View): void; // write the first observation
  abstract step(rng: Rng, view: View, out: Result): void; // out is the first agent's, view.out has one of each
  mask(legal: StaticArray<u8>): void {} // with spec.masked: 1 for each legal action, 0 for others, all agents one behind the other
  active(acts: StaticArray<u8>): void {} // with spec.turns: 0 for each agent that does not act in the next step
  render(): string { return ""; } // with spec.text
  draw(picture: Picture): void {} // with spec.picture; changes no state
  // Its bytes are saved, so that it holds no references; one that does, or skips fields, says how many bytes, and writes and reads them.
  saveBytes(): i32 { return spec.bytes; }
  save(to: usize): void { memory.copy(to, changetype<usize>(this), spec.bytes); }
  load(from: usize): bool { memory.copy(changetype<usize>(this), from, spec.bytes); return true; }
}

class Arg { constructor(public name: string, public kind: u32, public value: string, public doc: string, public min: f64, public max: f64, public choices: string, public flags: u32) {} }

// Spec describes the environment.
export class Spec {
  agents: i32 = 1;
  apart: bool = false; // each agent's episode ends by its own result, the environment's with the last
  respawn: bool = false; // each agent's episode ends by its own result, and the next begins at once, see View.last
  agentNames: string = ""; // one for each agent, one a line
  dt: f32 = 0; // seconds of simulated time in a step
  turns: bool = false; // not all agents act, see Env.active
  masked: bool = false; // see Env.mask
  discounted: bool = false; // Result.discount takes the place of the learner's gamma
  params: i32 = 0; // reset parameters, see View.param
  limit: u32 = 0; // steps after which the environment itself truncates
  maxEnvs: u32 = 0;
  version: u32 = 0; // of what save writes
  text: bool = false; // Env.render shows text
  pictureWidth: i32 = 0; pictureHeight: i32 = 0; // of what Env.draw draws, 0: nothing
  pictureFps: f32 = 0; // pictures a second at normal speed, 0: not said
  keys: string = ""; // actions of the keys of a person who plays, one a line: "left=0\nright=1"
  many: (first: u32, count: u32) => void = (first: u32, count: u32) => {}; // the library's: steps a class of environments, see plain
  describe: (config: Config, spec: Spec) => void = (config: Config, spec: Spec) => {}; // what depends on arguments
  observations: Space[] = []; actions: Space[] = []; infos: string[] = []; resetInfos: string[] = []; gathers: u32[] = []; args: Arg[] = [];
  tensors: Tensor[] = []; seen: Tensor[] = []; acted: Tensor[] = []; finals: Tensor[] = []; masks: Tensor[] = []; told: Tensor[] = []; starts: Tensor[] = [];
  reward: Tensor = none; terminated: Tensor = none; truncated: Tensor = none; actives: Tensor = none; discounts: Tensor = none;
  constructor(public name: string, public bytes: i32, public make: () => Env) {}
  see(space: Space, name: string = ""): Spec { space.name = name; this.observations.push(space); return this; }
  act(space: Space, name: string = ""): Spec { space.name = name; this.actions.push(space); return this; }
  picture(width: i32, height: i32, fps: f32 = 0): Spec { this.pictureWidth = width; this.pictureHeight = height; this.pictureFps = fps; return this; }
  info(name: string, gather: u32 = LAST): Spec { this.infos.push(name); this.gathers.push(gather); return this; }
  resetInfo(name: string): Spec { this.resetInfos.push(name); return this; }
  arg(name: string, kind: u32, value: string, doc: string = "", min: f64 = 0, max: f64 = 0, choices: string = "", affectsSpaces: bool = false): Spec {
    this.args.push(new Arg(name, kind, value, doc, min, max, choices, affectsSpaces ? abi.ARG_AFFECTS_SPACES : 0)); return this;
  }
  private add(role: i32, flags: u32, space: Space, shared: bool = false): Tensor {
    const t = new Tensor(role, flags | space.flags | ((this.agents > 1 || this.turns || this.apart) && !shared ? abi.TENSOR_PER_AGENT : 0), space);
    for (let k = 0; k < this.tensors.length; k++) t.index += <i32>(this.tensors[k].role == role);
    this.tensors.push(t);
    return t;
  }
  private addAction(j: i32): void { this.acted.push(this.add(abi.ROLE_ACTION, abi.TENSOR_AT_T, this.actions[j])); }
  private addMask(j: i32): void {
    if (!this.masked || !this.actions[j].discrete) return;
    const mask = box(U8, 0, 1, [this.actions[j].choices]); mask.name = this.actions[j].name;
    const t = this.add(abi.ROLE_ACTION_MASK, abi.TENSOR_AT_T1, mask); t.pair = j;
    this.masks.push(t);
  }
  // list makes the tensors of the description.
  list(): void {
    const number = new Space(F32, []), unit = box(F32, 0, 1, []), flag = box(U8, 0, 1, []);
    this.tensors = []; this.seen = []; this.acted = []; this.finals = []; this.masks = []; this.told = []; this.starts = [];
    if (this.observations.length == 0 || this.actions.length == 0) return fail("an environment needs an observation and an action");
    if (this.respawn && this.agents < 2) return fail("respawn is for several agents: of one, the environment's own episode ends");
    if (this.respawn && this.apart) return fail("apart and respawn exclude each other: an agent whose episode has ended is out, or back at once");
    this.addAction(0);
    this.seen.push(this.add(abi.ROLE_OBSERVATION, abi.TENSOR_AT_T1, this.observations[0]));
    this.reward = this.add(abi.ROLE_REWARD, abi.TENSOR_AT_T, number);
    this.terminated = this.add(abi.ROLE_TERMINATED, abi.TENSOR_AT_T, flag, !this.apart && !this.respawn);
    this.truncated = this.add(abi.ROLE_TRUNCATED, abi.TENSOR_AT_T, flag, !this.apart && !this.respawn);
    this.finals.push(this.add(abi.ROLE_FINAL_OBSERVATION, abi.TENSOR_NO_TIME, this.observations[0]));
    this.addMask(0);
    if (this.discounted) this.discounts = this.add(abi.ROLE_DISCOUNT, abi.TENSOR_AT_T, unit);
    if (this.turns || this.apart) this.actives = this.add(abi.ROLE_ACTIVE, abi.TENSOR_AT_T1, flag);
    for (let j = 0; j < this.infos.length; j++) {
      const s = new Space(F32, []); s.name = this.infos[j];
      this.told.push(this.add(abi.ROLE_INFO, abi.TENSOR_AT_T | abi.TENSOR_OPTIONAL | this.gathers[j], s, true));
    }
    for (let j = 1; j < this.observations.length; j++) {
      this.seen.push(this.add(abi.ROLE_OBSERVATION, abi.TENSOR_AT_T1, this.observations[j]));
      this.finals.push(this.add(abi.ROLE_FINAL_OBSERVATION, abi.TENSOR_NO_TIME, this.observations[j]));
      this.finals[j].pair = j;
    }
    for (let j = 1; j < this.actions.length; j++) this.addAction(j);
    for (let j = 1; j < this.actions.length; j++) this.addMask(j);
    if (this.params) view.params = this.add(abi.ROLE_RESET_PARAM, abi.TENSOR_NO_TIME | abi.TENSOR_OPTIONAL, new Space(F32, [this.params]), true);
    for (let j = 0; j < this.resetInfos.length; j++) {
      const s = new Space(F32, []); s.name = this.resetInfos[j];
      this.starts.push(this.add(abi.ROLE_RESET_INFO, abi.TENSOR_AT_T1 | abi.TENSOR_OPTIONAL, s, true));
    }
    view.obs = this.seen[0]; view.action = this.acted[0];
  }
}

const none = new Tensor(0, 0, new Space(F32, []));
export const view = new View();
export let spec: Spec = new Spec("", 0, (): Env => { throw new Error("no environment"); });

// What exports.ts knows of the batch, and what it does for one environment.
export class Batch {
  envs: StaticArray<Env> = []; waiting: StaticArray<u8> = []; rngs: usize = 0; current: u32 = 0;
  run: (i: u32) => void = (i: u32) => {}; // steps one in any way
  end: (i: u32) => void = (i: u32) => {}; // its episode is over
  keep: (k: i32) => void = (k: i32) => {}; // what agent k observes is its last observation
}
export const batch = new Batch();

// plain steps many environments of one agent, one observation and one action, with nothing else. It is made for a class, so that its step
// is no virtual call.
function plain<T extends Env>(first: u32, count: u32): void {
  const all = batch.envs, action = view.action, obs = view.obs, out = unchecked(view.out[0]), idle = batch.waiting;
  let move = action.base + first * action.env, seen = obs.base + first * obs.env, reward = spec.reward.base + first * spec.reward.env;
  let terminated = spec.terminated.base + first * spec.terminated.env, truncated = spec.truncated.base + first * spec.truncated.env;
  let rng = batch.rngs + 8 * first;
  const a = action.env, o = obs.env, r = spec.reward.env, e = spec.terminated.env, l = spec.truncated.env;
  for (let i = first, end = first + count; i < end; i++, move += a, seen += o, reward += r, terminated += e, truncated += l, rng += 8) {
    if (unchecked(idle[i])) { batch.run(i); continue; }
    batch.current = i; action.at = move; obs.at = seen;
    out.reward = 0; out.terminated = false; out.truncated = false;
    changetype<T>(unchecked(all[i])).step(changetype<Rng>(rng), view, out);
    const stop = out.terminated, late = out.truncated && !stop;
    store<f32>(reward, out.reward); store<u8>(terminated, <u8>stop); store<u8>(truncated, <u8>late);
    if (stop || late) batch.end(i);
  }
}

// environment makes T the module's environment.
export function environment<T extends Env>(name: string): Spec {
  spec = new Spec(name, <i32>offsetof<T>(), (): Env => instantiate<T>());
  spec.many = (first: u32, count: u32): void => { plain<T>(first, count); };
  return spec;
}
// fail refuses arguments: rlhost shows the text.
export function fail(text: string): void { if (error == "") error = text; }
export function clear(): void { error = ""; }
// log sends a line to the host's log; the pipeline must grant "log".
export function log(level: i32, text: string): void {
  const utf8 = String.UTF8.encode(text);
  abi.log(level, changetype<i32>(utf8), utf8.byteLength);
}
// rlAbort is for asc: --use abort=~lib/rlhost-env/index/rlAbort. What is thrown reaches the host with its file and line.
export function rlAbort(message: string | null, file: string | null, line: u32, column: u32): void {
  error = (file ? file : "") + ":" + line.toString() + ":" + column.toString() + ": " + (message ? message : "aborted");
  unreachable();
}
