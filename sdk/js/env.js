// A host of the environment ABI in JavaScript, for pages and for Node, written from docs/reference/env-abi.md alone.
import { ABI, EXPORTS, IMPORTS, RECORDS, STATUS } from "./abi.js";
import { Fault, inspect, must, Refused, TooOld } from "./module.js";
import { ARRAYS, FEATURES, IMAGE, MAX_BYTES, MAX_ELEMS, MAX_TENSORS, Spec } from "./spec.js";

const WASI = "wasi_snapshot_preview1", MEMORY = 1 << 28, BADF = 8, NOSYS = 52;
const CAPABILITIES = { log: "log", log_enabled: "log", metric_env: "metric", clock_ns: "clock" };
const text = (bytes) => new TextDecoder().decode(bytes);

/** A stream of 64-bit numbers, splitmix64. */
function* random(seed) {
  for (let x = BigInt(seed); ;) {
    x = BigInt.asUintN(64, x + 0x9e3779b97f4a7c15n);
    let z = BigInt.asUintN(64, (x ^ x >> 30n) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ z >> 27n) * 0x94d049bb133111ebn);
    yield z ^ z >> 31n;
  }
}

/** An instance of a module: imports, calls, memory. A guest that never returns is not stopped. */
class Guest {
  constructor(bytes, grants) {
    Object.assign(this, { granted: grants, logged: [] });
    try {
      this.module = new WebAssembly.Module(bytes);
    } catch (e) { throw new Refused(`not a module that runs here: ${e.message}`); }
    const { imports, exports } = this.types = inspect(bytes);
    lookAtMarkers([...exports.keys()]);
    must(!exports.has("_start"), "a module with _start is a command");
    must(exports.get("memory")?.kind === "memory", "the module exports no memory");
    must(!imports.some((i) => i.kind === "memory"), "the module imports its memory");
    for (const [name, [want, required]] of Object.entries(EXPORTS)) {
      const have = exports.get(name);
      must(have || !required, `the module does not export ${name}`);
      must(!have || have.kind === "function", `the module exports ${name}, which is no function`);
      must(!have || have.signature === want, `the module exports ${name} as ${have?.signature}, want ${want}`);
    }
  }

  has(name) { return this.types.exports.has(name); }

  /** A fresh instance: imports, _initialize, rl_host. */
  instantiate() {
    Object.assign(this, { clock: 0n, given: [], random: random(7) });
    const imports = {};
    for (const i of this.types.imports) (imports[i.module] ??= {})[i.name] = this.imported(i);
    try {
      this.exports = new WebAssembly.Instance(this.module, imports).exports;
    } catch (e) { throw new Fault(`the module does not start: ${e.message}`); }
    if (this.has("_initialize")) this.call("_initialize");
    if (!this.has("rl_host")) return;
    const { size, fields } = RECORDS.HostDesc, host = new DataView(new ArrayBuffer(size));
    for (const [name, value] of [["size", host.byteLength], ["max_tensors", MAX_TENSORS], ["max_elems", MAX_ELEMS], ["max_block_bytes", MEMORY], ["features", FEATURES]]) host.setUint32(fields[name][0], value, true);
    host.setUint16(fields.abi_major[0], 1, true);
    this.status("rl_host", this.put(new Uint8Array(host.buffer)), host.byteLength);
  }

  imported(i) {
    const name = `the import ${i.module}.${i.name}`;
    must(i.kind === "function", `${name} is not a function`);
    if (i.module === WASI) return this.wasi(i.name);
    must(i.module === "rl" || i.module === "rl_optional", `${name} does not exist`);
    const known = IMPORTS[i.name], granted = known && this.granted.includes(CAPABILITIES[i.name]);
    must(!known || known === i.signature, `${name} has the parameters and results ${i.signature}`);
    const [parameters, results] = i.signature.split(" -> ").map((types) => types.split(" ").filter(Boolean));
    must(known || [parameters, results].every((types) => types.length <= 16 && types.every((t) => /^[if](32|64)$/.test(t))), `${name} has more than 16 parameters or results, or others than numbers`);
    must(i.module !== "rl" || known, `${name} does not exist`);
    must(i.module !== "rl" || granted, `${name} is not granted`);
    if (granted) return (...args) => this["on_" + i.name](...args);
    const none = results.map((type) => type === "i64" ? 0n : type === "i32" && i.name !== "log_enabled" ? ABI.STATUS_UNSUPPORTED : 0);
    return () => none.length > 1 ? none : none[0];
  }

  /** WASI without files, arguments, network and time, but for a clock that goes on when it is read. */
  wasi(name) {
    const sizes = (count, bytes) => { this.write(count, new Uint8Array(4)); this.write(bytes, new Uint8Array(4)); return 0; };
    const known = {
      random_get: (at, n) => this.write(at, this.draw(n >>> 0)),
      clock_time_get: (_id, _precision, at) => this.write(at, new Uint8Array(new BigUint64Array([++this.clock]).buffer)),
      environ_sizes_get: sizes, args_sizes_get: sizes, environ_get: () => 0, args_get: () => 0, sched_yield: () => 0,
      proc_exit: (code) => { throw new Error(`the guest exits with ${code}`); },
    };
    return known[name] ?? (/^(fd|path)_/.test(name) ? () => BADF : () => NOSYS);
  }

  draw(n) {
    const stream = this.stream(), words = BigUint64Array.from({ length: Math.ceil(n / 8) }, () => stream.next().value);
    return new Uint8Array(words.buffer, 0, n);
  }

  on_log(level, at, n) {
    const said = this.peek(at, n);
    if (said && this.logged.length < 1000) this.logged.push([level, text(said.subarray(0, 4096))]);
  }

  on_log_enabled(level) { return Number(level >= 1); }

  /** Calls a function; a trap is a fault that names the environment and the agent. */
  call(name, ...args) {
    this.working = name;
    try {
      return this.exports[name](...args);
    } catch (e) {
      const whom = ["env", "agent"].filter((who) => this.has("rl_current_" + who)).map((who) => `, ${who} ${this.exports["rl_current_" + who]()}`);
      throw new Fault(`trap in ${name}${whom.join("")}: ${e.message}${this.lastError()}`);
    }
  }

  lastError() {
    try {
      const n = this.has("rl_last_error") ? this.exports.rl_last_error(0, 0) : 0, at = n > 0 ? this.alloc(n) : 0;
      return n > 0 ? ": " + text(this.read(at, this.exports.rl_last_error(at, n))) : "";
    } catch { return ""; }
  }

  /** Calls a function whose negative results are errors. */
  answer(name, ...args) {
    const r = this.call(name, ...args);
    if (r < 0) throw new Fault(`${name}: ${STATUS[r] ?? "status " + r}${this.lastError()}`, r);
    return r;
  }

  status(name, ...args) {
    const r = this.answer(name, ...args);
    if (r) throw new Fault(`${name} returns ${r}, where a status is 0 or negative`);
  }

  /** Calls a function that returns a needed length, twice. */
  needed(name, most, what, ...args) {
    const n = this.answer(name, ...args, 0, 0);
    if (n > most) throw new Fault(`${name} needs ${n} bytes for ${what}, want at most ${most}`);
    const at = this.alloc(n), again = this.answer(name, ...args, at, n);
    if (again !== n) throw new Fault(`${name} needs ${n} bytes for ${what}, then ${again}`);
    const bytes = this.read(at, n);
    this.free(at, n);
    return bytes;
  }

  alloc(n, align = 8) {
    n = Math.max(n, 1);
    const at = this.exports.rl_alloc(n, align) >>> 0, size = this.exports.memory.buffer.byteLength;
    if (size > MEMORY) throw new Fault(`the guest has ${size} bytes of memory, want at most ${MEMORY}`);
    if (at === 0 || at % align || at + n > size) throw new Fault(`rl_alloc(${n}, ${align}) returns ${at}, which is 0, not aligned, or outside of the memory`);
    if (this.given.some(([begin, end]) => at < end && begin < at + n)) throw new Fault(`rl_alloc(${n}, ${align}) returns ${at}, which overlaps what it has given`);
    this.given.push([at, at + n]);
    return at;
  }

  free(at, n) {
    this.given = this.given.filter(([begin]) => begin !== at);
    this.call("rl_free", at, Math.max(n, 1));
  }

  peek(at, n) {
    const memory = this.exports.memory.buffer;
    return (at >>> 0) + (n >>> 0) <= memory.byteLength ? new Uint8Array(memory, at >>> 0, n >>> 0).slice() : null;
  }

  read(at, n) {
    return this.peek(at, n) ?? (() => { throw new Fault(`${n} bytes at ${at} are outside of the memory`); })();
  }

  write(at, bytes) {
    new Uint8Array(this.exports.memory.buffer).set(bytes, at >>> 0);
    return 0;
  }

  put(bytes) {
    const at = this.alloc(bytes.length);
    this.write(at, bytes);
    return at;
  }

  /** Calls f with the place of bytes in the guest's memory, which lie there so long. */
  lend(bytes, f) {
    const at = bytes ? this.put(bytes) : 0;
    try { return f(at); } finally { if (bytes) this.free(at, bytes.length); }
  }
}

function lookAtMarkers(names) {
  const of = (kind) => names.filter((n) => new RegExp(`^rl_${kind}_v\\d+$`).test(n)).map((n) => Number(n.split("_v")[1]));
  must(!of("env").length || !of("component").length, "the module has the marker of an environment and that of a component");
  if (of("env").includes(1)) return;
  const later = Math.max(0, ...of("env"));
  if (later > 1) throw new TooOld(`the guest needs ABI ${later}`);
  must(!names.some((n) => /^rl_abi_v1(rc)?$/.test(n)), "the guest was built for a candidate of the ABI: build it again");
  throw new Refused("the module does not export rl_env_v1");
}

/**
 * A batch of environments of a module, in one instance. Options: args, texts by name; grants, capabilities; envs, how many;
 * mode, one of ABI.AUTORESET_*, or several, of which the first one that is offered counts; steps, of a block; params, reset parameters by path: a number for each element.
 */
export class Env extends Guest {
  constructor(bytes, { args = {}, grants = [], envs = 1, mode = ABI.AUTORESET_SAME_STEP, steps = 4, params = {} } = {}) {
    super(bytes, grants);
    Object.assign(this, { n: envs, mode, steps, params, metrics: new Map(), streams: new Map() });
    must(this.has("rl_save") === this.has("rl_load"), "rl_save and rl_load are exported both or not at all");
    try {
      this.spec = this.describe({});
      if (Object.keys(args).length) { // their types say how they are written
        this.spec = this.describe(Object.fromEntries(Object.entries(args).map(([k, v]) => [k, this.spec.written(k, String(v))])));
      }
    } catch (e) { throw e instanceof Fault ? new Refused(e.message) : e; }
    this.create();
  }

  /** The random stream of the environment that is worked on, or else that of the instance. */
  stream() {
    const asks = ["rl_reset", "rl_step", "rl_step_range"].includes(this.working) && this.has("rl_current_env");
    return this.streams.get(asks ? this.exports.rl_current_env() : -1) ?? this.random;
  }

  on_clock_ns() { return this.clock; }

  on_metric_env(env, at, n, value, gather) {
    const known = [0, ABI.TENSOR_SUM, ABI.TENSOR_MEAN, ABI.TENSOR_MAX, ABI.TENSOR_MIN].includes(gather);
    const name = n > 0 && n <= 128 && env >= 0 && env < this.n && known && this.peek(at, n);
    const key = name && text(name);
    if (!name || !this.metrics.has(key) && this.metrics.size >= 256) return;
    if (!this.metrics.has(key)) this.metrics.set(key, new Map());
    this.metrics.get(key).set(env, [value, gather]);
  }

  describe(config) {
    this.instantiate();
    const order = (key) => [...key].map((c) => String.fromCharCode(c.codePointAt(0) >> 16, c.codePointAt(0) & 65535)).join(""); // that of UTF-8's bytes
    const keys = Object.keys(config).sort((a, b) => order(a) < order(b) ? -1 : 1);
    const lines = new TextEncoder().encode(keys.map((k) => `${k}=${config[k]}\n`).join(""));
    this.config = [this.put(lines), lines.length];
    return new Spec(this.needed("rl_describe", MAX_BYTES, "its description", ...this.config));
  }

  create() {
    const { h, groups } = this.spec;
    this.mode = [this.mode].flat().find((m) => h.autoreset & m) ?? this.mode;
    if (h.max_envs && this.n > h.max_envs || !(h.autoreset & this.mode)) throw new Fault(`${this.n} environments in the mode ${this.mode}, want at most ${h.max_envs} in one of ${h.autoreset}`);
    this.batch = this.answer("rl_create", ...this.config, this.n, this.mode);
    this.blocks = [this.block(), this.block()];
    this.now = this.t = 0;
    this.running = groups.map((g) => Array.from({ length: this.n }, () => Array(g.agents).fill(false)));
    this.bind();
  }

  /** Memory for each tensor: where, the strides of time, environment, agent and element, and how many rows. */
  block() {
    const strides = this.spec.h.caps & BigInt(ABI.CAP_STRIDES);
    return this.spec.tensors.map((t) => {
      if (!t.bound) return { at: 0, time: 0, env: 0, agent: 0, elem: 0, rows: 0 };
      const { d, size, elems, agents } = t, timeless = d.flags & ABI.TENSOR_NO_TIME, rows = timeless ? 1 : this.steps + (d.flags & ABI.TENSOR_AT_T1 ? 1 : 0);
      if (!t.role) return { at: this.alloc(size * elems, 64), time: 0, env: 0, agent: 0, elem: size, rows }; // nothing reads it: all rows are one
      const soa = strides && !(d.flags & IMAGE) && !(d.dtype === ABI.U8 && d.rank === 3);
      const [agent, env, elem] = soa ? [size, size * agents, size * agents * this.n] : [size * elems, size * (elems * agents + 1), size];
      const time = soa ? elem * elems : env * this.n, at = this.alloc(time * rows, 64);
      new Uint8Array(this.exports.memory.buffer, at, time * rows).fill(255);
      return { at, time: timeless ? 0 : time, env, agent: agents > 1 ? agent : 0, elem, rows };
    });
  }

  /** Binds the block that is used now; every row begins at a multiple of an element, so that is what row_align says. */
  bind() {
    const each = this.spec.h.binding_bytes, records = new DataView(new ArrayBuffer(each * this.spec.tensors.length));
    this.blocks[this.now].forEach((b, k) => {
      const { size = 0 } = this.spec.tensors[k];
      [b.at, b.time, b.env, b.agent, b.elem, b.rows, size].forEach((x, i) => records.setUint32(each * k + 4 * i, x, true));
    });
    for (const t of this.of("reset_param")) this.each(t, (e, a, i) => this.set(t, 0, e, a, i, this.params[t.path]?.[i] ?? NaN));
    this.lend(new Uint8Array(records.buffer), (at) => this.status("rl_bind", this.batch, at, this.spec.tensors.length));
  }

  /** The bound tensors of a role, of a group or of all. */
  of(kind, group) { return this.spec.tensors.filter((t) => t.kind === kind && t.bound && (group === undefined || t.d.group === group)); }

  each(t, visit) {
    for (let e = 0; e < this.n; e++) for (let a = 0; a < t.agents; a++) for (let i = 0; i < t.elems; i++) visit(e, a, i);
  }

  /** An element of a tensor, in the bound block or another, as a number. */
  get(t, row, e, a, i, block = this.now) { return Number(this.elements(t)[this.index(t, row, e, a, i, block)]); }

  set(t, row, e, a, i, value, block = this.now) { this.elements(t)[this.index(t, row, e, a, i, block)] = t.d.dtype === ABI.I64 ? BigInt(value) : value; }

  elements(t) {
    const { buffer } = this.exports.memory;
    if (t.elements?.buffer !== buffer) t.elements = new t.array(buffer);
    return t.elements;
  }

  index(t, row, e, a, i, block) {
    const b = this.blocks[block][t.place ??= this.spec.tensors.indexOf(t)];
    return (b.at + row * b.time + e * b.env + a * b.agent + i * b.elem) / t.size;
  }

  /** The numbers of one agent of an environment, in the row that is acted on now or another. */
  row(t, e, a = 0, row = this.t) { return Array.from({ length: t.elems }, (_, i) => this.get(t, row, e, a, i)); }

  /** Begins an episode in every environment, or where mask is true; seeds are u64, one for each environment. */
  reset(seeds, mask) {
    const which = mask ?? Array(this.n).fill(true);
    seeds?.forEach((seed, e) => which[e] && this.streams.set(e, random(seed)));
    this.lend(mask && Uint8Array.from(mask, Number), (m) =>
      this.lend(seeds && new Uint8Array(BigUint64Array.from(seeds, BigInt).buffer), (s) => this.status("rl_reset", this.batch, this.t, m, s)));
    for (const group of this.running) group.forEach((agents, e) => which[e] && agents.fill(false));
    this.checkRow(which, [], which);
  }

  /** Writes the actions of the next step: value(tensor, env, agent, element) gives them. */
  act(value) {
    if (this.t === this.steps) { // the last row is the first of the next block
      const last = this.now;
      this.now = 1 - last;
      this.t = 0;
      for (const t of this.spec.tensors) {
        if (t.role && t.d.flags & ABI.TENSOR_AT_T1) this.each(t, (e, a, i) => this.elements(t)[this.index(t, 0, e, a, i, this.now)] = this.elements(t)[this.index(t, this.steps, e, a, i, last)]);
      }
      this.bind();
    }
    for (const t of this.of("action")) this.each(t, (e, a, i) => this.set(t, this.t, e, a, i, value(t, e, a, i)));
  }

  /** One step. It returns by group the rewards and flags, [env][agent], and which environments' episodes have ended. */
  step() {
    const { t } = this;
    this.clock += 1_000_000n;
    try {
      if (this.has("rl_step_range")) for (let k = 0; k < this.n; k++) this.status("rl_step_range", this.batch, t, t % 2 ? k : this.n - 1 - k, 1);
      else this.status("rl_step", this.batch, t);
    } catch (e) { throw e.status === ABI.STATUS_ACTION ? new Fault(`action outside its space: ${this.outside(t)}`, e.status) : e; }
    this.t++;
    const played = Array(this.n).fill(false), ends = [];
    const groups = this.running.map((running, g) => {
      const numbers = (kind) => { const [x] = this.of(kind, g); return running.map((agents, e) => agents.map((_, a) => this.get(x, t, e, x.agents > 1 ? a : 0, 0))); };
      const [reward, terminated, truncated] = ["reward", "terminated", "truncated"].map(numbers), [active] = this.of("active", g);
      running.forEach((agents, e) => agents.forEach((was, a) => {
        finite("reward", reward[e][a], e, a);
        flag("terminated", terminated[e][a], e);
        flag("truncated", truncated[e][a], e);
        if (terminated[e][a]) truncated[e][a] = 0; // where both are set terminated counts
        const runs = was || !active || this.get(active, t, e, a, 0) > 0, over = terminated[e][a] || truncated[e][a];
        if (runs) played[e] = true;
        if (runs && over) ends.push([g, e, a]);
        agents[a] = runs && !over;
      }));
      for (const d of this.of("discount", g)) this.each(d, (e, a, i) => { const x = this.get(d, t, e, a, i); if (!(x >= 0 && x <= 1)) throw new Fault(`discount is ${x}, want 0 to 1`); });
      return { reward, terminated, truncated };
    });
    const over = played.map((p, e) => p && !this.running.some((group) => group[e].some(Boolean)));
    this.checkStep(t, ends, over);
    return { groups, over };
  }

  checkStep(t, ends, over) {
    const same = this.mode === ABI.AUTORESET_SAME_STEP;
    for (const f of same ? this.of("final_observation") : []) {
      for (const [g, e, a] of ends) if (g === f.d.group) for (const x of this.row(f, e, f.agents > 1 ? a : 0, 0)) finite("last observation, final_obs,", x, e, a);
    }
    for (const info of this.of("info")) this.each(info, (e, a, i) => (!(info.d.flags & ABI.TENSOR_EPISODE) || over[e]) && finite(`info "${info.path}"`, this.get(info, t, e, a, i), e, a));
    this.checkRow(Array(this.n).fill(true), same ? [] : over, same ? over : []);
  }

  /** The first action that is outside its space, and whose it is. */
  outside(row) {
    let first = "";
    for (const t of this.of("action")) {
      this.each(t, (e, a, i) => {
        const [low, high] = t.counts ? [t.d.start, t.d.start + t.counts[i] - 1] : [t.low[i], t.high[i]], x = this.get(t, row, e, a, i);
        if (!first && !(low <= x && x <= high)) first = `env ${e}, agent ${this.spec.groups.slice(0, t.d.group).reduce((n, g) => n + g.agents, a)}: action is ${x}, want ${low} to ${high}`;
      });
    }
    return first;
  }

  /** What has rows 0 to T, as it stands now, of environments whose episodes have ended or begun. */
  checkRow(which, ended, begun) {
    for (const t of this.of("reset_info")) this.each(t, (e, a, i) => begun[e] && finite(`reset_info "${t.path}"`, this.get(t, this.t, e, a, i), e, a));
    for (const t of this.of("observation")) if (t.d.dtype === ABI.F32) this.each(t, (e, a, i) => which[e] && finite("observation", this.get(t, this.t, e, a, i), e, a));
    for (const t of this.of("active")) this.each(t, (e, a, i) => which[e] && flag("active", this.get(t, this.t, e, a, i), e));
    for (const t of this.of("action_mask")) {
      for (let e = 0; e < this.n; e++) for (let a = 0; a < t.agents && which[e]; a++) this.checkMask(t, this.row(t, e, a), e, ended[e]);
    }
  }

  checkMask(t, mask, e, ended) {
    mask.forEach((x) => flag("action_mask", x, e));
    let at = 0;
    t.other.counts.forEach((n, i) => {
      if (!mask.slice(at, at += n).includes(1)) throw new Fault(`env ${e}: action_mask has no legal value of element ${i}`);
    });
    if (ended && mask.includes(0)) throw new Fault(`env ${e}: action_mask has an illegal value behind an end`);
  }

  /** A picture: the text, or the bytes of the pixels. mode is one of ABI.RENDER_*. */
  render(env, mode, camera = 0) {
    const bit = Math.log2(mode), { h } = this.spec, want = h.render_width * h.render_height * (bit + 2);
    const picture = this.needed("rl_render", MEMORY, "its picture", this.batch, env, bit | camera << 8);
    if (bit && picture.length !== want) throw new Fault(`a picture of ${picture.length} bytes, want ${want}`);
    try {
      return bit ? picture : new TextDecoder("utf-8", { fatal: true }).decode(picture);
    } catch { throw new Fault("a picture of text that is not UTF-8"); }
  }

  /** The state of an environment. */
  save(env) {
    const { h } = this.spec, state = this.needed("rl_save", MEMORY, "a state", this.batch, env), has = state.length - 8;
    const [version, says] = has < 0 ? [-1, -1] : new Uint32Array(state.buffer, 0, 2);
    if (version !== h.state_version || says !== has || h.state_max && state.length > h.state_max) {
      throw new Fault(`a state of version ${version} that says ${says} bytes and has ${has}, want version ${h.state_version} and ${h.state_max} bytes at most`);
    }
    return state;
  }

  load(env, state) { this.lend(state, (at) => this.status("rl_load", this.batch, env, at, state.length)); }

  /** The first 256 infos by name, each the numbers of the environments in the last step. */
  infos() {
    const named = this.of("info").flatMap((t) => Array.from({ length: t.elems }, (_, i) => [t.d.rank ? `${t.path || "info"}/${i}` : t.path || "info", t, i]));
    return new Map(named.slice(0, 256).map(([name, t, i]) => [name, Array.from({ length: this.n }, (_, e) => this.get(t, this.t - 1, e, 0, i))]));
  }
}

function finite(name, x, env, agent) {
  if (!Number.isFinite(x)) throw new Fault(`env ${env}, agent ${agent}: ${name} is ${x}`);
}

function flag(name, x, env) {
  if (x > 1) throw new Fault(`env ${env}: ${name} is ${x}, want 0 or 1`);
}

export { ABI, ARRAYS, Fault, Refused, TooOld };
