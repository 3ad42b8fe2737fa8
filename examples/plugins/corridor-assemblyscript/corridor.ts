// A corridor: the policy stands in one of its cells and must find the right end.
import { Config, Env, F32, Result, Rng, View, box, discrete, environment, fail } from "rlhost-env";
export * from "rlhost-env/exports";

class Corridor extends Env {
  length: i32 = 0;
  cell: i32 = 0;
  steps: i32 = 0;

  setup(config: Config): void {
    const length = config.integer("length", 8);
    if (length < 2 || length > 1000) fail("length must be 2 to 1000");
    this.length = <i32>length;
  }

  look(view: View): void {
    view.obs.set<f32>(0, <f32>this.cell / <f32>(this.length - 1));
  }

  reset(rng: Rng, view: View): void {
    this.cell = rng.below(this.length - 1); // anywhere but the end
    this.steps = 0;
    this.look(view);
  }

  step(rng: Rng, view: View, out: Result): void {
    this.cell = max(this.cell + (view.action.get<i32>() == 1 ? 1 : -1), 0);
    this.steps++;
    this.look(view);
    out.terminated = this.cell == this.length - 1;
    out.truncated = this.steps >= 50;
    out.reward = out.terminated ? 1 : -0.01;
  }
}

environment<Corridor>("corridor@1").act(discrete(2)).see(box(F32, 0, 1, [1])).limit = 50;
