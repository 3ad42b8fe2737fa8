//! forager.c in Rust: it writes the same bits.

use rlhost_env::{abi, rl_env, Config, Element, Env, Rng, Space, Spec, Step};
use std::mem::offset_of;

const SIDE: i32 = 5;

#[derive(Clone, Copy, Default)]
struct Seen {
    map: [u8; 25],
    gold: i32,
    place: [f32; 2],
}

impl Element for Seen {}

#[derive(Default)]
struct Forager {
    row: i32,
    column: i32,
    gold_row: i32,
    gold_column: i32,
    gold: i32,
    steps: i32,
    found: f32,
}

impl Forager {
    fn look(&self, seen: &mut Seen) {
        seen.map = [0; 25];
        seen.map[(self.gold_row * SIDE + self.gold_column) as usize] = 1;
        seen.map[(self.row * SIDE + self.column) as usize] = 2;
        seen.gold = self.gold;
        seen.place = [self.row, self.column].map(|at| at as f32 / (SIDE - 1) as f32);
    }

    fn bury(&mut self, rng: &mut Rng) {
        self.gold_row = rng.below(SIDE as u32) as i32;
        self.gold_column = rng.below(SIDE as u32) as i32;
    }
}

impl Env for Forager {
    type Action = i32;
    type Obs = Seen;
    const MASKED: bool = true;
    const DISCOUNTED: bool = true;

    fn spec(_: &mut Config) -> Spec {
        Spec::several("forager@1", Space::discrete(4))
            .observe::<u8>(offset_of!(Seen, map), "map", Space::boxed(0.0, 2.0, &[5, 5]))
            .observe::<i32>(offset_of!(Seen, gold), "inventory/gold", Space::discrete(4))
            .observe::<f32>(offset_of!(Seen, place), "place", Space::boxed(0.0, 1.0, &[2]))
            .figure("found", abi::TENSOR_SUM)
            .figure("gold", abi::TENSOR_EPISODE)
            .episode_limit(60)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Forager::default())
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [Seen]) {
        *self = Forager::default();
        self.bury(rng);
        self.look(&mut obs[0]);
    }

    fn step(&mut self, rng: &mut Rng, action: &[i32], obs: &mut [Seen]) -> Step {
        match action[0] {
            0 => self.row = (self.row - 1).max(0),
            1 => self.row = (self.row + 1).min(SIDE - 1),
            2 => self.column = (self.column - 1).max(0),
            _ => self.column = (self.column + 1).min(SIDE - 1),
        }
        self.found = 0.0;
        if (self.row, self.column) == (self.gold_row, self.gold_column) {
            self.gold += 1;
            self.found = 1.0;
            self.bury(rng);
        }
        self.steps += 1;
        self.look(&mut obs[0]);
        Step { reward: self.found, terminated: self.gold == 3, truncated: self.steps >= 60 }
    }

    fn mask(&self, legal: &mut [u8]) {
        let moves = [self.row > 0, self.row < SIDE - 1, self.column > 0, self.column < SIDE - 1];
        legal.copy_from_slice(&moves.map(u8::from));
    }

    fn discount(&self) -> f32 {
        0.75
    }

    fn tell(&self, figures: &mut [f32]) {
        figures.copy_from_slice(&[self.found, self.gold as f32]);
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        for x in [self.row, self.column, self.gold_row, self.gold_column, self.gold, self.steps] {
            to.extend_from_slice(&x.to_le_bytes());
        }
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        if from.len() != 24 {
            return false;
        }
        let number = |k: usize| i32::from_le_bytes([from[4 * k], from[4 * k + 1], from[4 * k + 2], from[4 * k + 3]]);
        (self.row, self.column, self.gold_row) = (number(0), number(1), number(2));
        (self.gold_column, self.gold, self.steps) = (number(3), number(4), number(5));
        true
    }
}

rl_env!(Forager);
