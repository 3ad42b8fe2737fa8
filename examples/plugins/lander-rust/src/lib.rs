//! Lander: the environment of lander-c in Rust, bit for bit, with the sines and cosines of the SDK.

use rlhost_env::math::{cos, sin};
use rlhost_env::{rl_env, Config, Env, Picture, Rng, Space, Spec, Step};

const MAX_STEPS: u32 = 300;

#[derive(Default)]
struct Lander {
    x: f64,
    y: f64,
    vx: f64,
    vy: f64,
    angle: f64,
    turn: f64,
    steps: u32,
}

impl Lander {
    fn numbers(&self) -> [f64; 6] {
        [self.x, self.y, self.vx, self.vy, self.angle, self.turn]
    }

    fn look(&self, obs: &mut [f32]) {
        obs.iter_mut().zip(self.numbers()).for_each(|(to, x)| *to = x as f32);
    }
}

impl Env for Lander {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("lander@1", Space::discrete(4), Space::boxed(0.0, 0.0, &[6])).episode_limit(MAX_STEPS).text().picture(60, 40, 30.0)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Lander::default())
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        let (x, vx) = (rng.uniform(-0.5, 0.5) as f64, rng.uniform(-0.02, 0.02) as f64);
        *self = Lander { x, y: 1.0, vx, angle: rng.uniform(-0.3, 0.3) as f64, ..Lander::default() };
        self.look(obs);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        let main = if action[0] == 2 { 0.004 } else { 0.0 };
        let side = [0.0, 0.01, 0.0, -0.01][action[0] as usize];
        self.vx -= main * sin(self.angle);
        self.vy = self.vy + main * cos(self.angle) - 0.0015;
        self.turn += side;
        self.x += self.vx;
        self.y += self.vy;
        self.angle += self.turn;
        self.steps += 1;
        self.look(obs);
        let (down, lost) = (self.y <= 0.0, self.x.abs() > 1.5 || self.y > 2.0 || self.angle.abs() > 3.0);
        let soft = self.vy > -0.04 && self.angle.abs() < 0.3 && self.x.abs() < 0.4;
        let reward = match (down, lost, action[0]) {
            (true, _, _) if soft => 1.0,
            (false, false, 0) => 0.0,
            (false, false, _) => -0.001,
            _ => -1.0,
        };
        Step { reward, terminated: down || lost, truncated: self.steps >= MAX_STEPS }
    }

    /// Draws the craft above its pad.
    fn draw(&self, p: &mut Picture) {
        p.rect(0.0, 0.0, 60.0, 40.0, 0x101820);
        p.rect(22.0, 38.0, 16.0, 2.0, 0x808080);
        p.disc(30.0 + self.x as f32 * 20.0, 36.0 - self.y as f32 * 16.0, 2.5, 0xffcc00);
    }

    fn render(&self) -> Option<String> {
        Some(format!("step {} of {MAX_STEPS}", self.steps))
    }

    /// Six numbers and the steps, as C lays them out.
    fn save(&self, to: &mut Vec<u8>) -> bool {
        self.numbers().iter().for_each(|x| to.extend_from_slice(&x.to_le_bytes()));
        to.extend_from_slice(&(self.steps as u64).to_le_bytes());
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        if from.len() != 56 {
            return false;
        }
        let word = |k: usize| u64::from_le_bytes(from[8 * k..][..8].try_into().expect("8 bytes"));
        let [x, y, vx, vy, angle, turn] = [0, 1, 2, 3, 4, 5].map(|k| f64::from_bits(word(k)));
        *self = Lander { x, y, vx, vy, angle, turn, steps: word(6) as u32 };
        true
    }
}

rl_env!(Lander);
