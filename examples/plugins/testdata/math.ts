// Shows the bits of rlhost-env/math, as math.c shows the bits of rl_math.h.
import { Config, Env, F32, Result, Rng, Spec, View, box, discrete, environment } from "rlhost-env";
import * as math from "rlhost-env/math";
export * from "rlhost-env/exports";

const SIZE: StaticArray<f64> = [1, 8, 1000, 1e7];

// floats is a sum of functions of floats; where it is no number it is the one NaN.
function floats(x: f64, y: f64): f64 {
  const a = <f64><f32>x, b = <f64><f32>y;
  const near = <f64><f32>math.tanh(a), other = <f64><f32>math.tanh(b), root = <f64><f32>math.sqrt(Math.abs(a));
  const sum = <f64><f32>math.sin(a) + <f64><f32>math.cos(b) + <f64><f32>math.tan(a) + <f64><f32>math.exp(other) +
    <f64><f32>math.ln(<f64>(<f32>Math.abs(a) + <f32>1)) + <f64><f32>math.atan2(a, b) + <f64><f32>math.asin(near) + <f64><f32>math.acos(other) +
    <f64><f32>math.atan(a) + <f64><f32>math.pow(root, other) + <f64><f32>math.fmod(a, b) + <f64><f32>math.floor(a) + <f64><f32>math.ceil(a) +
    <f64><f32>math.trunc(a) + <f64><f32>math.round(a);
  return sum == sum ? sum : reinterpret<f64>(0x7ff8000000000000);
}

function call(f: i32, x: f64, y: f64): f64 {
  switch (f) {
    case 0: return math.sin(x);
    case 1: return math.cos(x);
    case 2: return math.tan(x);
    case 3: return math.asin(x);
    case 4: return math.acos(x);
    case 5: return math.atan(x);
    case 6: return math.atan2(x, y);
    case 7: return math.exp(x);
    case 8: return math.ln(x);
    case 9: return math.pow(x, y);
    case 10: return math.sqrt(x);
    case 11: return math.tanh(x);
    case 12: return math.floor(x);
    case 13: return math.ceil(x);
    case 14: return math.trunc(x);
    case 15: return math.round(x);
    case 16: return math.fmod(x, y);
    default: return floats(x, y);
  }
}

function draw(rng: Rng): f64 {
  const bits = rng.next(), unit = <f64><i64>(rng.next() >> 11) * 1.1102230246251565e-16;
  switch (<i32>(bits & 7)) {
    case 0: return reinterpret<f64>(rng.next());
    case 1: return <f64><i64>(bits >> 40) * (math.PI / 2.0);
    case 2: return <f64><i32>(bits >> 32) / 2.0;
    case 3: return reinterpret<f64>(0x3ff0000000000000 + (bits >> 32)) - 1.0; // small
    default: return (2.0 * unit - 1.0) * SIZE[<i32>(bits & 3)];
  }
}

class Maths extends Env {
  function: i32 = 0;
  steps: i32 = 0;

  setup(config: Config): void {
    this.function = <i32>config.integer("function", 0);
  }
  reset(rng: Rng, view: View): void {
    this.steps = 0;
    for (let i = 0; i < 4; i++) view.obs.set<f32>(i, 0);
  }
  step(rng: Rng, view: View, out: Result): void {
    let hash: u64 = 0xCBF29CE484222325 + <u64>view.action.get<i32>();
    for (let i = 0; i < 64; i++) {
      const x = draw(rng), y = draw(rng);
      hash = Rng.mix(hash ^ reinterpret<u64>(call(this.function, x, y)));
    }
    for (let i = 0; i < 4; i++) view.obs.set<f32>(i, <f32>(hash >> (16 * i) & 0xffff));
    out.truncated = ++this.steps == 100;
  }
}

const spec = environment<Maths>("math@1").act(discrete(2)).see(box(F32, 0, 0, [4]));
spec.limit = 100;
