// A module of WebAssembly as the ABI looks at it before it runs: the types of what it imports and exports. JavaScript tells only the names.

/** The guest is not loaded. */
export class Refused extends Error {}

/** The guest wants what this host does not run: that is not its author's mistake. */
export class TooOld extends Refused {
  constructor(text) { super(text + ": update this host"); }
}

/** The guest fails once it is loaded. status is that of the call, 0 where it returned none. */
export class Fault extends Error {
  constructor(text, status = 0) { super(text); this.status = status; }
}

/** Refuses the guest where something does not hold. */
export function must(holds, text) { if (!holds) throw new Refused(text); }

const VALUES = { 0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128", 0x70: "funcref", 0x6f: "externref" };
const KINDS = ["function", "table", "memory", "global", "tag"];

/** The imports and exports of a valid module, with the signatures of functions such as "i32 i32 -> i32". */
export function inspect(bytes) {
  let at = 8;
  const number = () => {
    for (let n = 0, shift = 0; ; shift += 7) {
      const b = bytes[at++];
      n += (b & 127) * 2 ** shift;
      if (b < 128) return n;
    }
  };
  const text = () => { const n = number(); at += n; return new TextDecoder().decode(bytes.subarray(at - n, at)); };
  const list = (read) => Array.from({ length: number() }, read);
  const value = () => { const t = VALUES[bytes[at++]]; must(t, "a type beyond WebAssembly 2.0"); return t; };
  const type = () => { must(bytes[at++] === 0x60, "a type beyond WebAssembly 2.0"); return list(value).join(" ") + " -> " + list(value).join(" "); };
  const limits = () => { const flags = number(); number(); if (flags & 1) number(); return flags; };
  const memory = () => { const flags = limits(); must(!(flags & 4), "64-bit memory"); must(!(flags & 2), "shared memory"); };
  const rest = [() => types[number()], () => { value(); limits(); }, memory, () => { value(); number(); }, () => { number(); number(); }];
  let types = [], imports = [], functions = [], exports = [];
  while (at < bytes.length) {
    const id = bytes[at++], size = number(), end = at + size;
    if (id === 1) types = list(type);
    if (id === 2) imports = list(() => { const module = text(), name = text(), kind = number(); return { module, name, kind: KINDS[kind], signature: rest[kind]() }; });
    if (id === 3) functions = list(() => types[number()]);
    if (id === 5) list(memory);
    if (id === 7) exports = list(() => ({ name: text(), kind: KINDS[number()], index: number() }));
    at = end;
  }
  functions = [...imports.filter((i) => i.kind === "function").map((i) => i.signature), ...functions];
  for (const e of exports) if (e.kind === "function") e.signature = functions[e.index];
  return { imports, exports: new Map(exports.map((e) => [e.name, e])) };
}
