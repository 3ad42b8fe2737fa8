// Runs the conformance set of hostabi/conformance on the host of this folder: node conformance.js [CASE ...]
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { ABI, Env, Fault, Refused } from "./env.js";

const SET = new URL("../../hostabi/conformance/", import.meta.url);
const MODES = { same_step: ABI.AUTORESET_SAME_STEP, next_step: ABI.AUTORESET_NEXT_STEP, disabled: ABI.AUTORESET_DISABLED };
const module = (name) => readFileSync(new URL(name + ".wasm", SET));
const json = (name) => JSON.parse(readFileSync(new URL(name, SET)));
const want = (holds, text) => { if (!holds) throw new Error(text); };
const same = (have, expected, what) => want(isDeepStrictEqual(have, expected), `${what} is ${JSON.stringify(have)}, want ${JSON.stringify(expected)}`);

/** The value of an element for the 0 or 1 of a trace. */
function chosen(t, i, action) {
  if (t.counts) return t.d.start + action * (t.counts[i] - 1);
  return action ? Number.isFinite(t.high[i]) ? t.high[i] : 8 : Number.isFinite(t.low[i]) ? t.low[i] : -8;
}

/** The trace of a mode, compared row by row. After each step the case's own part. */
function play(env, test, trace) {
  const each = (rows) => Array.from({ length: env.n }, (_, e) => rows.slice(e * rows.length / env.n, (e + 1) * rows.length / env.n));
  const compare = (tensors, row, rows) => {
    if (test.trace === false) return;
    for (const t of tensors) {
      each(rows).forEach((of, e) => {
        for (let a = 0; a < t.agents; a++) {
          const expected = of[of.length > 1 ? a : 0];
          if (expected) same(env.row(t, e, a, row).slice(0, 2), expected.slice(0, Math.min(2, t.elems)), `${t.label} ${t.path} of env ${e}, agent ${a}`);
        }
      });
    }
  };
  env.reset(trace.seeds);
  compare(env.of("observation"), env.t, trace.obs[0]);
  let over = [false, false];
  trace.actions.forEach((actions, i) => {
    env.act((t, e, _a, k) => chosen(t, k, each(actions)[e][0]));
    if (test.name.startsWith("action-outside")) outside(env, test, over[1] && env.mode === MODES.next_step);
    const step = env.step();
    over = step.over;
    for (const group of step.groups) {
      for (const name of ["reward", "terminated", "truncated"]) {
        group[name].forEach((have, e) => { const of = each(trace[name][i])[e]; same(have, have.map((_, a) => of[of.length > 1 ? a : 0]), `step ${i}: ${name} of env ${e}`); });
      }
    }
    compare(env.of("final_observation"), 0, trace.final[i]);
    if (over.some(Boolean) && test.name in ENDS) env = ENDS[test.name](env) ?? env;
    if (env.mode === MODES.disabled && over.some(Boolean)) env.reset(undefined, over);
    compare(env.of("observation"), env.t, trace.obs[i + 1]);
    EXTRAS[test.name]?.(env, i, over);
  });
}

function fails(word, f) {
  try { f(); } catch (e) {
    if (e instanceof Fault) return want(e.message.includes(word), `${e.message}: want ${word}`);
    throw e;
  }
  throw new Error(`no error, want ${word}`);
}

/** An action outside its space, of the last agent of environment 1, is refused; that of an environment that waits is not read. */
function outside(env, test, waits) {
  const t = env.of("action").at(-1), legal = env.get(t, env.t, 1, t.agents - 1, 0);
  env.set(t, env.t, 1, t.agents - 1, 0, 7);
  if (waits) return;
  for (const word of test.says) fails(word, () => env.step());
  env.set(t, env.t, 1, t.agents - 1, 0, legal);
}

const rows = (env, kind, row = env.t) => env.of(kind).map((t) => Array.from({ length: env.n }, (_, e) => env.row(t, e, 0, row)));

/** Two steps in which all environments wait for their reset: there is nothing but the same observation. */
function waiting(env) {
  for (const action of [9, 1]) {
    const last = rows(env, "observation");
    env.act(() => action);
    const { groups, over } = env.step();
    want(!groups.some((g) => [g.reward, g.terminated, g.truncated].flat(2).some(Boolean)) && !over.some(Boolean), "a step while it waits has a reward or a flag");
    same(rows(env, "observation"), last, "what a step while it waits shows");
  }
}

/** Another instance, with the states of this one, and its observations. */
function elsewhere(env) {
  const other = new Env(module("save-waiting"), { mode: env.mode, envs: 2 });
  other.reset([5, 6]);
  for (let e = 0; e < env.n; e++) other.load(e, env.save(e));
  env.of("observation").forEach((t, k) => env.each(t, (e, a, i) => other.set(other.of("observation")[k], other.t, e, a, i, env.get(t, env.t, e, a, i))));
  if (env.mode === MODES.disabled) waiting(other);
  return other;
}

/** Actions at the bounds and far beyond them, clipped, in steps of their own. */
function boxed(env, i) {
  for (const far of i === 8 ? [-1e9, -1.5, 1.5, 1e9] : []) {
    env.act((t, _e, _a, k) => Math.min(Math.max(far, t.low[k]), t.high[k]));
    env.step();
  }
}

function render(env, i) {
  if (i) return;
  same(env.render(1, ABI.RENDER_TEXT), "age 1", "the text");
  for (const [mode, channels] of [[ABI.RENDER_RGB, 3], [ABI.RENDER_RGBA, 4]]) {
    for (const camera of [0, 1]) same([...env.render(1, mode, camera)], Array(8 * channels).fill(1 + camera), `mode ${mode}, camera ${camera}`);
  }
  fails("rl_render", () => env.render(1, ABI.RENDER_RGB, 2));
}

function save(env, i) {
  if (i !== 8) return;
  const state = env.save(0), bad = state.slice();
  env.load(1, state);
  same(env.save(1), state, "a loaded state");
  bad[0] ^= 1;
  fails("another version", () => env.load(1, bad));
  same(env.save(1), state, "the state after one that was refused");
}

function metric(env, i) {
  const flags = Object.entries({ last: 0, sum_: 0x2000, mean: 0x4000, max_: 0x8000, min_: 0x10000 });
  if (!i) same(env.metrics, new Map(flags.map(([n, f]) => [n, new Map([[0, [0, f]], [1, [10, f]]])])), "the metrics");
}

/** The infos of the first of n environments, step by step. */
function drawn(n, trace) {
  const env = new Env(module("random"), { envs: n });
  env.reset(trace.seeds.slice(0, n));
  return trace.actions.flatMap((actions) => {
    env.act((t, e, _a, k) => chosen(t, k, actions[e]));
    env.step();
    return [...env.infos().values()].map((x) => x[0]);
  });
}

const masks = (env) => rows(env, "action_mask").flat();
const short = (word, f) => (env) => fails(word, () => f(env));
const EXTRAS = {
  box: boxed, "box-elements": boxed, "box-half": boxed, "box-open": boxed, render, save, "metric-env": metric,
  "mask-elements": (env, _, over) => same(masks(env), Array(2).fill([1, Number(over.some(Boolean) && env.mode === MODES.next_step), 1, 1, 1]), "the masks"),
  "render-short": short("23 bytes, want 24", (env) => env.render(0, ABI.RENDER_RGB)), "render-grows": short("then 8", (env) => env.render(0, ABI.RENDER_TEXT)),
  "render-not-text": short("UTF-8", (env) => env.render(0, ABI.RENDER_TEXT)), "save-other-version": short("version 4", (env) => env.save(0)),
  "save-wrong-length": short("11 bytes", (env) => env.save(0)), "save-too-long": short("16 bytes at most", (env) => env.save(0)), "save-headless": short("state", (env) => env.save(0)),
  "info-end": (env, _, over) => env.infos().forEach((x) => over.forEach((ended, e) => want(!ended || x[e] === 3, `the info is ${x}`))),
  "metric-names": (env, i) => i || want(env.metrics.size === 256 && env.metrics.has("a".repeat(128)) && env.metrics.has("PO"), `${env.metrics.size} names`),
  "info-many": (env, i) => i || same([env.infos().size, env.infos().get("seen/0"), env.infos().get("seen/255")], [256, [0, 0], [255, 255]], "the infos"),
  discount: (env) => env.of("discount").forEach((t) => env.each(t, (e, a) => same(env.get(t, env.t - 1, e, a, 0), 0.5, "the discount"))),
  "reset-info": (env, i) => i || same(env.of("reset_info").map((t) => [0, 1].map((e) => env.get(t, 0, e, 0, 0))), [[3, 6]], "the info at reset"),
  figures: (env) => same([env.spec.name, env.spec.version, env.spec.h.reward_threshold], ["conformance", "1", 0.5], "the head"),
  minimal: (env) => same(env.spec.h.reward_threshold, NaN, "the threshold"), dt: (env) => same(env.spec.h.dt, Math.fround(0.01), "dt"),
  keys: (env) => same(env.spec.keys, "left=0\nright=1", "the keys"),
  "agent-names": (env) => same(env.spec.groups[0].names, ["red", "blue"], "the names"),
};
const ENDS = { waiting, "save-waiting": elsewhere, "mask-elements": (env) => want(env.mode === MODES.same_step || !masks(env).flat().includes(0), "a mask behind an end is not all 1") };

/** Runs a case in each of its modes: what it should have done otherwise is an Error. */
function run(test) {
  const traces = json("traces.json");
  for (const mode of test.modes ?? ["same_step"]) {
    const trace = traces[test.name] ?? traces[mode];
    let outcome = "runs", said = "";
    try {
      const params = test.name === "reset-param" ? { wind: [0.25, 4] } : {};
      play(new Env(module(test.name), { args: test.args, grants: test.grants, envs: 2, mode: MODES[mode], params }), test, trace);
      if (test.name === "random") {
        const [both, alone, again] = [2, 1, 1].map((n) => drawn(n, trace));
        want(isDeepStrictEqual(both, alone) && isDeepStrictEqual(alone, again) && new Set(alone).size > 1, `the first environment draws ${both}, alone ${alone} and then ${again}`);
      }
    } catch (e) {
      if (!(e instanceof Refused || e instanceof Fault)) throw e;
      [outcome, said] = [e instanceof Refused ? "refused" : "fault", e.message];
    }
    want(outcome === test.outcome || test.more && outcome === "runs", `${mode}: ${outcome} (${said}), want ${test.outcome}`);
  }
}

const cases = json("cases.json").filter((c) => process.argv.length < 3 || process.argv.includes(c.name));
let failed = 0;
for (const test of cases) {
  try { run(test); } catch (e) {
    failed++;
    console.log(`${test.name}: ${e.stack}`);
  }
}
console.log(`${cases.length - failed} of ${cases.length} cases as the set says`);
process.exitCode = failed > 0 || !cases.length ? 1 : 0;
