//! As whole.c.

use rlhost_env::component::{
    ask, begin_timer, cancel_timer, me, offer, stop_run, Component, Message, Metric, Outcome, Request, Signal, Slot, Spec,
    Unanswered, Want,
};
use rlhost_env::component_abi::{ComponentMessage, METRIC_GAUGE, STOP_FOR_ENV_STEPS};
use rlhost_env::{abi, quote, rl_component, Config};

struct Whole {
    state: Metric,
    question: u32,
}

fn gauge(name: &str, value: f64) {
    Metric::new(METRIC_GAUGE, name).report(value)
}

impl Component for Whole {
    const SPEC: Spec = Spec {
        name: "whole@1",
        signals: &[Signal { name: "out", payload: "note", doc: "notes" }],
        slots: &[Slot::new("in", "trajectory", "what to do", &[Want::optional("nothing", abi::F32)])],
    };
    const SCHEMAS: &'static [(&'static str, u64)] = &[("note", 0x8000000000000009), ("trajectory", 7)];

    const REQUESTS: &'static [Request] =
        &[Request { name: "twice", args: "x number, name text?, n integer?", doc: "twice x" }];

    fn request(&mut self, _request: usize, args: &mut Config) -> Result<String, String> {
        let (x, name, n) = (args.float("x", 0.0), args.text("name", ""), args.int("n", -1));
        if x < 0.0 {
            return Err("x: want 0 or more".to_string());
        }
        Ok(format!("{{\"x\":{},\"name\":{},\"n\":{n}}}", 2.0 * x, quote(&name)))
    }

    const ASKS: &'static [Request] = &[
        Request { name: "other", args: "", doc: "is not asked" },
        Request { name: "half", args: "x number", doc: "of another" },
    ];

    fn answered(&mut self, ask: usize, question: u32, answer: Result<&str, Unanswered>) -> Result<(), String> {
        if (ask, question) != (1, self.question) {
            return Err("an answer to another question".to_string());
        }
        gauge("whole/fault", answer.as_ref().err().map_or(0.0, |e| e.fault as f64 + e.kind.len() as f64 / 100.0));
        if let Ok(text) = answer {
            let mut members = Config::json(text);
            gauge("whole/answered", text.parse().unwrap_or_else(|_| members.float("y", -1.0)));
        }
        Ok(())
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Whole { state: Metric::default(), question: 0 })
    }

    fn start(&mut self) -> Result<(), String> {
        self.state = Metric::new(METRIC_GAUGE, "whole/state");
        let m = me();
        let sync = if m.synchronous { 10.0 } else { 0.0 };
        gauge(
            "whole/me",
            m.name.len() as f64 * 1e6 + m.index as f64 * 1e4 + m.count as f64 * 1e2 + sync + m.seed as f64,
        );
        Ok(())
    }

    fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
        match m.fields.kind {
            0 => {
                gauge("whole/value", m.named("reward", false)?.get::<f32>(0, 0, 0, 0) as f64);
                gauge("whole/named", m.named("absent", false).is_err() as u8 as f64);
                let reward = m.named("reward", true)?;
                reward.set(0, 0, 0, 0, reward.get::<f32>(0, 0, 0, 0) + 1.0);
            }
            1 => {
                let mut all = 0.0;
                for _ in 0..3 {
                    let became = match offer(0, &ComponentMessage::default())? {
                        Outcome::Sent => 0.0,
                        Outcome::Parked => 1.0,
                        Outcome::Dropped => 2.0,
                    };
                    all = all * 10.0 + became;
                }
                gauge("whole/outcomes", all);
            }
            2 => {
                let timer = begin_timer(3_600_000_000_000, 0)?;
                let (first, second) = (cancel_timer(timer), cancel_timer(timer));
                gauge("whole/cancelled", (first && !second) as u8 as f64);
            }
            4 => self.question = ask(1, &format!("{{\"x\":{}}}", 2.5), 1_000_000_000)?,
            _ => return if stop_run(STOP_FOR_ENV_STEPS) { Ok(()) } else { Err("the run does not stop".to_string()) },
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), String> {
        self.state.report(1.0);
        Ok(())
    }

    fn resume(&mut self) -> Result<(), String> {
        self.state.report(2.0);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.state.report(3.0);
        Ok(())
    }
}

rl_component!(Whole);
