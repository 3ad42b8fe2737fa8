//! A logger: a line for each episode that ends, or each so many, and metrics of all. It needs the grants log and metric.

use rlhost_env::component::{log, pack, unpack, Component, Episode, Message, Metric, Request, Slot, Spec};
use rlhost_env::component_abi::{METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM};
use rlhost_env::{rl_component, Config};

#[derive(Default)]
struct Logger {
    every: u64,
    seen: (u64, u64), // episodes, and the length of the longest
    metrics: [Metric; 4],
}

impl Component for Logger {
    const SPEC: Spec = Spec {
        name: "episodes@1",
        signals: &[],
        slots: &[Slot { name: "on_episodes", payload: "episode", doc: "episodes that have ended", wants: &[] }],
    };
    const SAVED: bool = true;
    const REQUESTS: &'static [Request] =
        &[Request { name: "longest", args: "reset bool?", doc: "env steps of the longest episode, since a reset" }];

    fn request(&mut self, _request: usize, args: &mut Config) -> Result<String, String> {
        let longest = self.seen.1;
        if args.bool("reset", false) {
            self.seen.1 = 0;
        }
        Ok(longest.to_string())
    }

    fn new(config: &mut Config) -> Result<Self, String> {
        match config.int("every", 1) {
            every @ 1.. => Ok(Logger { every: every as u64, ..Logger::default() }),
            _ => Err("every: want 1 or more".to_string()),
        }
    }

    fn start(&mut self) -> Result<(), String> {
        let kinds = [METRIC_COUNTER, METRIC_HISTOGRAM, METRIC_HISTOGRAM, METRIC_GAUGE];
        let names = ["count", "length", "return", "longest"];
        self.metrics = core::array::from_fn(|i| Metric::new(kinds[i], &format!("episodes/{}", names[i])));
        Ok(())
    }

    fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
        let e = Episode::of(m);
        let (episodes, longest) = &mut self.seen;
        *longest = (e.length as u64).max(*longest);
        let values = [1.0, e.length as f64, e.total as f64, *longest as f64];
        self.metrics.iter().zip(values).for_each(|(metric, value)| metric.report(value));
        if *episodes % self.every == 0 {
            let how = if e.terminated { "terminated" } else { "was truncated" };
            log(1, &format!("environment {} {how} after {} env steps", e.env, e.length));
        }
        *episodes += 1;
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        pack(&self.seen)
    }

    fn load(&mut self, from: &[u8]) -> bool {
        unpack(&mut self.seen, from)
    }
}

rl_component!(Logger);
