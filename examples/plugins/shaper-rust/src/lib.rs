//! A reward shaper: of each reward r the learner gets scale·r + shift, at most clip in magnitude. The wire must grant
//! write = ["shaped_reward"].

use rlhost_env::component::{emit, Component, Message, Signal, Slot, Spec, Want};
use rlhost_env::{abi, rl_component, Config};

struct Shaper {
    scale: f64,
    shift: f64,
    clip: f64, // 0 = none
}

impl Component for Shaper {
    const SPEC: Spec = Spec {
        name: "shaper@1",
        signals: &[Signal { name: "shaped", payload: "shaped_rewards", doc: "they have been written" }],
        slots: &[Slot {
            name: "on_rewards",
            payload: "reward_request",
            doc: "the rewards of a block can be shaped",
            wants: &[Want::read("reward", abi::F32), Want::write("shaped_reward", abi::F32)],
        }],
    };

    fn new(config: &mut Config) -> Result<Self, String> {
        let (scale, shift, clip) = (config.float("scale", 1.0), config.float("shift", 0.0), config.float("clip", 0.0));
        if clip < 0.0 {
            return Err("clip: want 0 (none) or more".to_string());
        }
        Ok(Shaper { scale, shift, clip })
    }

    fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
        m.column(1).map(&m.column(0), |r: f32| {
            let x = self.scale * r as f64 + self.shift;
            (if self.clip > 0.0 { x.clamp(-self.clip, self.clip) } else { x }) as f32
        });
        emit(0, m)
    }
}

rl_component!(Shaper);
