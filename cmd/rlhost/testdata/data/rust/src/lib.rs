//! A guest that counts to a number in a file of data.

use rlhost_env::{data, rl_env, Config, Env, Rng, Space, Spec, Step};

struct Counter {
    limit: i32,
    age: i32,
}

impl Env for Counter {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("counter@1", Space::discrete(2), Space::boxed(0.0, 100.0, &[1])).episode_limit(100)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        if data("sizes/none.txt").is_ok() || data("../sizes/length.txt").is_ok() {
            return Err("a file that is not there was read".to_string());
        }
        let text = String::from_utf8(data("sizes/length.txt")?).map_err(|e| e.to_string())?;
        let limit = text.trim().parse().map_err(|_| format!("{text:?} is no number"))?;
        Ok(Counter { limit, age: 0 })
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        self.age = rng.below(3) as i32;
        obs[0] = self.age as f32;
    }

    fn step(&mut self, _: &mut Rng, _: &[i32], obs: &mut [f32]) -> Step {
        self.age += 1;
        obs[0] = self.age as f32;
        Step { reward: 1.0, terminated: self.age >= self.limit, truncated: false }
    }
}

rl_env!(Counter);
