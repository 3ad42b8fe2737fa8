// Allocates and frees a guest's memory at random and checks what the host relies on: alignment, no overlap with
// anything alive, contents left alone until the free, and memory that is used again.
//
//	node stress_memory.mjs GUEST.wasm
import { readFileSync } from "node:fs";

const stub = new Proxy({}, { get: (_, name) => (...args) => {
  if (name === "clock_time_get") new DataView(memory.buffer).setBigUint64(args[2], 1000n, true);
  if (name === "args_sizes_get" || name === "environ_sizes_get") args.forEach((at) => new DataView(memory.buffer).setUint32(at, 0, true));
  return name.startsWith("fd_") ? 8 : 0;
} });
const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const imports = {};
for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = stub[name];
const guest = new WebAssembly.Instance(module, imports).exports;
const memory = guest.memory;
guest._initialize?.();

let state = 1;
const random = (n) => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) % n;
const alive = [];

function check(block) {
  const bytes = new Uint8Array(memory.buffer, block.at, block.size);
  for (let i = 0; i < block.size; i += 251)
    if (bytes[i] !== block.mark) throw new Error(`block at ${block.at} of ${block.size} bytes was written to at ${i}`);
}

function allocate(round) {
  const align = 1 << random(17), size = 1 + random(random(8) ? 5000 : 400000);
  const at = guest.rl_alloc(size, align) >>> 0;
  if (!at) throw new Error(`rl_alloc(${size}, ${align}) = 0 with ${memory.buffer.byteLength} bytes of memory`);
  if (at % align) throw new Error(`rl_alloc(${size}, ${align}) = ${at}`);
  const block = { at, size, align, mark: 1 + (round % 255) };
  for (const other of alive) {
    // Windows are mapped by whole pages over memory that was asked for with that alignment, so nobody else is there.
    const page = Math.max(align, other.align) < 4096 ? 1 : 4096;
    const end = (v) => Math.ceil((v.at + v.size) / page) * page;
    const start = (v) => Math.floor(v.at / page) * page;
    if (start(block) < end(other) && start(other) < end(block)) throw new Error(`blocks at ${at} and ${other.at} share ${page} bytes`);
  }
  new Uint8Array(memory.buffer, at, size).fill(block.mark);
  alive.push(block);
}

function free(index) {
  const [block] = alive.splice(index, 1);
  check(block);
  guest.rl_free(block.at, block.size);
}

for (let round = 0; round < 4000; round++) {
  if (alive.length < 40 && random(2)) allocate(round);
  else if (alive.length) free(random(alive.length));
}
while (alive.length) free(0);
const grown = memory.buffer.byteLength;
for (let round = 0; round < 300; round++) {
  allocate(round);
  free(0);
}
for (const [size, align] of [[1, 3], [1, 131072], [2 ** 32 - 1, 16]])
  if (guest.rl_alloc(size, align) !== 0) throw new Error(`rl_alloc(${size}, ${align}) succeeded`);
console.log(`ok ${grown >> 10} KiB, then ${memory.buffer.byteLength >> 10} KiB`);
