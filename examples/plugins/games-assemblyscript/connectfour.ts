// Connect Four, as connectfour-c: two agents that act in turn.
import { Env, F32, Result, Rng, View, box, discrete, environment } from "rlhost-env";
export * from "rlhost-env/exports";

const COLUMNS = 7, ROWS = 6, CELLS = COLUMNS * ROWS;
const HEIGHT = 2 * CELLS, TURN = HEIGHT + COLUMNS, COUNT = TURN + 1, BYTES = COUNT + 1;

class Game extends Env {
  bytes: StaticArray<u8> = new StaticArray<u8>(BYTES); // stones of both, heights, turn, count

  look(view: View): void {
    for (let k = 0; k < 2; k++)
      for (let side = 0; side < 2; side++)
        for (let i = 0; i < CELLS; i++) view.obs.set<f32>(side * CELLS + i, <f32>this.bytes[(k ^ side) * CELLS + i], k);
  }

  reset(rng: Rng, view: View): void {
    this.bytes.fill(0);
    this.bytes[TURN] = <u8>rng.below(2); // the first player has the better game
    this.look(view);
  }

  // run counts the player's stones from a cell on in one direction, that cell left out.
  run(k: i32, column: i32, row: i32, dc: i32, dr: i32): i32 {
    let n = -1;
    do {
      n++;
      column += dc;
      row += dr;
    } while (column >= 0 && column < COLUMNS && row >= 0 && row < ROWS && this.bytes[k * CELLS + row * COLUMNS + column]);
    return n;
  }

  line(k: i32, column: i32, row: i32, dc: i32, dr: i32): bool {
    return this.run(k, column, row, dc, dr) + this.run(k, column, row, -dc, -dr) >= 3;
  }

  step(rng: Rng, view: View, out: Result): void {
    const s = this.bytes, k = <i32>s[TURN], column = view.action.get<i32>(0, k), row = <i32>s[HEIGHT + column];
    const full = row == ROWS; // who plays a full column has lost
    let won = false;
    if (!full) {
      s[HEIGHT + column]++;
      s[k * CELLS + row * COLUMNS + column] = 1;
      s[COUNT]++;
      won = this.line(k, column, row, 1, 0) || this.line(k, column, row, 0, 1) || this.line(k, column, row, 1, 1) || this.line(k, column, row, 1, -1);
    }
    s[TURN] = <u8>(1 - k);
    this.look(view);
    out.terminated = won || full || s[COUNT] == CELLS;
    if (!won && !full) return;
    view.out[k].reward = won ? 1 : -1;
    view.out[1 - k].reward = won ? -1 : 1;
  }

  mask(legal: StaticArray<u8>): void {
    for (let i = 0; i < legal.length; i++) legal[i] = <u8>(<i32>this.bytes[HEIGHT + (i % COLUMNS)] < ROWS);
  }

  active(acts: StaticArray<u8>): void {
    acts[1 - this.bytes[TURN]] = 0;
  }

  saveBytes(): i32 {
    return BYTES;
  }

  save(to: usize): void {
    memory.copy(to, changetype<usize>(this.bytes), BYTES);
  }

  load(from: usize): bool {
    memory.copy(changetype<usize>(this.bytes), from, BYTES);
    return true;
  }
}

const spec = environment<Game>("connectfour@1").act(discrete(COLUMNS)).see(box(F32, 0, 1, [2, ROWS, COLUMNS]));
spec.agents = 2;
spec.turns = true;
spec.masked = true;
spec.limit = CELLS;
