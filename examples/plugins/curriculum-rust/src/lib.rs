//! A curriculum: one number for the episodes to come, which rises by a step whenever so many episodes have had a mean return of goal
//! or more. The wire to on_resets must grant write = ["reset_param"]; it needs the grant metric.

use rlhost_env::component::{emit, pack, unpack, Component, Episode, Message, Metric, Signal, Slot, Spec, Want};
use rlhost_env::component_abi::METRIC_GAUGE;
use rlhost_env::{abi, rl_component, Config};

struct Curriculum {
    last: f64,
    step: f64,
    goal: f64,
    window: i64,
    seen: (f64, f64, u64), // level, sum of returns and episodes since it was last looked at
    metric: Metric,
}

const WRITES: &[Want] = &[Want::write("reset_param", abi::F32)];

impl Component for Curriculum {
    const SPEC: Spec = Spec {
        name: "curriculum@1",
        signals: &[Signal { name: "params", payload: "reset_params", doc: "they have been written" }],
        slots: &[
            Slot::new("on_episodes", "episode", "episodes that have ended", &[]),
            Slot::new("on_resets", "reset_request", "episodes to come want reset parameters", WRITES),
        ],
    };
    const SAVED: bool = true;

    fn new(config: &mut Config) -> Result<Self, String> {
        let (first, last, step) = (config.float("first", 1.0), config.float("last", 10.0), config.float("step", 1.0));
        let (goal, window) = (config.float("goal", 0.9), config.int("window", 100));
        if window > 0 && first <= last && step > 0.0 {
            return Ok(Curriculum { last, step, goal, window, seen: (first, 0.0, 0), metric: Metric::default() });
        }
        Err("window: and step want more than 0, and last as much as first or more".to_string())
    }

    fn start(&mut self) -> Result<(), String> {
        self.metric = Metric::new(METRIC_GAUGE, "curriculum/level");
        Ok(())
    }

    fn handle(&mut self, slot: usize, m: &Message) -> Result<(), String> {
        let (level, sum, episodes) = &mut self.seen;
        if slot == 1 {
            self.metric.report(*level);
            m.column(0).replace(|_: f32| *level as f32);
            return emit(0, m);
        }
        *sum += Episode::of(m).total as f64;
        *episodes += 1;
        if *episodes == self.window as u64 {
            if *sum / self.window as f64 >= self.goal {
                *level = f64::min(*level + self.step, self.last);
            }
            (*sum, *episodes) = (0.0, 0);
        }
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        pack(&self.seen)
    }

    fn load(&mut self, from: &[u8]) -> bool {
        unpack(&mut self.seen, from)
    }
}

rl_component!(Curriculum);
