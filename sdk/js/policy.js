// A policy as rlhost export --format wasm writes it: a module that has everything between observations and actions.
import { must } from "./module.js";

const OBS = 0, MASK = 1, ACTIONS = 2;
const pathOf = (t, name) => t.path || (t.d.index ? `${name}/${t.d.index}` : name);

/** A policy that plays one agent of an Env: about says where it comes from. */
export class Policy {
  constructor(bytes) {
    const module = new WebAssembly.Module(bytes), [section] = WebAssembly.Module.customSections(module, "rlhost.policy");
    must(section, "the module has no description of a policy");
    const { network, inputs, about } = JSON.parse(new TextDecoder().decode(section));
    this.about = about;
    this.inputs = network.inputs.filter((input) => (inputs ?? [input.path]).includes(input.path));
    this.exports = new WebAssembly.Instance(module).exports;
    this.begin();
  }

  /** Begins an episode. */
  begin() {
    this.exports.rl_policy_reset();
    this.frames = this.last = null;
  }

  /** The most probable actions of an agent of a group now: the numbers of its actions, one after the other. */
  act(env, e = 0, group = 0, agent = 0) {
    this.frames = this.inputs.map((input, k) => {
      const now = this.frame(input, env, e, group, agent);
      return this.frames ? [...this.frames[k].slice(1), now] : Array(input.stack || 1).fill(now);
    });
    this.view(Float32Array, OBS, "obs").set(this.frames.flat(2));
    let at = 0;
    for (const t of env.of("action", group)) {
      const mask = env.of("action_mask", group).find((m) => m.other === t);
      if (mask) this.view(Uint8Array, MASK, "mask").set(env.row(mask, e, agent), at);
      for (const n of t.counts ?? []) at += n;
    }
    return [...this.view(Float32Array, ACTIONS, "act")];
  }

  /** Says what the agent did in the step, whoever chose it, and its reward. */
  did(actions, reward) { this.last = { actions, reward }; }

  frame(input, env, e, group, agent) {
    const elems = input.shape.reduce((a, b) => a * b, 1);
    if (!input.from) {
      const t = env.of("observation", group).find((t) => pathOf(t, "obs") === input.path);
      must(t, `the environment has no observation ${input.path}`);
      return env.row(t, e, t.agents > 1 ? agent : 0);
    }
    if (!this.last) return Array(elems).fill(NaN);
    if (input.from === "last_reward") return [this.last.reward];
    const before = env.of("action", group).slice(0, Number(input.path.split("/")[1] ?? 0)).reduce((n, t) => n + t.elems, 0);
    return this.last.actions.slice(before, before + elems);
  }

  view(array, kind, name) {
    const at = this.exports["rl_policy_" + name]();
    return new array(this.exports.memory.buffer, at, this.exports.rl_policy_count(kind));
  }
}
