//! Walk: from the start of a corridor to its end, whose length is a reset parameter. A walker that is not there after 64 steps has lost.

use rlhost_env::{param_or, rl_env, Config, Env, Rng, Space, Spec, Step};

const LONGEST: i32 = 32;
const MAX_STEPS: u32 = 64;

#[derive(Default)]
struct Walk {
    position: i32,
    length: i32,
    steps: u32,
}

impl Walk {
    fn look(&self, obs: &mut [f32]) {
        obs[0] = self.position as f32 / LONGEST as f32;
        obs[1] = self.length as f32 / LONGEST as f32;
    }
}

impl Env for Walk {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("walk@1", Space::discrete(2), Space::boxed(0.0, 1.0, &[2]))
            .params(Space::boxed(1.0, LONGEST as f32, &[1]))
            .episode_limit(MAX_STEPS)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Walk::default())
    }

    fn set_params(&mut self, params: &[f32]) {
        self.length = param_or(params, 0, LONGEST as f32) as i32;
    }

    fn reset(&mut self, _: &mut Rng, obs: &mut [f32]) {
        (self.position, self.steps) = (0, 0);
        self.look(obs);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        self.position = (self.position + 2 * action[0] - 1).max(0);
        self.steps += 1;
        self.look(obs);
        let terminated = self.position >= self.length;
        Step { reward: terminated as u8 as f32, terminated, truncated: self.steps == MAX_STEPS }
    }
}

rl_env!(Walk);
