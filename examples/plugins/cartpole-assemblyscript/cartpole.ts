// CartPole-v1 with Gymnasium's equations in float32. Every operation is a single IEEE operation in the order that the other languages
// share, so that the same seeds give the same bits in all of them.
import { Config, Env, F32, INTEGER, Result, Rng, Spec, View, box, discrete, environment, fail } from "rlhost-env";
export * from "rlhost-env/exports";

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and lengths occur folded
// into these, each rounded once.
const GRAVITY: f32 = 9.8;
const LEFT_BITS: u32 = 0xc111745d; // -10 / 1.1, force over total mass; action 1 turns the sign
const POLE_RATIO: f32 = 0.045454547; // pole mass times half length, over total mass
const LENGTH_FULL: f32 = 0.6666667; // half length times 4/3
const TAU: f32 = 0.02;
const X_LIMIT_BITS: u32 = 0x4019999a; // 2.4
const THETA_LIMIT_BITS: u32 = 0x3e567750; // 12 degrees
const ABS_BITS: u32 = 0x7fffffff;

// Coefficients of sine and cosine.
const ONE: f32 = 1;
const S3: f32 = -1.0 / 6.0;
const S5: f32 = 1.0 / 120.0;
const S7: f32 = -1.0 / 5040.0;
const C2: f32 = -0.5;
const C4: f32 = 1.0 / 24.0;
const C6: f32 = -1.0 / 720.0;

class CartPole extends Env {
  x: f32 = 0;
  xDot: f32 = 0;
  theta: f32 = 0;
  thetaDot: f32 = 0;
  steps: u32 = 0;
  maxSteps: u32 = 0;

  setup(config: Config): void {
    const limit = config.integer("max_steps", 500);
    if (limit < 1 || limit > 0x7fffffff) fail("max_steps must be 1 to 2147483647");
    this.maxSteps = <u32>limit;
  }

  reset(rng: Rng, view: View): void {
    this.x = rng.uniform(-0.05, 0.05);
    this.xDot = rng.uniform(-0.05, 0.05);
    this.theta = rng.uniform(-0.05, 0.05);
    this.thetaDot = rng.uniform(-0.05, 0.05);
    this.steps = 0;
    const obs = view.obs;
    obs.set<f32>(0, this.x);
    obs.set<f32>(1, this.xDot);
    obs.set<f32>(2, this.theta);
    obs.set<f32>(3, this.thetaDot);
  }

  // Fields are read and written once, the last one first: a sandbox checks the highest address alone.
  @inline step(rng: Rng, view: View, out: Result): void {
    const steps = this.steps + 1, thetaDot = this.thetaDot, theta = this.theta, xDot = this.xDot, x = this.x;
    const force = reinterpret<f32>((view.action.get<u32>() << 31) ^ LEFT_BITS);
    const square = theta * theta;
    const sine = theta * (ONE + square * (S3 + square * (S5 + square * S7)));
    const cosine = ONE + square * (C2 + square * (C4 + square * C6));
    const push = force + POLE_RATIO * (thetaDot * thetaDot) * sine;
    const thetaAcc = (GRAVITY * sine - cosine * push) / (LENGTH_FULL - POLE_RATIO * (cosine * cosine));
    const xAcc = push - POLE_RATIO * (thetaAcc * cosine);
    const newX = x + TAU * xDot, newXDot = xDot + TAU * xAcc;
    const newTheta = theta + TAU * thetaDot, newThetaDot = thetaDot + TAU * thetaAcc;
    this.steps = steps;
    this.thetaDot = newThetaDot;
    this.theta = newTheta;
    this.xDot = newXDot;
    this.x = newX;
    const obs = view.obs;
    obs.set<f32>(3, newThetaDot);
    obs.set<f32>(2, newTheta);
    obs.set<f32>(1, newXDot);
    obs.set<f32>(0, newX);
    out.reward = 1;
    // A state that is not a number has large bits, so it also ends its episode.
    out.terminated = (reinterpret<u32>(newX) & ABS_BITS) > X_LIMIT_BITS || (reinterpret<u32>(newTheta) & ABS_BITS) > THETA_LIMIT_BITS;
    out.truncated = steps >= this.maxSteps;
  }

  // The state and steps; the SDK adds flags and random stream.
  saveBytes(): i32 {
    return 20;
  }

  save(to: usize): void {
    memory.copy(to, changetype<usize>(this), 20);
  }

  load(from: usize): bool {
    if (load<u32>(from, 16) > this.maxSteps) return false;
    memory.copy(changetype<usize>(this), from, 20);
    return true;
  }
}

const spec = environment<CartPole>("cartpole@1").act(discrete(2)).see(box(F32, 0, 0, [4]))
  .arg("max_steps", INTEGER, "500", "steps after which an episode is truncated", 1, 0x7fffffff);
spec.describe = (config: Config, spec: Spec): void => {
  spec.limit = <u32>config.integer("max_steps", 500);
};
