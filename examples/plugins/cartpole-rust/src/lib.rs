//! CartPole-v1 with Gymnasium's equations in float32. Every operation is a single IEEE operation in the order
//! that the C and Go versions share, so that the same seeds give the same bits in all of them.
//!
//!     cargo build --release --target wasm32-unknown-unknown

use rlhost_env::{abi, rl_env, Arg, Config, Env, Rng, Space, Spec, Step};

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and
// lengths occur folded into these, each rounded once.
const GRAVITY: f32 = 9.8;
const LEFT_BITS: u32 = 0xc111_745d; // -10 / 1.1, force over total mass; action 1 turns the sign
const POLE_RATIO: f32 = 0.045454547; // pole mass times half length, over total mass
const LENGTH_FULL: f32 = 0.6666667; // half length times 4/3
const TAU: f32 = 0.02;
const X_LIMIT_BITS: u32 = 0x4019_999a; // 2.4
const THETA_LIMIT_BITS: u32 = 0x3e56_7750; // 12 degrees
const ABS_BITS: u32 = 0x7fff_ffff;

struct CartPole {
    state: [f32; 4], // x, x_dot, theta, theta_dot
    steps: u32,
    max_steps: u32,
}

fn max_steps(config: &mut Config) -> i64 {
    config.int("max_steps", 500)
}

impl Env for CartPole {
    type Action = i32;
    type Obs = f32;
    const OBS_ELEMS: usize = 4;

    fn spec(config: &mut Config) -> Spec {
        let limit = max_steps(config) as u32;
        let doc = "steps after which an episode is truncated";
        Spec::new("cartpole@1", Space::discrete(2), Space::boxed(0.0, 0.0, &[4]))
            .arg(Arg::new("max_steps", abi::ARG_INTEGER, "500", doc).within(1.0, i32::MAX as f64))
            .episode_limit(limit)
    }

    fn new(config: &mut Config) -> Result<Self, String> {
        match max_steps(config) {
            limit @ 1..=0x7fff_ffff => Ok(CartPole { state: [0.0; 4], steps: 0, max_steps: limit as u32 }),
            _ => Err("max_steps must be 1 to 2147483647".to_string()),
        }
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        for value in &mut self.state {
            *value = rng.uniform(-0.05, 0.05);
        }
        self.steps = 0;
        obs.copy_from_slice(&self.state);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        let [x, x_dot, theta, theta_dot] = self.state;
        let force = f32::from_bits((action[0] as u32) << 31 ^ LEFT_BITS);
        let square = theta * theta;
        let sine = theta * (1.0 + square * (-1.0 / 6.0 + square * (1.0 / 120.0 + square * (-1.0 / 5040.0))));
        let cosine = 1.0 + square * (-0.5 + square * (1.0 / 24.0 + square * (-1.0 / 720.0)));
        let push = force + POLE_RATIO * (theta_dot * theta_dot) * sine;
        let theta_acc = (GRAVITY * sine - cosine * push) / (LENGTH_FULL - POLE_RATIO * (cosine * cosine));
        let x_acc = push - POLE_RATIO * (theta_acc * cosine);
        let (x, theta) = (x + TAU * x_dot, theta + TAU * theta_dot);
        self.state = [x, x_dot + TAU * x_acc, theta, theta_dot + TAU * theta_acc];
        self.steps += 1;
        let row: &mut [f32; 4] = obs.try_into().expect("four elements");
        *row = self.state;
        // A state that is not a number has large bits, so it also ends its episode.
        let fell = x.to_bits() & ABS_BITS > X_LIMIT_BITS || theta.to_bits() & ABS_BITS > THETA_LIMIT_BITS;
        Step { reward: 1.0, terminated: fell, truncated: self.steps >= self.max_steps }
    }

    /// x, x_dot, theta, theta_dot (f32) and steps (u32); the SDK adds flags (u32) and random stream (u64).
    fn save(&self, to: &mut Vec<u8>) -> bool {
        self.state.iter().for_each(|value| to.extend_from_slice(&value.to_le_bytes()));
        to.extend_from_slice(&self.steps.to_le_bytes());
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        if from.len() != 20 {
            return false;
        }
        let word = |k: usize| u32::from_le_bytes([from[4 * k], from[4 * k + 1], from[4 * k + 2], from[4 * k + 3]]);
        if word(4) > self.max_steps {
            return false;
        }
        self.state = [0, 1, 2, 3].map(|k| f32::from_bits(word(k)));
        self.steps = word(4);
        true
    }
}

rl_env!(CartPole);
