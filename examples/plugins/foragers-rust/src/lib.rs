//! Foragers: the environment of foragers-c in Rust, bit for bit.

use rlhost_env::{last, rl_env, Config, Env, Rng, Space, Spec, Step};

const FORAGERS: usize = 4;
const CELLS: i32 = 16;
const SEEN: usize = 3;
const FULL: i32 = 12;
const MEAL: i32 = 8;
const OLD: i32 = 32;

#[derive(Clone, Copy, Default)]
struct Forager {
    at: i32,
    energy: i32,
    age: i32,
    result: Step,
}

impl Forager {
    fn born(rng: &mut Rng) -> Forager {
        Forager { at: rng.below(CELLS as u32) as i32, energy: FULL, age: 0, result: Step::default() }
    }

    fn look(&self, food: i32, obs: &mut [f32]) {
        obs[0] = self.at as f32;
        obs[1] = (food - self.at) as f32;
        obs[2] = self.energy as f32;
    }
}

#[derive(Default)]
struct Foragers {
    food: i32,
    all: [Forager; FORAGERS],
}

impl Foragers {
    /// Moves a forager by one cell: to the left, not at all or to the right.
    fn advance(&mut self, rng: &mut Rng, k: usize, action: i32) {
        let f = &mut self.all[k];
        f.result = Step::default();
        f.at += action - 1;
        f.energy -= 1;
        f.age += 1;
        if f.at == self.food {
            f.result.reward = 1.0;
            f.energy = (f.energy + MEAL).min(FULL);
            self.food = rng.below(CELLS as u32) as i32;
        }
        if !(0..CELLS).contains(&f.at) || f.energy == 0 {
            f.result.reward = -1.0;
            f.result.terminated = true;
        }
        f.result.truncated = f.age >= OLD;
    }

    fn look(&self, obs: &mut [f32]) {
        self.all.iter().zip(obs.chunks_mut(SEEN)).for_each(|(f, row)| f.look(self.food, row));
    }
}

impl Env for Foragers {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        let seen = Space::boxed(-CELLS as f32, CELLS as f32, &[SEEN as u32]);
        Spec::new("foragers@1", Space::discrete(3), seen).agents(FORAGERS as u32).respawn()
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Foragers::default())
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        self.food = rng.below(CELLS as u32) as i32;
        self.all.iter_mut().for_each(|f| *f = Forager::born(rng));
        self.look(obs);
    }

    fn step(&mut self, rng: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        (0..FORAGERS).for_each(|k| self.advance(rng, k, action[k]));
        self.look(obs);
        for k in 0..FORAGERS {
            let result = self.all[k].result;
            if result.terminated || result.truncated {
                last(k, obs);
                self.all[k] = Forager { result, ..Forager::born(rng) };
                self.all[k].look(self.food, &mut obs[SEEN * k..]);
            }
        }
        Step::default()
    }

    fn reward(&self, results: &mut [Step]) {
        results.iter_mut().zip(&self.all).for_each(|(to, f)| *to = f.result);
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(&self.food.to_le_bytes());
        for number in [|f: &Forager| f.at, |f: &Forager| f.energy, |f: &Forager| f.age] {
            self.all.iter().for_each(|f| to.extend_from_slice(&number(f).to_le_bytes()));
        }
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        let mut numbers = from.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        if from.len() != 4 + 12 * FORAGERS {
            return false;
        }
        let mut next = || numbers.next().unwrap_or(0);
        self.food = next();
        (0..FORAGERS).for_each(|k| self.all[k].at = next());
        (0..FORAGERS).for_each(|k| self.all[k].energy = next());
        (0..FORAGERS).for_each(|k| self.all[k].age = next());
        true
    }
}

rl_env!(Foragers);
