// Lander, as lander-c: sines and cosines of rl_math.h.
import { Env, F32, Picture, Result, Rng, View, box, discrete, environment } from "rlhost-env";
import { cos, sin } from "rlhost-env/math";
export * from "rlhost-env/exports";

class Lander extends Env {
  x: f64 = 0;
  y: f64 = 0;
  vx: f64 = 0;
  vy: f64 = 0;
  angle: f64 = 0;
  turn: f64 = 0;
  steps: i32 = 0;

  look(view: View): void {
    view.obs.set<f32>(0, <f32>this.x);
    view.obs.set<f32>(1, <f32>this.y);
    view.obs.set<f32>(2, <f32>this.vx);
    view.obs.set<f32>(3, <f32>this.vy);
    view.obs.set<f32>(4, <f32>this.angle);
    view.obs.set<f32>(5, <f32>this.turn);
  }

  reset(rng: Rng, view: View): void {
    this.x = rng.uniform(-0.5, 0.5);
    this.y = 1;
    this.vx = rng.uniform(-0.02, 0.02);
    this.vy = 0;
    this.angle = rng.uniform(-0.3, 0.3);
    this.turn = 0;
    this.steps = 0;
    this.look(view);
  }

  step(rng: Rng, view: View, out: Result): void {
    const move = view.action.get<i32>();
    const main: f64 = move == 2 ? 0.004 : 0.0, side: f64 = move == 1 ? 0.01 : move == 3 ? -0.01 : 0.0;
    this.vx = this.vx - main * sin(this.angle);
    this.vy = this.vy + main * cos(this.angle) - 0.0015;
    this.turn = this.turn + side;
    this.x = this.x + this.vx;
    this.y = this.y + this.vy;
    this.angle = this.angle + this.turn;
    this.steps++;
    this.look(view);
    const down = this.y <= 0, lost = Math.abs(this.x) > 1.5 || this.y > 2 || Math.abs(this.angle) > 3;
    const soft = this.vy > -0.04 && Math.abs(this.angle) < 0.3 && Math.abs(this.x) < 0.4;
    out.reward = down && soft ? 1 : down || lost ? -1 : move ? -0.001 : 0;
    out.terminated = down || lost;
    out.truncated = this.steps >= 300;
  }

  draw(p: Picture): void {
    p.rect(0, 0, 60, 40, 0x101820);
    p.rect(22, 38, 16, 2, 0x808080);
    p.disc(30 + <f32>this.x * 20, 36 - <f32>this.y * 16, 2.5, 0xffcc00);
  }

  render(): string { return `step ${this.steps} of 300`; }
}

const spec = environment<Lander>("lander@1").act(discrete(4)).see(box(F32, 0, 0, [6])).picture(60, 40, 30);
spec.limit = 300;
spec.text = true;
