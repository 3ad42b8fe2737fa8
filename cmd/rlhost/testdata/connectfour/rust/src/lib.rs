//! examples/plugins/connectfour-c in Rust: it writes the same bits.

use rlhost_env::{rl_env, Config, Env, Rng, Space, Spec, Step};

const COLUMNS: usize = 7;
const ROWS: usize = 6;
const CELLS: usize = COLUMNS * ROWS;

#[derive(Clone)]
struct Game {
    stones: [[u8; CELLS]; 2], // 1 where the player has one; row 0 is the lowest
    height: [u8; COLUMNS],
    turn: usize,
    count: usize,
    result: [f32; 2], // the reward of the last step for each player
}

impl Game {
    fn begun_by(turn: usize) -> Self {
        Game { stones: [[0; CELLS]; 2], height: [0; COLUMNS], turn, count: 0, result: [0.0; 2] }
    }

    fn look(&self, obs: &mut [f32]) {
        for (k, side) in obs.chunks_mut(CELLS).enumerate() {
            let stones = &self.stones[(k / 2) ^ (k % 2)];
            side.iter_mut().zip(stones).for_each(|(to, stone)| *to = *stone as f32);
        }
    }

    /// Counts the player's stones from a cell on in one direction, that cell left out.
    fn run(&self, player: usize, cell: (i32, i32), way: (i32, i32)) -> i32 {
        let there = |n: i32| (cell.0 + n * way.0, cell.1 + n * way.1);
        let inside =
            |(column, row): (i32, i32)| (0..COLUMNS as i32).contains(&column) && (0..ROWS as i32).contains(&row);
        let own = |(column, row): (i32, i32)| self.stones[player][row as usize * COLUMNS + column as usize] != 0;
        (1..).take_while(|&n| inside(there(n)) && own(there(n))).count() as i32
    }

    fn wins(&self, player: usize, column: usize, row: usize) -> bool {
        let cell = (column as i32, row as i32);
        let ways = [(1, 0), (0, 1), (1, 1), (1, -1)];
        ways.iter().any(|&(c, r)| self.run(player, cell, (c, r)) + self.run(player, cell, (-c, -r)) >= 3)
    }
}

impl Env for Game {
    type Action = i32;
    type Obs = f32;
    const MASKED: bool = true;
    const TURNS: bool = true;

    fn spec(_: &mut Config) -> Spec {
        let seen = Space::boxed(0.0, 1.0, &[2, ROWS as u32, COLUMNS as u32]);
        Spec::new("connectfour@1", Space::discrete(COLUMNS as u32), seen).agents(2).episode_limit(CELLS as u32)
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Game::begun_by(0))
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        *self = Game::begun_by(rng.below(2) as usize); // whoever begins has the better game
        self.look(obs);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        let (player, column) = (self.turn, action[self.turn] as usize);
        let row = self.height[column] as usize;
        let (full, mut won) = (row == ROWS, false); // who plays a full column has lost
        if !full {
            self.height[column] += 1;
            self.stones[player][row * COLUMNS + column] = 1;
            self.count += 1;
            won = self.wins(player, column, row);
        }
        self.result = [0.0; 2];
        if won || full {
            self.result[player] = if won { 1.0 } else { -1.0 };
            self.result[1 - player] = -self.result[player];
        }
        self.turn = 1 - player;
        self.look(obs);
        Step { terminated: won || full || self.count == CELLS, ..Step::default() }
    }

    fn reward(&self, results: &mut [Step]) {
        results.iter_mut().zip(self.result).for_each(|(result, reward)| result.reward = reward);
    }

    fn active(&self, acts: &mut [u8]) {
        acts[1 - self.turn] = 0;
    }

    fn mask(&self, legal: &mut [u8]) {
        let free = self.height.map(|height| (height < ROWS as u8) as u8);
        legal.chunks_mut(COLUMNS).for_each(|own| own.copy_from_slice(&free));
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        self.stones.iter().for_each(|stones| to.extend_from_slice(stones));
        to.extend_from_slice(&self.height);
        to.extend_from_slice(&[self.turn as u8, self.count as u8]);
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        if from.len() != 2 * CELLS + COLUMNS + 2 || from[2 * CELLS + COLUMNS] > 1 {
            return false;
        }
        *self = Game::begun_by(from[2 * CELLS + COLUMNS] as usize);
        self.stones[0].copy_from_slice(&from[..CELLS]);
        self.stones[1].copy_from_slice(&from[CELLS..2 * CELLS]);
        self.height.copy_from_slice(&from[2 * CELLS..2 * CELLS + COLUMNS]);
        self.count = from[2 * CELLS + COLUMNS + 1] as usize;
        true
    }
}

rl_env!(Game);
