// Plays random episodes of a module under Node's WebAssembly as a native build of its source does (sdk/c/rl_native.h): the same
// seeds, the same actions, and the same hash of what it writes, which it prints.
//
//	node play_guest.mjs GUEST.wasm [envs=8] [steps=1000] [seed=1] [key=value…]
import { readFileSync } from "node:fs";

const ACTION = 1, MASK = 6, RESET_PARAM = 14; // roles
const PER_AGENT = 1, AT_T1 = 4, NO_TIME = 8; // flags
const I32 = 4, F32 = 8;
const dtypeBytes = [0, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1];
const u64 = (x) => BigInt.asUintN(64, x);

// mix and Rng are those of rl_author.h.
const mix = (z) => {
  z = u64((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = u64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
};
class Rng {
  constructor(seed) { this.state = mix(u64(seed + 0x9e3779b97f4a7c15n)); }
  next() { return mix((this.state = u64(this.state + 0x9e3779b97f4a7c15n))); }
  below(n) { return Number(((this.next() >> 32n) * BigInt(n)) >> 32n); }
  uniform(low, high) {
    const unit = Math.fround(Number(this.next() >> 40n) * 2 ** -24);
    return Math.fround(low + Math.fround(Math.fround(high - low) * unit));
  }
}

const options = { envs: "8", steps: "1000", seed: "1" }, config = [];
for (const arg of process.argv.slice(3).sort()) {
  const key = arg.slice(0, arg.indexOf("="));
  if (key in options) options[key] = arg.slice(key.length + 1);
  else config.push(arg + "\n");
}
const envs = Number(options.envs), seed = BigInt(options.seed);

const module = new WebAssembly.Module(readFileSync(process.argv[2])), imports = {};
for (const { module: from, name, kind } of WebAssembly.Module.imports(module))
  if (kind === "function") (imports[from] ??= {})[name] = () => 0;
const guest = new WebAssembly.Instance(module, imports).exports;
guest._initialize?.();
const memory = guest.memory;
const bytes = (at, n) => new Uint8Array(memory.buffer, at, n);
const view = () => new DataView(memory.buffer);

// call calls an export, whose status must not be an error.
function call(name, ...args) {
  const status = guest[name](...args);
  if (status >= 0) return status;
  const at = guest.rl_alloc(4096, 16), n = guest.rl_last_error(at, 4096);
  throw new Error(`${name}: status ${status} ${Buffer.from(bytes(at, n)).toString()}`);
}

function cleared(n) {
  const at = guest.rl_alloc(n, 65536);
  bytes(at, n).fill(0);
  return at;
}

const text = Buffer.from(config.join("")), configAt = cleared(text.length + 1);
bytes(configAt, text.length).set(text);
const need = call("rl_describe", configAt, text.length, 0, 0), describedAt = cleared(need);
call("rl_describe", configAt, text.length, describedAt, need);
const spec = new DataView(bytes(describedAt, need).slice().buffer);
const head = spec.getUint32(0, true), groups = spec.getUint32(36, true), groupBytes = spec.getUint16(28, true);
const tensors = Array.from({ length: spec.getUint32(32, true) }, (_, k) => {
  const at = head + groups * groupBytes + k * spec.getUint16(24, true);
  const t = { role: spec.getUint16(at, true), index: spec.getUint16(at + 2, true), group: spec.getUint16(at + 4, true), dtype: spec.getUint8(at + 6),
    flags: spec.getUint32(at + 8, true), low: spec.getFloat32(at + 36, true), high: spec.getFloat32(at + 40, true), n: spec.getUint32(at + 44, true),
    start: spec.getInt32(at + 48, true), values: spec.getUint32(at + 52, true), pair: spec.getUint16(at + 56, true), elems: 1 };
  for (let i = 0; i < spec.getUint8(at + 7); i++) t.elems *= spec.getUint32(at + 12 + 4 * i, true);
  t.agents = t.flags & PER_AGENT && groups ? spec.getUint32(head + t.group * groupBytes + 4, true) : 1;
  t.row = t.elems * dtypeBytes[t.dtype];
  t.time = t.row * t.agents * envs;
  return t;
});

const batch = call("rl_create", configAt, text.length, envs, 2), bindingBytes = spec.getUint16(26, true);
const bindings = cleared(bindingBytes * tensors.length);
for (const [k, t] of tensors.entries()) {
  t.at = cleared(2 * t.time);
  for (let i = 0; t.role === RESET_PARAM && i < t.time; i += 4) view().setFloat32(t.at + i, NaN, true); // nobody gives any
  const words = [t.at, t.flags & NO_TIME ? 0 : t.time, t.row * t.agents, t.flags & PER_AGENT ? t.row : 0, dtypeBytes[t.dtype]];
  words.forEach((word, i) => view().setUint32(bindings + bindingBytes * k + 4 * i, word, true));
}
call("rl_bind", batch, bindings, tensors.length);
const seeds = cleared(8 * envs);
for (let i = 0; i < envs; i++) view().setBigUint64(seeds + 8 * i, seed + BigInt(i), true);
call("rl_reset", batch, 0, 0, seeds);

// choice draws one of n values, of which a mask, if there is one, allows some.
function choice(mask, n, rng) {
  const legal = [];
  for (let v = 0; mask && v < n; v++) if (mask[v]) legal.push(v);
  return legal.length ? legal[rng.below(legal.length)] : rng.below(n);
}

function draw(t, row, mask, rng) {
  for (let i = 0; i < t.elems; i++) {
    const value = (k) => spec.getFloat32(t.values + 4 * (k * t.elems + i), true);
    if (t.dtype === I32) {
      const n = t.values ? spec.getUint32(t.values + 4 * i, true) : t.n;
      view().setInt32(row + 4 * i, t.start + choice(mask, n, rng), true);
      mask = mask?.subarray(n);
    } else if (t.dtype === F32) {
      const low = t.values ? value(0) : t.low, high = t.values ? value(1) : t.high, bounded = low < high && low > -3e38 && high < 3e38;
      view().setFloat32(row + 4 * i, rng.uniform(bounded ? low : -1, bounded ? high : 1), true);
    }
  }
}

let hash = 0xcbf29ce484222325n;
const rng = new Rng(seed);
for (let s = 0; s < Number(options.steps); s++) {
  for (const t of tensors) {
    if (t.role !== ACTION) continue;
    const mask = tensors.find((m) => m.role === MASK && m.group === t.group && m.pair === t.index);
    for (let i = 0; i < envs * t.agents; i++) draw(t, t.at + i * t.row, mask && bytes(mask.at + i * mask.row, mask.row), rng);
  }
  call("rl_step", batch, 0);
  for (const t of tensors) {
    const at = t.at + (t.flags & AT_T1 ? t.time : 0);
    if (t.role !== ACTION && !(t.flags & NO_TIME)) for (const byte of bytes(at, t.time)) hash = u64((hash ^ BigInt(byte)) * 0x100000001b3n);
    if (t.flags & AT_T1) bytes(t.at, t.time).set(bytes(t.at + t.time, t.time));
  }
}
console.log(hash.toString(16).padStart(16, "0"));
