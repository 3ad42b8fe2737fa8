/** One environment that policies and a person play. policies[k] plays agents of the group; who plays others draws its actions. */
class Game {
  constructor(module, { args, grants, group, seed }) {
    const mode = [ABI.AUTORESET_DISABLED, ABI.AUTORESET_NEXT_STEP, ABI.AUTORESET_SAME_STEP]; // in the first two the last picture of an episode can be seen
    this.env = new Env(module, { args, grants, mode });
    this.seats = this.env.spec.groups.flatMap((g, k) => g.names.map((name, agent) => ({ group: k, agent, name: g.name ? `${g.name}/${name}` : name, plays: k === group })));
    Object.assign(this, { seed, episode: -1, person: null, chosen: null, policies: [] });
    this.dice = random(seed);
  }

  /** Gives each agent of the policy's group an instance of a module. */
  use(module) {
    this.policies = this.seats.map((seat) => seat.plays ? new Policy(module) : null);
  }

  /** Begins the next episode. */
  begin() {
    this.episode++;
    Object.assign(this, { steps: 0, over: false, returns: this.seats.map(() => 0) });
    this.env.reset([BigInt(this.seed) + BigInt(this.episode)]);
    for (const policy of this.policies) policy?.begin();
  }

  /** Whether an agent acts in the next step. */
  acts(seat) {
    const [active] = this.env.of("active", seat.group);
    return !active || this.env.get(active, this.env.t, 0, seat.agent, 0) > 0;
  }

  /** Whether the step needs an action of the person. */
  waits() { return this.person !== null && this.acts(this.seats[this.person]); }

  /** Whether an agent may take an action now, by the masks. */
  legal(seat, action) {
    let at = 0;
    return this.env.of("action", seat.group).every((t) => {
      const numbers = action.slice(at, at += t.elems), mask = this.env.of("action_mask", seat.group).find((m) => m.other === t);
      let from = 0;
      return !mask || numbers.every((x, i) => this.env.get(mask, this.env.t, 0, seat.agent, (from += t.counts[i]) - t.counts[i] + x - t.d.start) > 0);
    });
  }

  /** Any legal action. */
  drawn(seat) {
    const choose = (n) => Number(this.dice.next().value % BigInt(n));
    return this.env.of("action", seat.group).flatMap((t) => {
      const mask = this.env.of("action_mask", seat.group).find((m) => m.other === t);
      let from = 0;
      return Array.from({ length: t.elems }, (_, i) => {
        if (!t.counts) return Math.max(t.low[i], Math.min(t.high[i], choose(2001) / 1000 - 1));
        const all = Array.from({ length: t.counts[i] }, (_, c) => c).filter((c) => !mask || this.env.get(mask, this.env.t, 0, seat.agent, from + c));
        from += t.counts[i];
        return t.d.start + all[choose(all.length)];
      });
    });
  }

  /** One step, in which the person takes the chosen action. It returns what each agent did, null for one that did not act. */
  step() {
    if (this.over) this.begin();
    const did = this.seats.map((seat, k) => {
      if (!this.acts(seat)) return null;
      const policy = this.policies[k]?.act(this.env, 0, seat.group, seat.agent); // where a person plays, it watches
      return k === this.person ? this.chosen : policy ?? this.drawn(seat);
    });
    const place = new Map(); // of an action's first number
    for (const [g] of this.env.spec.groups.entries()) this.env.of("action", g).reduce((at, t) => { place.set(t, at); return at + t.elems; }, 0);
    const first = this.env.spec.groups.map((_, g) => this.seats.findIndex((seat) => seat.group === g));
    this.env.act((t, _, agent, i) => did[first[t.d.group] + agent]?.[place.get(t) + i] ?? (t.counts ? t.d.start : Math.max(t.low[i], Math.min(t.high[i], 0))));
    const { groups, over } = this.env.step();
    this.rewards = this.seats.map((seat) => groups[seat.group].reward[0][seat.agent]);
    this.seats.forEach((_, k) => {
      this.returns[k] += this.rewards[k];
      if (did[k]) this.policies[k]?.did(did[k], this.rewards[k]);
    });
    this.steps++;
    this.over = over[0];
    return did;
  }
}

/** The keys of a person where the pipeline names none, and their actions: the same as play.DefaultKeys'. */
function defaultKeys(env, group) {
  const actions = env.of("action", group), [first] = actions, keys = {}, choices = first.counts?.[0] ?? 0;
  const rest = actions.flatMap((t) => Array.from({ length: t.elems }, (_, i) => t.counts ? t.d.start : Math.max(t.low[i], Math.min(t.high[i], 0))));
  const name = (key, i, x) => { keys[key] = rest.map((y, k) => k === i ? x : y); };
  for (let c = 0; c < Math.min(choices, 10); c++) name(c, 0, first.d.start + c);
  [["left", "right"], ["down", "up"]].slice(0, first.elems).forEach(([less, more], i) => {
    const n = first.counts?.[i], bounds = n ? [first.d.start, first.d.start + n - 1] : [first.low[i], first.high[i]];
    if (n > 3) return; // they have no order that is known
    name(less, i, Number.isFinite(bounds[0]) ? bounds[0] : Math.min(-1, bounds[1]));
    name(more, i, Number.isFinite(bounds[1]) ? bounds[1] : Math.max(1, bounds[0]));
    if (n === 3) rest[i] = first.d.start + 1;
  });
  if (!first.counts || choices > 2) keys.none = rest;
  return keys;
}
