//! tuple@1 in Rust: it writes the same bits.

use rlhost_env::{rl_env, Config, Element, Env, Rng, Space, Spec, Step};
use std::mem::offset_of;

const LAMPS: usize = 3;
const GEARS: i32 = 3;
const LOWEST: i32 = -1;

#[derive(Clone, Copy, Default)]
struct Move {
    lamps: [i32; LAMPS],
    gear: i32,
    wheel: f32,
}

impl Element for Move {}

#[derive(Default)]
struct Tuple {
    lamps: [i32; LAMPS],
    gear: i32,
    stuck: i32,
    barred: i32,
    wheel: f32,
}

impl Env for Tuple {
    type Action = Move;
    type Obs = f32;
    const MASKED: bool = true;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("tuple@1", Space::default(), Space::boxed(-1.0, 1.0, &[LAMPS as u32 + 2]))
            .act::<i32>(offset_of!(Move, lamps), "lamps", Space::multi_binary(LAMPS as u32))
            .act::<i32>(offset_of!(Move, gear), "drive/gear", Space::discrete(GEARS as u32).from(LOWEST))
            .act::<f32>(offset_of!(Move, wheel), "drive/wheel", Space::boxed(-1.0, 1.0, &[1]))
            .episode_limit(1)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Tuple::default())
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        let bits = rng.next();
        for (i, lamp) in self.lamps.iter_mut().enumerate() {
            *lamp = (bits >> i & 1) as i32;
            obs[i] = *lamp as f32;
        }
        let gear = rng.below(GEARS as u32) as i32;
        self.gear = gear + LOWEST;
        self.stuck = rng.below(LAMPS as u32) as i32;
        self.barred = (gear + 1 + rng.below(GEARS as u32 - 1) as i32) % GEARS + LOWEST;
        self.wheel = rng.uniform(-1.0, 1.0);
        obs[LAMPS] = self.gear as f32;
        obs[LAMPS + 1] = self.wheel;
    }

    fn step(&mut self, rng: &mut Rng, action: &[Move], obs: &mut [f32]) -> Step {
        let Move { lamps, gear, wheel } = action[0];
        let lit = lamps.iter().zip(&self.lamps).filter(|(a, b)| a == b).count();
        let right = lit as i32 + (gear == self.gear) as i32;
        let near = (1.0 - (wheel - self.wheel).abs()).max(0.0);
        self.reset(rng, obs);
        Step { reward: (right as f32 + near) / (LAMPS + 2) as f32, terminated: true, ..Step::default() }
    }

    fn mask(&self, legal: &mut [u8]) {
        for (k, legal) in legal.iter_mut().enumerate() {
            let (lamp, on) = (k / 2, (k % 2) as i32);
            *legal = match self.lamps.get(lamp) {
                Some(wanted) => lamp as i32 != self.stuck || on == *wanted,
                None => (k - 2 * LAMPS) as i32 + LOWEST != self.barred,
            } as u8;
        }
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        for x in self.lamps.iter().chain(&[self.gear, self.stuck, self.barred]) {
            to.extend_from_slice(&x.to_le_bytes());
        }
        to.extend_from_slice(&self.wheel.to_le_bytes());
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        if from.len() != 28 {
            return false;
        }
        let bits = |k: usize| [from[4 * k], from[4 * k + 1], from[4 * k + 2], from[4 * k + 3]];
        let number = |k: usize| i32::from_le_bytes(bits(k));
        self.lamps = [number(0), number(1), number(2)];
        (self.gear, self.stuck, self.barred) = (number(3), number(4), number(5));
        self.wheel = f32::from_le_bytes(bits(6));
        true
    }
}

rl_env!(Tuple);
