// What rl_describe writes: docs/reference/env-abi.md, from "The description" on.
import { ABI, RECORDS } from "./abi.js";
import { must, Refused, TooOld } from "./module.js";

const ROLE = (name, rows, types, scalar, many, required) => ({ name, rows, types, scalar, many, required });
const { U8, I8, I16, I32, I64, F32, BOOL, TENSOR_AT_T: T, TENSOR_AT_T1: T1, TENSOR_NO_TIME: ONE } = ABI;
const ALL = [U8, I8, I16, I32, I64, F32, BOOL];
const ROLES = {
  [ABI.ROLE_ACTION]: ROLE("action", T, [I32, F32], false, true, true), [ABI.ROLE_OBSERVATION]: ROLE("observation", T1, ALL, false, true, true),
  [ABI.ROLE_REWARD]: ROLE("reward", T, [F32], true, false, true), [ABI.ROLE_TERMINATED]: ROLE("terminated", T, [U8], true, false, true),
  [ABI.ROLE_TRUNCATED]: ROLE("truncated", T, [U8], true, false, true), [ABI.ROLE_ACTION_MASK]: ROLE("action_mask", T1, [U8], false, true),
  [ABI.ROLE_FINAL_OBSERVATION]: ROLE("final_observation", ONE, ALL, false, true), [ABI.ROLE_ACTIVE]: ROLE("active", T1, [U8], true, false),
  [ABI.ROLE_INFO]: ROLE("info", T, [F32], false, true), [ABI.ROLE_DISCOUNT]: ROLE("discount", T, [F32], true, false),
  [ABI.ROLE_RESET_PARAM]: ROLE("reset_param", ONE, [F32], false, true), [ABI.ROLE_RESET_INFO]: ROLE("reset_info", T1, [F32], false, true),
};
/** The array of JavaScript for the elements of a dtype. */
export const ARRAYS = { [U8]: Uint8Array, [I8]: Int8Array, [I16]: Int16Array, [I32]: Int32Array, [I64]: BigInt64Array, [F32]: Float32Array, [BOOL]: Uint8Array };
const LIMITS = { [U8]: [0, 255], [I8]: [-128, 127], [I16]: [-32768, 32767], [I32]: [-(2 ** 31), 2 ** 31 - 1], [I64]: [-Infinity, Infinity], [BOOL]: [0, 255] };
const sum = (prefix, but) => Object.entries(ABI).reduce((all, [name, n]) => name.startsWith(prefix) && name !== but ? all | n : all, 0);
const HEAD_1_0 = 128, MINOR = 1; // bytes of the head of version 1.0; the version that this host speaks
const KNOWN = sum("TENSOR_", "TENSOR_BYTES"), MODES = sum("AUTORESET_");
/** The features that this host runs, and its bounds. */
export const FEATURES = sum("FEATURE_"), MAX_TENSORS = 1024, MAX_ELEMS = 1 << 24, MAX_BYTES = 1 << 20;
/** The flags of pictures. */
export const IMAGE = ABI.TENSOR_IMAGE_HWC | ABI.TENSOR_IMAGE_CHW;
const product = (list) => list.reduce((a, b) => a * b, 1);
const unique = (list) => new Set(list).size === list.length;

/** A record of the ABI at a place, as an object. */
function record(kind, view, at) {
  const of = {};
  for (const [name, [offset, type]] of Object.entries(RECORDS[kind].fields)) {
    const [, n, one] = type.match(/^(?:\[(\d+)\])?(\w+)$/), size = Number(one.match(/\d+/)[0]) / 8;
    const get = (i) => view[{ uint8: "getUint8", uint16: "getUint16", uint32: "getUint32", int32: "getInt32", uint64: "getBigUint64", float32: "getFloat32", float64: "getFloat64" }[one]](at + offset + i * size, true);
    of[name] = n ? Array.from({ length: Number(n) }, (_, i) => get(i)) : get(0);
  }
  return of;
}

const blank = (d) => Object.entries(d).every(([name, v]) => !name.startsWith("reserved") || [v].flat().every((x) => !x));

/** The description of an environment: its head `h`, tensors, groups and arguments. */
export class Spec {
  constructor(blob) {
    must(blob.length >= 24, `a head of ${blob.length} bytes`);
    this.blob = blob;
    this.view = new DataView(blob.buffer, blob.byteOffset, blob.length);
    const head = new Uint8Array(RECORDS.Spec.size); // what a shorter one has not is 0
    head.set(blob.subarray(0, Math.min(Math.max(this.view.getUint32(0, true), HEAD_1_0), head.length)));
    const h = this.h = record("Spec", new DataView(head.buffer), 0);
    must(h.abi_major > 0, `ABI ${h.abi_major}.${h.abi_minor}, which there never was`);
    if (h.abi_major > 1) throw new TooOld(`the guest needs ABI ${h.abi_major}.${h.abi_minor}`);
    const missing = h.needs & ~BigInt(FEATURES);
    if (missing) throw new TooOld(`the guest needs features ${[...missing.toString(2)].reverse().flatMap((b, i) => b === "1" ? [i] : []).join(", ")}, which this host does not run`);
    try {
      this.read(h);
    } catch (e) { // in a later version it may be right
      throw e instanceof Refused && !(e instanceof TooOld) && h.abi_minor > MINOR ? new TooOld(e.message) : e;
    }
  }

  read(h) {
    must(HEAD_1_0 <= h.size && h.size <= Math.min(4096, this.blob.length) && h.size % 4 === 0, `a head of ${h.size} bytes`);
    must(blank(h), "the head has reserved bytes that are not 0");
    must(h.strings_at >= h.size && h.strings_len > 0 && h.strings_at + h.strings_len <= this.blob.length, "the strings end outside the description");
    this.strings = this.blob.subarray(h.strings_at, h.strings_at + h.strings_len);
    must(this.strings[0] === 0 && this.strings.at(-1) === 0, "the strings do not begin and end with a NUL");
    let at = h.size;
    const lists = [["GroupDesc", "group", h.groups], ["TensorDesc", "tensor", h.tensors], ["ArgDesc", "arg", h.args]].map(([kind, name, n]) => {
      const each = h[name + "_bytes"], from = at;
      must(RECORDS[kind].size <= each && each <= 4096 && each % 4 === 0, `${name}_bytes is ${each}`);
      must(n * each <= this.blob.length - at, `${n} records of ${name} end outside the description`);
      at += n * each;
      return Array.from({ length: n }, (_, i) => record(kind, this.view, from + i * each));
    });
    must(ABI.BINDING_BYTES <= h.binding_bytes && h.binding_bytes <= 4096 && h.binding_bytes % 4 === 0, `binding_bytes is ${h.binding_bytes}`);
    [this.name, this.version, this.doc, this.licence, this.keys] = [h.name, h.version, h.doc, h.licence, h.keys].map((s) => this.string(s));
    must(this.name, "the environment has no name");
    must(!(this.name + this.version).includes("@"), "the name or the version has an @");
    must(h.autoreset & MODES, "no mode of autoreset is offered that this host knows");
    const side = (n) => n >= 1 && n <= 1 << 14;
    must(!(h.render_modes & 6) || side(h.render_width) && side(h.render_height), `pictures of ${h.render_width} x ${h.render_height}`);
    must(h.render_fps >= 0, `${h.render_fps} pictures a second`);
    must(h.reward_low <= h.reward_high, `rewards from ${h.reward_low} to ${h.reward_high}`);
    must(Number.isFinite(h.dt) && h.dt >= 0, `the seconds of simulated time in a step are ${h.dt}`);
    this.readGroups(lists[0]);
    must(h.tensors <= MAX_TENSORS, `${h.tensors} tensors, want at most ${MAX_TENSORS}`);
    this.tensors = lists[1].map((d) => this.tensor(d));
    this.groups.forEach((_, g) => this.checkGroup(g));
    this.readArguments(lists[2]);
  }

  string(at) {
    must(at < this.strings.length, "a string lies outside the table");
    const end = this.strings.indexOf(0, at);
    must(end - at <= 4096, "a string of more than 4,096 bytes");
    let text = "";
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.strings.subarray(at, end));
    } catch { throw new Refused("a string is not UTF-8"); }
    must(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(text), "a string has control characters");
    return text;
  }

  readGroups(groups) {
    must(groups.length <= 64, `${groups.length} groups`);
    this.groups = groups.map((g) => {
      must(g.agents >= 1 && g.agents <= 4096, `a group of ${g.agents} agents`);
      must(!g.flags && blank(g), "a group has reserved bytes that are not 0");
      const names = g.agent_names ? this.string(g.agent_names).split("\n") : Array.from({ length: g.agents }, (_, i) => String(i));
      must(names.length === g.agents, `agent_names has ${names.length} names, want ${g.agents}`);
      must(unique(names) && !names.some((n) => /[/ ]/.test(n) || !n), "names of agents are unique, without slashes and spaces, and not empty");
      return { name: this.string(g.name), agents: g.agents, names };
    });
    const names = this.groups.map((g) => g.name);
    must(names.length < 2 || unique(names) && names.every((n) => n && !/[/ ]/.test(n)), "groups without names of their own");
    if (!names.length) this.groups = [{ name: "", agents: 1, names: ["0"] }];
    const all = this.groups.reduce((n, g) => n + g.agents, 0);
    must(all <= 32768, `${all} agents`);
    must(all === 1 || this.h.autoreset & ABI.AUTORESET_SAME_STEP, "agents need same_step");
  }

  /** A tensor with its space: counts of choices, or bounds. bound says whether it is given memory. */
  tensor(d) {
    const role = ROLES[d.role], t = { d, role, kind: role?.name, label: role?.name ?? `role ${d.role}`, path: role ? this.string(d.path) : "" };
    t.bound = role && (t.kind !== "reset_param" || d.dtype === F32) || !(d.flags & ABI.TENSOR_OPTIONAL);
    if (!role && d.flags & ABI.TENSOR_CRITICAL) throw new TooOld(`${t.label} is critical, and this host does not know it`);
    if (!t.bound) return t;
    must(d.dtype in ARRAYS, `${t.label} has dtype ${d.dtype}, which this host does not know`);
    must(d.rank <= ABI.MAX_RANK, `${t.label} has rank ${d.rank}`);
    t.shape = d.shape.slice(0, d.rank);
    t.elems = product(t.shape);
    must(!d.shape.slice(d.rank).some((n) => n), `${t.label} has dimensions beyond rank ${d.rank}`);
    must(t.shape.every((n) => n), `${t.label} has a dimension of 0, want at least 1`);
    must(t.elems <= MAX_ELEMS, `${t.label}: the product of its shape is ${t.elems}, want at most ${MAX_ELEMS}`);
    must(d.group < this.groups.length, `${t.label} is of group ${d.group}, which there is not`);
    t.array = ARRAYS[d.dtype];
    t.size = t.array.BYTES_PER_ELEMENT;
    t.agents = d.flags & ABI.TENSOR_PER_AGENT ? this.groups[d.group].agents : 1;
    if (role) this.checkTensor(t, d, role);
    return t;
  }

  checkTensor(t, d, role) {
    const says = (holds, text) => must(holds, `${t.label} ${text}`), gather = d.flags & ABI.TENSOR_GATHER;
    says(!(d.flags & ~KNOWN), `has unknown flags 0x${(d.flags & ~KNOWN).toString(16)}`);
    says(blank(d), "has reserved bytes that are not 0");
    says((d.flags & ABI.TENSOR_TIME) === role.rows, "has another axis of time than its role");
    says(role.types.includes(d.dtype) && (!role.scalar || !t.shape.length), `has dtype ${d.dtype} and the shape ${t.shape}`);
    says(!(role.required && d.flags & ABI.TENSOR_OPTIONAL), "is required, and OPTIONAL");
    says(t.kind !== "active" || d.flags & ABI.TENSOR_PER_AGENT, "is of the environment, want one of each agent");
    says(t.kind !== "reset_info" || !gather, "has one row in an episode, and a flag that gathers several");
    says(!t.kind.endsWith("info") || d.rank <= 1, `has rank ${d.rank}`);
    says(!(gather & gather - 1), "has several ways to gather");
    says(!(d.flags & IMAGE) || (d.flags & IMAGE) !== IMAGE && d.rank === 3, `is a picture of rank ${d.rank}, want 3 and one order of its axes`);
    says(["action_mask", "final_observation"].includes(t.kind) || !d.pair, "has a pair");
    says(Number.isFinite(d.scale) && d.scale >= 0, `has the scale ${d.scale}`);
    if (d.n || d.values && d.dtype !== F32) {
      says(d.dtype !== F32, "has choices of a float type");
      says(!(d.n && d.values), "has a number of values and one of each element");
      t.counts = d.n ? Array(t.elems).fill(d.n) : this.numbers(t, "getUint32", t.elems);
      says(t.counts.every((n) => n > 0), "has an element with no values");
      const [low, high] = LIMITS[d.dtype], most = t.counts.reduce((a, b) => Math.max(a, b));
      says(low <= d.start && d.start + most - 1 <= high, "has values outside of its type");
      says(!(d.flags & ABI.TENSOR_BINARY) || d.n === 2, `is binary with ${d.n} values`);
      return;
    }
    says(t.kind !== "action" || d.dtype === F32, `is a Box of dtype ${d.dtype}`);
    const bounds = d.values ? this.numbers(t, "getFloat32", 2 * t.elems) : null;
    const each = (none, whole, from, infinite) => d.flags & none ? Array(t.elems).fill(infinite) : bounds ? bounds.slice(from, from + t.elems) : Array(t.elems).fill(whole);
    t.low = each(ABI.TENSOR_NO_LOW, d.low, 0, -Infinity);
    t.high = each(ABI.TENSOR_NO_HIGH, d.high, t.elems, Infinity);
    says(t.low.every((low, i) => low <= t.high[i]), "has bounds that are NaN or reversed");
  }

  numbers(t, get, n) {
    const at = t.d.values;
    must(at % 4 === 0 && this.h.size <= at && at + 4 * n <= this.blob.length, `${t.label} has values outside the description`);
    return Array.from({ length: n }, (_, i) => this.view[get](at + 4 * i, true));
  }

  /** What the tensors of a group have to be to each other. */
  checkGroup(g) {
    const of = {};
    for (const role of Object.values(ROLES)) {
      const have = of[role.name] = this.tensors.filter((t) => t.role === role && t.d.group === g);
      must(have.length || !role.required, `group ${g} has no tensor with role ${role.name}`);
      must((role.many || have.length < 2) && unique(have.map((t) => t.path)), `two tensors with role ${role.name} and one path`);
      must(have.every((t, i) => t.d.index === i), `an index of ${role.name} does not count up from 0`);
    }
    for (const [role, other] of [["final_observation", "observation"], ["action_mask", "action"]]) {
      must(unique(of[role].map((t) => t.d.pair)), `two tensors with role ${role} of one ${other}`);
      for (const t of of[role]) {
        must(t.d.pair < of[other].length, `${t.label} is of ${other} ${t.d.pair}, which there is not`);
        const o = t.other = of[other][t.d.pair], want = other === "observation" ? o.elems : (o.counts ?? []).reduce((a, b) => a + b, 0);
        must(t.elems === want && (other === "action" || t.d.dtype === o.d.dtype), `${t.label} has ${t.elems} elements, want ${want}`);
      }
    }
    must(!(this.h.autoreset & ABI.AUTORESET_SAME_STEP) || of.final_observation.length === of.observation.length, "same_step is offered, and an observation has no final_observation");
  }

  readArguments(args) {
    this.args = new Map(args.map((a) => [this.string(a.name), a]));
    must(this.args.size === args.length && args.length <= 256 && ![...this.args.keys()].some((n) => n.includes("=") || !n), "names of arguments are not unique");
    for (const [name, a] of this.args) {
      must(blank(a), `the argument ${name} has reserved bytes that are not 0`);
      if (a.kind > ABI.ARG_CHOICE) continue; // it is of a later version: a text
      must(a.kind, `the argument ${name} has no type`);
      must(a.min <= a.max, `the argument ${name} has the bounds ${a.min} and ${a.max}`);
      must(a.kind !== ABI.ARG_CHOICE || this.string(a.choices), `the argument ${name} has no choices`);
      const usual = this.string(a.value);
      if (usual) this.written(name, usual);
    }
  }

  /** A value of an argument as the guest reads it: parsed by its type and written anew. */
  written(name, text) {
    must(!this.args.size || this.args.has(name), `there is no argument ${name}; there are ${[...this.args.keys()].sort().join(", ")}`);
    const a = this.args.get(name);
    if (a?.kind === ABI.ARG_INTEGER || a?.kind === ABI.ARG_NUMBER) {
      const hex = text.match(/^([+-]?)0x([\da-f]*)\.?([\da-f]*)p([+-]?\d+)$/i), value = /^\s*$/.test(text) ? NaN : !hex ? Number(text)
        : Number(`${hex[1]}1`) * parseInt(hex[2] + hex[3], 16) * 2 ** (Number(hex[4]) - 4 * hex[3].length);
      must(Number.isFinite(value) && (a.kind === ABI.ARG_NUMBER || Number.isInteger(value)), `${name} is ${text}, which is no number of its type`);
      must(a.min === 0 && a.max === 0 || a.min <= value && value <= a.max, `${name} is ${text}, want ${a.min} to ${a.max}`);
      return String(value);
    }
    must(a?.kind !== ABI.ARG_BOOL || text === "true" || text === "false", `${name} is ${text}, want true or false`);
    must(a?.kind !== ABI.ARG_CHOICE || this.string(a.choices).split("\n").includes(text), `${name} is ${text}, which is no choice`);
    must(!text.includes("\n"), `${name} has several lines`);
    return text;
  }
}
