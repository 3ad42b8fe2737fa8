//! A wrapper of observations: one in `every` of an episode is all zeros.

use rlhost_env::component::{emit, Component, Message, Signal, Slot, Spec, Want};
use rlhost_env::{abi, rl_component, Config};

struct Flicker {
    every: i64,
}

impl Component for Flicker {
    const SPEC: Spec = Spec {
        name: "flicker@1",
        signals: &[Signal { name: "observed", payload: "observations", doc: "they have been written" }],
        slots: &[Slot {
            name: "on_observe",
            payload: "observe_request",
            doc: "what a batch observes",
            wants: &[Want::write("obs", abi::F32), Want::read("wrapper_begins", abi::U8), Want::write("wrapper_state", abi::I32)],
        }],
    };

    fn new(config: &mut Config) -> Result<Self, String> {
        match config.int("every", 2) {
            every if every > 1 => Ok(Flicker { every }),
            _ => Err("every: want 2 or more".to_string()),
        }
    }

    fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
        let (obs, begins, count) = (m.column(0), m.column(1), m.column(2));
        for env in 0..obs.binding.envs {
            let begun = begins.get::<u8>(0, env, 0, 0) != 0;
            let n = if begun { 1 } else { count.get::<i32>(0, env, 0, 0) + 1 };
            count.set(0, env, 0, 0, n);
            if n as i64 % self.every == 0 {
                (0..obs.binding.elems).for_each(|i| obs.set(0, env, 0, i, 0f32));
            }
        }
        emit(0, m)
    }
}

rl_component!(Flicker);
