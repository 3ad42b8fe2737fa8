// Tuple, as sanity-c/tuple.c: three actions of three kinds, and masks.
import { Env, F32, Result, Rng, View, box, discrete, environment, multiBinary } from "rlhost-env";
export * from "rlhost-env/exports";

class Tuple extends Env {
  lamp0: i32 = 0;
  lamp1: i32 = 0;
  lamp2: i32 = 0;
  gear: i32 = 0;
  stuck: i32 = 0;
  barred: i32 = 0;
  wheel: f32 = 0;

  lamp(i: i32): i32 {
    return i == 0 ? this.lamp0 : i == 1 ? this.lamp1 : this.lamp2;
  }

  reset(rng: Rng, view: View): void {
    const bits = rng.next();
    this.lamp0 = <i32>(bits & 1);
    this.lamp1 = <i32>((bits >> 1) & 1);
    this.lamp2 = <i32>((bits >> 2) & 1);
    const gear = rng.below(3);
    this.gear = <i32>gear - 1;
    this.stuck = rng.below(3);
    this.barred = <i32>((gear + 1 + rng.below(2)) % 3) - 1;
    this.wheel = rng.uniform(-1, 1);
    for (let i = 0; i < 3; i++) view.obs.set<f32>(i, <f32>this.lamp(i));
    view.obs.set<f32>(3, <f32>this.gear);
    view.obs.set<f32>(4, this.wheel);
  }

  mask(legal: StaticArray<u8>): void {
    for (let k = 0; k < 3; k++) {
      for (let on = 0; on < 2; on++) legal[2 * k + on] = <u8>(k != this.stuck || on == this.lamp(k));
      legal[6 + k] = <u8>(k - 1 != this.barred);
    }
  }

  // step shows the next panel already: what is seen at the end of an episode matters to nobody.
  step(rng: Rng, view: View, out: Result): void {
    const lamps = view.acted("lamps");
    let right = <i32>(view.acted("drive/gear").get<i32>() == this.gear);
    for (let i = 0; i < 3; i++) right += <i32>(lamps.get<i32>(i) == this.lamp(i));
    const away = abs<f32>(view.acted("drive/wheel").get<f32>() - this.wheel), near: f32 = away < 1 ? <f32>1 - away : 0;
    out.reward = (<f32>right + near) / 5;
    out.terminated = true;
    this.reset(rng, view);
  }
}

const spec = environment<Tuple>("tuple@1").see(box(F32, -1, 1, [5]))
  .act(multiBinary(3), "lamps").act(discrete(3).from(-1), "drive/gear").act(box(F32, -1, 1, [1]), "drive/wheel");
spec.limit = 1;
spec.masked = true;
