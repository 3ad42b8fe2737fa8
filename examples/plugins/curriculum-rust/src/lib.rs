//! A curriculum: one number for the episodes to come, which rises by a step whenever so many episodes have had a mean return of goal
//! or more. The wire to on_resets must grant write = ["reset_param"]; it needs the grant metric.

use rlhost_env::component::{emit, Component, Episode, Message, Metric, Signal, Slot, Spec, Want};
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

impl Component for Curriculum {
    const SPEC: Spec = Spec {
        name: "curriculum@1",
        signals: &[Signal { name: "params", payload: "reset_params", doc: "they have been written" }],
        slots: &[
            Slot { name: "on_episodes", payload: "episode", doc: "episodes that have ended", wants: &[] },
            Slot {
                name: "on_resets",
                payload: "reset_request",
                doc: "episodes to come want reset parameters",
                wants: &[Want::write("reset_param", abi::F32)],
            },
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
        let (level, sum, episodes) = self.seen;
        [level.to_le_bytes(), sum.to_le_bytes(), episodes.to_le_bytes()].concat()
    }

    fn load(&mut self, from: &[u8]) -> bool {
        let number = |at: usize| Some(u64::from_le_bytes(from.get(at..at + 8)?.try_into().ok()?));
        let (Some(level), Some(sum), Some(episodes)) = (number(0), number(8), number(16)) else { return false };
        self.seen = (f64::from_bits(level), f64::from_bits(sum), episodes);
        true
    }
}

rl_component!(Curriculum);
