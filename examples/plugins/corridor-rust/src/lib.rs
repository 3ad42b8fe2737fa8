//! A corridor: the policy stands in one of its cells and must find the right end.

use rlhost_env::{rl_env, Config, Env, Rng, Space, Spec, Step};

struct Corridor {
    length: i32,
    cell: i32,
    steps: i32,
}

impl Corridor {
    fn look(&self, obs: &mut [f32]) {
        obs[0] = self.cell as f32 / (self.length - 1) as f32;
    }
}

impl Env for Corridor {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("corridor@1", Space::discrete(2), Space::boxed(0.0, 1.0, &[1])).episode_limit(50)
    }

    fn new(config: &mut Config) -> Result<Self, String> {
        match config.int("length", 8) {
            length @ 2..=1000 => Ok(Corridor { length: length as i32, cell: 0, steps: 0 }),
            _ => Err("length must be 2 to 1000".to_string()),
        }
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        self.cell = rng.below(self.length as u32 - 1) as i32; // anywhere but the end
        self.steps = 0;
        self.look(obs);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        self.cell = (self.cell + if action[0] == 1 { 1 } else { -1 }).max(0);
        self.steps += 1;
        self.look(obs);
        let terminated = self.cell == self.length - 1;
        let reward = if terminated { 1.0 } else { -0.01 };
        Step { reward, terminated, truncated: self.steps >= 50 }
    }
}

rl_env!(Corridor);
