// Runs a guest under Node's WebAssembly and prints a hash of everything that it writes, so that guests in
// different languages can be compared without the host. A plus sign begins another run, with a new instance; each
// run prints one line.
//
//	node run_guest.mjs GUEST.wasm [envs=7] [steps=300] [mode=same_step|next_step|disabled] [layout=rows|columns]
//	     [range=N] [save=yes|no] [config="key=value"] [+ …]
//
// Seeds are 100, 101, …; actions are the high bits of one linear congruential generator. The hash is SHA-256 over
// obs[0], then for each step obs, reward, terminated, truncated (in rows, whatever the layout), then the final
// observations, then the saved state of every environment where the guest can save; its first 16 digits are
// printed.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

let memory;
const bytes = (at, n) => new Uint8Array(memory.buffer, at, n);
const view = () => new DataView(memory.buffer);
const text = (at, n) => Buffer.from(bytes(at, n)).toString();

// The few calls of WASI that Go's runtime makes: no files, no arguments, a clock that counts its readings.
let clock = 0n;
const wasi = {
  args_sizes_get: (a, b) => (view().setUint32(a, 0, true), view().setUint32(b, 0, true), 0),
  environ_sizes_get: (a, b) => (view().setUint32(a, 0, true), view().setUint32(b, 0, true), 0),
  args_get: () => 0,
  environ_get: () => 0,
  clock_time_get: (id, precision, at) => (view().setBigUint64(at, ++clock * 1000n, true), 0),
  random_get: (at, n) => (bytes(at, n).fill(7), 0),
  fd_close: () => 8,
  fd_read: () => 8,
  fd_seek: () => 8,
  fd_write: (fd, list, n, out) => {
    let total = 0;
    for (let i = 0; i < n; i++) {
      const at = view().getUint32(list + 8 * i, true), len = view().getUint32(list + 8 * i + 4, true);
      process.stderr.write(text(at, len));
      total += len;
    }
    view().setUint32(out, total, true);
    return 0;
  },
  fd_fdstat_get: () => 8,
  fd_fdstat_set_flags: () => 8,
  fd_prestat_get: () => 8,
  fd_prestat_dir_name: () => 8,
  poll_oneoff: () => 52,
  sched_yield: () => 0,
  proc_exit: (code) => { throw new Error(`proc_exit ${code}`); },
};
const rl = {
  log: (level, at, n) => console.error(`log ${level}: ${text(at, n)}`),
  log_enabled: () => 1,
  metric: () => {},
  clock_ns: () => 0n,
  entropy: (at, n) => (bytes(at, n).fill(7), 0),
};

// Refused is a status that a guest returned, with its text.
class Refused extends Error {}

const dtypeBytes = [0, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1];
const modes = { next_step: 1, same_step: 2, disabled: 4 };

// Run is one batch of one instance.
class Run {
  constructor(module, args) {
    this.options = { envs: "7", steps: "300", mode: "same_step", layout: "rows", range: "0", save: "yes", config: "" };
    for (const arg of args) {
      const at = arg.indexOf("=");
      this.options[arg.slice(0, at)] = arg.slice(at + 1);
    }
    [this.envs, this.steps, this.range] = ["envs", "steps", "range"].map((name) => Number(this.options[name]));
    this.mode = modes[this.options.mode];
    this.guest = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi, rl }).exports;
    memory = this.guest.memory;
    this.guest._initialize?.();
    this.lcg = 1n;
  }

  // call calls an export and throws what the guest says if it refuses.
  call(name, ...args) {
    const status = this.guest[name](...args);
    if (status >= 0) return status;
    const at = this.guest.rl_alloc(4096, 16), n = this.guest.rl_last_error(at, 4096);
    throw new Refused(`error ${name} ${status} ${text(at, n)}`);
  }

  // cleared allocates memory for the host's own use; a guest does not promise that it is zero.
  cleared(n) {
    const at = this.guest.rl_alloc(n, 64);
    bytes(at, n).fill(0);
    return at;
  }

  play() {
    const config = Buffer.from(this.options.config ? this.options.config.split(",").join("\n") + "\n" : "");
    const at = this.cleared(4096);
    bytes(at, config.length).set(config);
    this.describe(at, config.length);
    this.batch = this.call("rl_create", at, config.length, this.envs, this.mode);
    this.bind();
    this.reset();
    for (let t = 0; t < this.steps; t++) this.step(t);
    return this.hash();
  }

  describe(config, length) {
    const need = this.call("rl_describe", config, length, 0, 0), at = this.cleared(need);
    this.call("rl_describe", config, length, at, need);
    const spec = new DataView(bytes(at, need).slice().buffer);
    this.tensors = [];
    const first = spec.getUint32(0, true), size = spec.getUint16(24, true);
    this.binding = spec.getUint16(26, true);
    for (let k = 0; k < spec.getUint32(32, true); k++) {
      const d = first + size * k;
      let elems = 1;
      for (let i = 0; i < spec.getUint8(d + 7); i++) elems *= spec.getUint32(d + 12 + 4 * i, true);
      const role = spec.getUint16(d, true), n = spec.getUint32(d + 44, true);
      this.tensors.push({ role, elems, n, bytes: dtypeBytes[spec.getUint8(d + 6)] });
    }
  }

  // bind gives every tensor steps+1 rows of time, but the final observation one.
  bind() {
    const { envs, steps, tensors } = this, bindings = this.cleared(this.binding * tensors.length);
    const columns = this.options.layout === "columns";
    for (const [k, t] of tensors.entries()) {
      const row = t.elems * t.bytes, timeless = t.role === 7;
      t.at = this.guest.rl_alloc(row * envs * (timeless ? 1 : steps + 1), 65536);
      if (!t.at || t.at % 65536) throw new Error("rl_alloc is misaligned");
      t.time = timeless ? 0 : row * envs;
      t.env = columns ? t.bytes : row;
      t.elem = columns ? t.bytes * envs : t.bytes;
      [t.at, t.time, t.env, 0, t.elem].forEach((word, i) => view().setUint32(bindings + this.binding * k + 4 * i, word, true));
    }
    this.call("rl_bind", this.batch, bindings, tensors.length);
    [this.action, this.obs, this.reward, this.terminated, this.truncated, this.final, this.mask] = tensors;
  }

  reset() {
    const seeds = this.cleared(8 * this.envs);
    for (let i = 0; i < this.envs; i++) view().setBigUint64(seeds + 8 * i, BigInt(100 + i), true);
    this.call("rl_reset", this.batch, 0, 0, seeds);
    this.ended = this.cleared(this.envs); // which environments the host must reset, in mode disabled
  }

  step(t) {
    const { envs, range, batch, action } = this;
    for (let i = 0; i < envs; i++) {
      this.lcg = (this.lcg * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
      view().setInt32(action.at + t * action.time + i * action.env, Number((this.lcg >> 33n) % BigInt(action.n)), true);
    }
    if (range) for (let i = 0; i < envs; i += range) this.call("rl_step_range", batch, t, i, Math.min(range, envs - i));
    else this.call("rl_step", batch, t);
    if (this.mode === modes.disabled) this.resetEnded(t);
  }

  // resetEnded is the host's part in mode disabled, every third step, so that waiting environments are seen too.
  resetEnded(t) {
    const flag = (x, i) => bytes(x.at + t * x.time + i * x.env, 1)[0];
    const ended = bytes(this.ended, this.envs);
    for (let i = 0; i < this.envs; i++) ended[i] |= flag(this.terminated, i) | flag(this.truncated, i);
    if (t % 3 !== 2 || !ended.some((e) => e)) return;
    this.call("rl_reset", this.batch, t + 1, this.ended, 0);
    bytes(this.ended, this.envs).fill(0);
  }

  hash() {
    const hash = createHash("sha256");
    const row = (x, t) => {
      for (let i = 0; i < this.envs; i++)
        for (let k = 0; k < x.elems; k++) hash.update(bytes(x.at + t * x.time + i * x.env + k * x.elem, x.bytes));
    };
    row(this.obs, 0);
    for (let t = 0; t < this.steps; t++) {
      row(this.obs, t + 1);
      for (const x of [this.reward, this.terminated, this.truncated]) row(x, t);
      if (this.mask) row(this.mask, t + 1);
    }
    row(this.final, 0);
    const at = this.cleared(65536);
    for (let i = 0; i < this.envs && this.options.save === "yes"; i++) {
      const n = this.guest.rl_save(this.batch, i, at, 65536);
      if (n < 0) break;
      hash.update(bytes(at, n));
      this.call("rl_load", this.batch, i, at, n);
    }
    return hash.digest("hex").slice(0, 16);
  }
}

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const runs = [[]];
for (const arg of process.argv.slice(3)) arg === "+" ? runs.push([]) : runs.at(-1).push(arg);
for (const args of runs) {
  try {
    console.log(new Run(module, args).play());
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.log(error.message);
  }
}
