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

function play(module, args) {
  const options = { envs: "7", steps: "300", mode: "same_step", layout: "rows", range: "0", save: "yes", config: "" };
  for (const arg of args) {
    const at = arg.indexOf("=");
    options[arg.slice(0, at)] = arg.slice(at + 1);
  }
  const envs = Number(options.envs), steps = Number(options.steps), range = Number(options.range);
  const mode = { next_step: 1, same_step: 2, disabled: 4 }[options.mode];
  const columns = options.layout === "columns";
  const guest = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi, rl }).exports;
  memory = guest.memory;
  guest._initialize?.();

  function must(call, status) {
    if (status >= 0) return status;
    const at = guest.rl_alloc(4096, 16), n = guest.rl_last_error(at, 4096);
    throw new Refused(`error ${call} ${status} ${text(at, n)}`);
  }

  const config = Buffer.from(options.config ? options.config.split(",").join("\n") + "\n" : "");
  const configAt = guest.rl_alloc(4096, 16);
  bytes(configAt, config.length).set(config);

  // describe
  const need = must("rl_describe", guest.rl_describe(configAt, config.length, 0, 0));
  const specAt = guest.rl_alloc(need, 64);
  must("rl_describe", guest.rl_describe(configAt, config.length, specAt, need));
  const spec = bytes(specAt, need).slice();
  const head = new DataView(spec.buffer);
  const sizes = [0, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1];
  const tensors = [];
  for (let k = 0; k < head.getUint32(24, true); k++) {
    const at = 64 + 64 * k, rank = head.getUint8(at + 5);
    let elems = 1;
    for (let i = 0; i < rank; i++) elems *= head.getUint32(at + 8 + 4 * i, true);
    tensors.push({ role: head.getUint16(at, true), elems, bytes: sizes[head.getUint8(at + 4)], n: head.getUint32(at + 40, true) });
  }

  // create and bind; every tensor has steps+1 rows of time, but the final observation
  const batch = must("rl_create", guest.rl_create(configAt, config.length, envs, mode));
  const bindAt = guest.rl_alloc(32 * tensors.length, 64);
  for (const [k, t] of tensors.entries()) {
    const row = t.elems * t.bytes, timeless = t.role === 7;
    t.size = row * envs * (timeless ? 1 : steps + 1);
    t.at = guest.rl_alloc(t.size, 65536);
    if (!t.at || t.at % 65536) throw new Error("rl_alloc is misaligned");
    t.time = timeless ? 0 : row * envs;
    t.env = columns ? t.bytes : row;
    t.elem = columns ? t.bytes * envs : t.bytes;
    [t.at, t.time, t.env, 0, t.elem, 0, 0, 0].forEach((word, i) => view().setUint32(bindAt + 32 * k + 4 * i, word, true));
  }
  must("rl_bind", guest.rl_bind(batch, bindAt, tensors.length));
  const [action, obs, reward, terminated, truncated, final, mask] = tensors;

  // reset and step
  const seedAt = guest.rl_alloc(8 * envs, 64);
  for (let i = 0; i < envs; i++) view().setBigUint64(seedAt + 8 * i, BigInt(100 + i), true);
  let lcg = 1n;
  function randomActions(t) {
    for (let i = 0; i < envs; i++) {
      lcg = (lcg * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
      view().setInt32(action.at + t * action.time + i * action.env, Number((lcg >> 33n) % BigInt(action.n)), true);
    }
  }
  must("rl_reset", guest.rl_reset(batch, 0, 0, seedAt));
  const maskAt = guest.rl_alloc(envs, 64);
  bytes(maskAt, envs).fill(0);
  for (let t = 0; t < steps; t++) {
    randomActions(t);
    if (range) {
      for (let i = 0; i < envs; i += range) must("rl_step_range", guest.rl_step_range(batch, t, i, Math.min(range, envs - i)));
    } else {
      must("rl_step", guest.rl_step(batch, t));
    }
    if (mode === 4) { // the host resets, some steps late, so that waiting environments are seen too
      let any = 0;
      for (let i = 0; i < envs; i++) {
        const ended = bytes(terminated.at + t * terminated.time + i * terminated.env, 1)[0] | bytes(truncated.at + t * truncated.time + i * truncated.env, 1)[0];
        any |= bytes(maskAt + i, 1)[0] |= ended;
      }
      if (any && t % 3 === 2) {
        must("rl_reset", guest.rl_reset(batch, t + 1, maskAt, 0));
        bytes(maskAt, envs).fill(0);
      }
    }
  }

  // hash
  const hash = createHash("sha256");
  const absorb = (data) => hash.update(data);
  function absorbRow(x, t) {
    for (let i = 0; i < envs; i++)
      for (let k = 0; k < x.elems; k++) absorb(bytes(x.at + t * x.time + i * x.env + k * x.elem, x.bytes));
  }
  absorbRow(obs, 0);
  for (let t = 0; t < steps; t++) {
    absorbRow(obs, t + 1);
    for (const x of [reward, terminated, truncated]) absorbRow(x, t);
    if (mask) absorbRow(mask, t + 1);
  }
  absorbRow(final, 0);
  const stateAt = guest.rl_alloc(65536, 64);
  for (let i = 0; i < envs; i++) {
    const n = options.save === "yes" ? guest.rl_save(batch, i, stateAt, 65536) : -1;
    if (n >= 0) {
      absorb(bytes(stateAt, n));
      must("rl_load", guest.rl_load(batch, i, stateAt, n));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const runs = [[]];
for (const arg of process.argv.slice(3)) arg === "+" ? runs.push([]) : runs.at(-1).push(arg);
for (const args of runs) {
  try {
    console.log(play(module, args));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.log(error.message);
  }
}
