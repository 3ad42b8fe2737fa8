//! math.c of the examples in Rust: it shows the bits of module math.

use rlhost_env::{math, rl_env, Config, Env, Rng, Space, Spec, Step};

const DRAWS: u32 = 64;

const FUNCTIONS: [fn(f64, f64) -> f64; 17] = [
    |x, _| math::sin(x),
    |x, _| math::cos(x),
    |x, _| math::tan(x),
    |x, _| math::asin(x),
    |x, _| math::acos(x),
    |x, _| math::atan(x),
    math::atan2,
    |x, _| math::exp(x),
    |x, _| math::ln(x),
    math::pow,
    |x, _| math::sqrt(x),
    |x, _| math::tanh(x),
    |x, _| math::floor(x),
    |x, _| math::ceil(x),
    |x, _| math::trunc(x),
    |x, _| math::round(x),
    math::fmod,
];

struct Shown {
    function: fn(f64, f64) -> f64,
    steps: u32,
}

/// A number of moderate size, of any size, near a multiple of a quarter turn, or any pattern of bits.
fn draw(rng: &mut Rng) -> f64 {
    let bits = rng.next();
    let unit = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
    match bits & 7 {
        0 => f64::from_bits(rng.next()),
        1 => (bits >> 40) as f64 * (core::f64::consts::PI / 2.0),
        2 => (bits >> 32) as i32 as f64 / 2.0,
        3 => f64::from_bits(0x3ff0_0000_0000_0000 + (bits >> 32)) - 1.0, // small
        _ => (2.0 * unit - 1.0) * [1.0, 8.0, 1000.0, 1e7][(bits & 3) as usize],
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D049BB133111EB);
    z ^ z >> 31
}

impl Env for Shown {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("math@1", Space::discrete(2), Space::boxed(0.0, 0.0, &[4])).episode_limit(100)
    }

    fn new(config: &mut Config) -> Result<Self, String> {
        Ok(Shown { function: FUNCTIONS[config.int("function", 0) as usize], steps: 0 })
    }

    fn reset(&mut self, _: &mut Rng, obs: &mut [f32]) {
        self.steps = 0;
        obs.fill(0.0);
    }

    fn step(&mut self, rng: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        let mut hash = 0xCBF29CE484222325 + action[0] as u64;
        for _ in 0..DRAWS {
            let x = draw(rng);
            hash = mix(hash ^ (self.function)(x, draw(rng)).to_bits());
        }
        obs.iter_mut().enumerate().for_each(|(i, to)| *to = (hash >> (16 * i) & 0xffff) as f32);
        self.steps += 1;
        Step { truncated: self.steps == 100, ..Step::default() }
    }
}

rl_env!(Shown);
