//! A scripted opponent for Connect Four: it takes a winning move, else blocks the other's, else plays as near to the middle as it can.
//! The wire to it must grant write = ["action"].

use rlhost_env::component::{emit, ActRequest, Column, Component, Message, Signal, Slot, Spec, Want};
use rlhost_env::{abi, rl_component, Config};

const COLUMNS: i32 = 7;
const ROWS: i32 = 6;
const DIRECTIONS: [(i32, i32); 4] = [(1, 0), (0, 1), (1, 1), (1, -1)];

/// Who looks sees its own stones and behind them the other's, the lowest row first.
struct Board<'a>(&'a Column, u32, u32, u32);

impl Board<'_> {
    fn stone(&self, side: i32, column: i32, row: i32) -> bool {
        let inside = (0..COLUMNS).contains(&column) && (0..ROWS).contains(&row);
        inside && self.0.get::<f32>(self.1, self.2, self.3, ((side * ROWS + row) * COLUMNS + column) as u32) > 0.0
    }

    fn wins(&self, side: i32, column: i32, row: i32) -> bool {
        let run = |c: i32, r: i32| (1..4).take_while(|k| self.stone(side, column + k * c, row + k * r)).count();
        DIRECTIONS.iter().any(|&(c, r)| run(c, r) + run(-c, -r) >= 3)
    }

    fn choose(&self) -> i32 {
        let (mut best, mut worth) = (0, -1);
        for column in [3, 2, 4, 1, 5, 0, 6] {
            let is = match (0..ROWS).find(|&row| !self.stone(0, column, row) && !self.stone(1, column, row)) {
                None => -1,
                Some(row) if self.wins(0, column, row) => 2,
                Some(row) => self.wins(1, column, row) as i32,
            };
            if is > worth {
                (best, worth) = (column, is);
            }
        }
        best
    }
}

struct Opponent;

const WANTS: &[Want] = &[
    Want::read("obs", abi::F32),
    Want::read("active", abi::U8),
    Want::optional("policy", abi::U8),
    Want::write("action", abi::I32),
];

impl Component for Opponent {
    const SPEC: Spec = Spec {
        name: "opponent@1",
        signals: &[Signal { name: "actions", payload: "actions", doc: "the moves have been written" }],
        slots: &[Slot::new("act", "act_request", "boards that wait for a move", WANTS)],
    };

    fn new(config: &mut Config) -> Result<Self, String> {
        config.required("policy").map(|_| Opponent)
    }

    fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
        let (r, [obs, active, policy, action]) = (ActRequest::of(m), [0, 1, 2, 3].map(|i| m.column(i)));
        for (env, agent) in r.turns(&active, &policy) {
            action.set(r.t, env, agent, 0, Board(&obs, r.t, env, agent).choose());
        }
        emit(0, m)
    }
}

rl_component!(Opponent);
