//! A chooser of blocks: of each `of` that come it passes on the `keep` with the highest mean reward, the best first, and sends the
//! others on a signal of their own. Until then it leases them.

use rlhost_env::component::{emit, Component, Lease, Message, Signal, Slot, Spec, Want};
use rlhost_env::{abi, rl_component, Config};

struct Chooser {
    of: i64,
    keep: i64,
    held: Vec<(f64, Lease)>,
}

const BEST: u32 = 0; // signals
const OTHERS: u32 = 1;

impl Component for Chooser {
    const SPEC: Spec = Spec {
        name: "chooser@1",
        signals: &[
            Signal { name: "trajectories", payload: "trajectory", doc: "the best blocks" },
            Signal { name: "others", payload: "trajectory", doc: "the others" },
        ],
        slots: &[Slot {
            name: "on_trajectories",
            payload: "trajectory",
            doc: "full blocks",
            wants: &[Want::read("reward", abi::F32), Want::read("valid", abi::U8)],
        }],
    };

    fn new(config: &mut Config) -> Result<Self, String> {
        let (of, keep) = (config.int("of", 2), config.int("keep", 1));
        if keep > 0 && keep < of && of <= 64 {
            return Ok(Chooser { of, keep, held: Vec::new() });
        }
        Err("keep: want 1 or more, and less than of, which is at most 64".to_string())
    }

    fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
        let (mut valid, mut sum, mut rows) = (Vec::new(), 0.0, 0.0);
        m.column(1).each(|v: u8| valid.push(v as f64));
        let mut counts = valid.iter();
        m.column(0).each(|r: f32| {
            let count = counts.next().copied().unwrap_or(0.0);
            sum += count * r as f64;
            rows += count;
        });
        self.held.push((sum / f64::max(rows, 1.0), m.lease()?));
        if self.held.len() < self.of as usize {
            return Ok(());
        }
        self.held.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (i, (_, block)) in self.held.drain(..).enumerate() {
            block.emit(if i < self.keep as usize { BEST } else { OTHERS })?;
        }
        Ok(())
    }
}

rl_component!(Chooser);
