// Spaces, as sanity-c/spaces.c: a Dict of three observations.
import { Env, I8, Result, Rng, View, box, discrete, environment, image, multiDiscrete } from "rlhost-env";
export * from "rlhost-env/exports";

class Spaces extends Env {
  white: i32 = 0;
  positive: i32 = 0;
  clue: i32 = 0;

  reset(rng: Rng, view: View): void {
    const picture = view.seen("picture"), numbers = view.seen("notes/numbers");
    const bits = rng.next();
    let white = 0, sum = 0;
    for (let i = 0; i < 25; i++) {
      const lit = <i32>((bits >> i) & 1);
      white += lit;
      picture.set<u8>(i, lit ? 255 : 0);
    }
    for (let i = 0; i < 5; i++) {
      const number = <i32>rng.below(21) - 10;
      sum += number;
      numbers.set<i8>(i, <i8>number);
    }
    this.white = <i32>(white > 12);
    this.positive = <i32>(sum > 0);
    this.clue = rng.below(3);
    view.seen("notes/clue").set<i32>(0, this.clue);
  }

  // step shows the next questions already: what is seen at the end of an episode matters to nobody.
  step(rng: Rng, view: View, out: Result): void {
    const a = view.action;
    const right = <i32>(a.get<i32>(0) == this.white) + <i32>(a.get<i32>(1) == this.positive) + <i32>(a.get<i32>(2) == this.clue);
    out.reward = <f32>right / 3;
    out.terminated = true;
    this.reset(rng, view);
  }
}

environment<Spaces>("spaces@1").act(multiDiscrete([2, 2, 3]))
  .see(image(5, 5, 1), "picture").see(box(I8, -10, 10, [5]), "notes/numbers").see(discrete(3), "notes/clue").limit = 1;
