//! Spaces: the environment of sanity-c/spaces.c in Rust, bit for bit. Its three observations are the fields of a struct.

use rlhost_env::{rl_env, Config, Element, Env, Rng, Space, Spec, Step};
use std::mem::offset_of;

const CLUES: u32 = 3;
const MOST: i32 = 10;

#[derive(Clone, Copy, Default)]
struct Seen {
    picture: [u8; 25],
    numbers: [i8; 5],
    clue: i32,
}

impl Element for Seen {}

#[derive(Default)]
struct Spaces {
    answer: [i32; 3],
}

impl Env for Spaces {
    type Action = i32;
    type Obs = Seen;

    fn spec(_: &mut Config) -> Spec {
        Spec::several("spaces@1", Space::multi_discrete(&[2, 2, CLUES]))
            .observe::<u8>(offset_of!(Seen, picture), "picture", Space::image(5, 5, 1))
            .observe::<i8>(offset_of!(Seen, numbers), "notes/numbers", Space::boxed(-MOST as f32, MOST as f32, &[5]))
            .observe::<i32>(offset_of!(Seen, clue), "notes/clue", Space::discrete(CLUES))
            .episode_limit(1)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Spaces::default())
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [Seen]) {
        let seen = &mut obs[0];
        let bits = rng.next();
        for (i, pixel) in seen.picture.iter_mut().enumerate() {
            *pixel = if bits >> i & 1 == 1 { 255 } else { 0 };
        }
        for number in &mut seen.numbers {
            *number = (rng.below(2 * MOST as u32 + 1) as i32 - MOST) as i8;
        }
        seen.clue = rng.below(CLUES) as i32;
        let white = seen.picture.iter().filter(|&&pixel| pixel > 0).count();
        let sum: i32 = seen.numbers.iter().map(|&number| number as i32).sum();
        self.answer = [(white > 12) as i32, (sum > 0) as i32, seen.clue];
    }

    /// Shows the next questions already: nobody needs what is seen at the end of an episode.
    fn step(&mut self, rng: &mut Rng, action: &[i32], obs: &mut [Seen]) -> Step {
        let right = action.iter().zip(&self.answer).filter(|(given, answer)| given == answer).count();
        self.reset(rng, obs);
        Step { reward: right as f32 / 3.0, terminated: true, truncated: false }
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        self.answer.iter().for_each(|answer| to.extend_from_slice(&answer.to_le_bytes()));
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        if from.len() != 12 {
            return false;
        }
        self.answer = [0, 4, 8].map(|at| i32::from_le_bytes([from[at], from[at + 1], from[at + 2], from[at + 3]]));
        true
    }
}

rl_env!(Spaces);
