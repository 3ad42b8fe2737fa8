//! Environments in Rust: a type for one environment, the trait [`Env`], one line `rl_env!`.
//!
//! ```no_run
//! use rlhost_env::{rl_env, Config, Env, Rng, Space, Spec, Step};
//!
//! struct Walk { position: i32 }
//!
//! impl Env for Walk {
//!     type Action = i32;
//!     type Obs = f32;
//!     fn spec(_: &mut Config) -> Spec { Spec::new("walk@1", Space::discrete(2), Space::boxed(0.0, 1.0, &[1])) }
//!     fn new(_: &mut Config) -> Result<Self, String> { Ok(Walk { position: 0 }) }
//!     fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
//!         self.position = rng.below(8) as i32;
//!         obs[0] = self.position as f32;
//!     }
//!     fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
//!         self.position += action[0];
//!         obs[0] = self.position as f32;
//!         Step { reward: -1.0, terminated: self.position >= 8, ..Step::default() }
//!     }
//! }
//!
//! rl_env!(Walk);
//! ```
//!
//! A guest is a `cdylib` built with `cargo build --release --target wasm32-unknown-unknown`, best with the flags
//! `-C target-feature=+simd128,+bulk-memory -C llvm-args=-disable-lsr`. The macro exports
//! the functions of env ABI v1 and does what is not the environment's business: batches, strides, autoreset,
//! random streams, final observations, save and load. The crate has no dependencies. Several observations: see
//! [`Spec::observe`]; several actions: [`Spec::act`]; several agents: [`Spec::agents`].

pub mod abi;
mod agents;
mod author;
mod batch;
#[cfg(target_arch = "wasm32")] // its host functions are there alone
pub mod component;
pub mod component_abi;
mod data;
mod guest;
mod json;
pub mod math;
mod memory;
#[cfg(any(test, target_arch = "wasm32"))]
mod state;
#[cfg(test)]
mod tests;

pub use agents::last;
pub use json::quote;
pub use author::{param_or, Arg, Config, Element, Env, Field, Figure, Picture, Rng, Space, Spec, Step};
pub use data::data;
pub use guest::{Guest, Slot};

/// Sends a line to the host's log; the pipeline must grant "log". Levels are 0 debug, 1 info, 2 warning, 3 error.
pub fn log(level: u32, text: &str) {
    #[cfg(target_arch = "wasm32")]
    unsafe {
        abi::log(level, text.as_ptr() as u32, text.len() as u32)
    }
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("log {level}: {text}");
}

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "rl_optional")]
extern "C" {
    #[link_name = "log"]
    fn optional_log(level: u32, text: u32, len: u32);
}

/// `log` where the pipeline grants "log", and nothing elsewhere: the environment, or component, runs without the grant.
pub fn try_log(level: u32, text: &str) {
    #[cfg(target_arch = "wasm32")]
    unsafe {
        optional_log(level, text.as_ptr() as u32, text.len() as u32)
    }
    #[cfg(not(target_arch = "wasm32"))]
    log(level, text)
}

/// Reports a number of the environment that is being stepped under env/, of which an episode's mean counts; the pipeline must grant
/// "metric".
pub fn metric(name: &str, value: f64) {
    #[cfg(target_arch = "wasm32")]
    unsafe {
        abi::metric_env(batch::current(), name.as_ptr() as u32, name.len() as u32, value, abi::TENSOR_MEAN)
    }
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("metric {name}: {value}");
}
