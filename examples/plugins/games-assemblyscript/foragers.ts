// Foragers, as foragers-c: four agents, each of which begins anew at once.
import { Env, F32, Result, Rng, View, box, discrete, environment } from "rlhost-env";
export * from "rlhost-env/exports";

const FORAGERS = 4;
const CELLS = 16;
const FULL = 12;
const MEAL = 8;
const OLD = 32;

// A forager's numbers are fields of the environment, which is saved as its bytes: at, energy and age of each behind the food.
class Foragers extends Env {
  food: i32 = 0;
  at0: i32 = 0; at1: i32 = 0; at2: i32 = 0; at3: i32 = 0;
  energy0: i32 = 0; energy1: i32 = 0; energy2: i32 = 0; energy3: i32 = 0;
  age0: i32 = 0; age1: i32 = 0; age2: i32 = 0; age3: i32 = 0;

  @inline field(name: usize, k: i32): usize { return changetype<usize>(this) + name + 4 * k; }
  at(k: i32): i32 { return load<i32>(this.field(offsetof<Foragers>("at0"), k)); }
  energy(k: i32): i32 { return load<i32>(this.field(offsetof<Foragers>("energy0"), k)); }
  age(k: i32): i32 { return load<i32>(this.field(offsetof<Foragers>("age0"), k)); }
  become(k: i32, at: i32, energy: i32, age: i32): void {
    store<i32>(this.field(offsetof<Foragers>("at0"), k), at);
    store<i32>(this.field(offsetof<Foragers>("energy0"), k), energy);
    store<i32>(this.field(offsetof<Foragers>("age0"), k), age);
  }

  born(rng: Rng, k: i32): void {
    this.become(k, rng.below(CELLS), FULL, 0);
  }

  look(view: View, k: i32): void {
    view.obs.set<f32>(0, <f32>this.at(k), k);
    view.obs.set<f32>(1, <f32>(this.food - this.at(k)), k);
    view.obs.set<f32>(2, <f32>this.energy(k), k);
  }

  reset(rng: Rng, view: View): void {
    this.food = rng.below(CELLS);
    for (let k = 0; k < FORAGERS; k++) this.born(rng, k);
    for (let k = 0; k < FORAGERS; k++) this.look(view, k);
  }

  advance(rng: Rng, k: i32, move: i32, out: Result): void {
    const at = this.at(k) + move - 1, age = this.age(k) + 1;
    let energy = this.energy(k) - 1;
    if (at == this.food) {
      out.reward = 1;
      energy = min(energy + MEAL, FULL);
      this.food = rng.below(CELLS);
    }
    if (at < 0 || at >= CELLS || energy == 0) {
      out.reward = -1;
      out.terminated = true;
    }
    out.truncated = age >= OLD;
    this.become(k, at, energy, age);
  }

  step(rng: Rng, view: View, out: Result): void {
    for (let k = 0; k < FORAGERS; k++) this.advance(rng, k, view.action.get<i32>(0, k), view.out[k]);
    for (let k = 0; k < FORAGERS; k++) this.look(view, k);
    for (let k = 0; k < FORAGERS; k++) {
      if (!view.out[k].terminated && !view.out[k].truncated) continue;
      view.last(k);
      this.born(rng, k);
      this.look(view, k);
    }
  }
}

const spec = environment<Foragers>("foragers@1").act(discrete(3)).see(box(F32, -16, 16, [3]));
spec.agents = FORAGERS;
spec.respawn = true;
