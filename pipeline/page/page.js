const el = (id) => document.getElementById(id);
const data = JSON.parse(el("data").textContent);

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

function joined(a, b) {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}

/** Shows a game: its picture in colours, in text, or as the numbers that an agent observes. */
class Screen {
  constructor(game) {
    const { h } = game.env.spec;
    this.env = game.env;
    this.mode = [ABI.RENDER_RGB, ABI.RENDER_RGBA, ABI.RENDER_TEXT].find((m) => h.render_modes & m) ?? 0;
    this.colours = this.mode > ABI.RENDER_TEXT;
    el("picture").hidden = !this.colours;
    el("text").hidden = this.colours;
    if (!this.colours) return;
    Object.assign(el("picture"), { width: h.render_width, height: h.render_height });
    el("stage").style.setProperty("--width", `${h.render_width * Math.max(1, Math.floor(480 / h.render_width))}px`);
    this.image = el("picture").getContext("2d").createImageData(h.render_width, h.render_height);
    this.image.data.fill(255);
  }

  draw() {
    if (!this.mode) {
      el("text").textContent = this.env.of("observation").map((t) => `${t.path || "observation"} ${this.env.row(t, 0).map((x) => x.toPrecision(4)).join(" ")}`).join("\n");
      return;
    }
    const picture = this.env.render(0, this.mode);
    if (!this.colours) {
      el("text").textContent = picture;
      return;
    }
    const to = this.image.data, size = picture.length * 4 / to.length;
    for (let i = 0, k = 0; i < to.length; i += 4, k += size) [to[i], to[i + 1], to[i + 2]] = [picture[k], picture[k + 1], picture[k + 2]];
    el("picture").getContext("2d").putImageData(this.image, 0, 0);
  }
}

const NAMES = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", " ": "space", Enter: "enter", Tab: "tab" };

class Page {
  async open() {
    const [first, ...later] = await Promise.all(data.versions.map((v) => unpacked(v.rest)));
    this.versions = [first, ...later.map((rest, k) => joined(first.subarray(0, data.versions[k + 1].shared), rest))];
    this.game = new Game(await unpacked(data.module), data);
    this.screen = new Screen(this.game);
    this.seat = this.game.seats.findIndex((seat) => seat.plays);
    this.keys = Object.keys(data.keys).length ? data.keys : defaultKeys(this.game.env, this.game.seats[this.seat].group);
    const { render_fps, dt } = this.game.env.spec.h;
    this.fps = render_fps || (dt ? 1 / dt : data.keys.none ? 10 : 0); // 0: a game of turns
    Object.assign(this, { held: [], rate: this.fps || 2, runs: true, due: 0, last: 0, ended: 0 });
    this.controls();
    this.use(data.first);
    this.again();
    if (this.game.seats.length > 1 && this.playable()) this.play(this.seat);
    requestAnimationFrame((now) => this.frame(now));
  }

  playable() { return Object.keys(this.keys).some((key) => key !== "none"); }

  controls() {
    const on = (id, event, f) => el(id).addEventListener(event, () => this.attempt(f));
    Object.assign(el("version"), { max: data.versions.length - 1, disabled: data.versions.length < 2 });
    on("version", "input", () => this.use(Number(el("version").value)));
    on("speed", "input", () => this.rate = (this.fps || 2) * 2 ** Number(el("speed").value));
    on("pause", "click", () => this.pause(this.runs));
    on("step", "click", () => { this.pause(true); if (this.ready()) this.step(); });
    on("again", "click", () => this.again());
    const whole = (seat) => this.game.seats.length > 1 ? `you play ${seat.name}` : "you play";
    const whom = this.game.seats.flatMap((seat, k) => seat.plays && this.playable() ? [[k, whole(seat)]] : []);
    for (const [value, label] of [["", this.game.seats.length > 1 ? "policies play" : "the policy plays"], ...whom]) el("who").add(new Option(label, value));
    on("who", "change", () => this.play(el("who").value === "" ? null : Number(el("who").value)));
    for (const id of ["who", "version", "speed"]) on(id, "change", () => el(id).blur()); // keys are the game's again
    el("hint").hidden = !this.playable();
    const own = Object.entries(this.keys).filter(([key]) => key !== "none");
    for (const [key] of new Map(own.map(([key, action]) => [String(action), [key]])).values()) this.button(key); // one for each action, of its last key
    addEventListener("keydown", (e) => this.key(e, (key) => e.repeat || this.press(key)));
    addEventListener("keyup", (e) => this.key(e, (key) => this.release(key)));
    addEventListener("blur", () => { for (const key of this.held) this.release(key); });
  }

  key(e, f) {
    const key = NAMES[e.key] ?? e.key;
    if (e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(this.keys, key) || e.target.closest?.("input, select")) return;
    e.preventDefault();
    this.attempt(() => f(key));
  }

  button(key) {
    const button = document.createElement("button");
    button.textContent = { left: "←", right: "→", up: "↑", down: "↓" }[key] ?? key;
    button.setAttribute("aria-label", `${key}: action ${this.keys[key].join(", ")}`);
    button.addEventListener("pointerdown", () => this.attempt(() => this.press(key)));
    for (const event of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(event, () => this.release(key));
    button.addEventListener("click", (e) => e.detail || this.attempt(() => { this.press(key); this.release(key); })); // from the keyboard
    this.buttons = [...this.buttons ?? [], [key, button]];
    el("keys").append(button);
  }

  /** A key takes over from the policy. */
  press(key) {
    if (this.game.person === null) this.play(this.seat);
    this.held = [key, ...this.held.filter((k) => k !== key)];
    this.choose(this.keys[key]);
  }

  release(key) {
    if (!this.held.includes(key)) return;
    this.held = this.held.filter((k) => k !== key);
    const action = this.keys[this.held[0] ?? "none"];
    if (action && this.fps) this.choose(action);
  }

  choose(action) {
    const { game } = this;
    if (this.fps) {
      game.chosen = action;
      this.shown = false;
      return;
    }
    if (!game.waits() || game.over || !game.legal(game.seats[game.person], action)) return;
    game.chosen = action;
    this.step();
    this.due = 0;
  }

  /** A person plays an agent, or null: none. */
  play(seat) {
    const { game } = this;
    game.person = seat;
    game.chosen = seat === null ? null : this.keys.none ?? Object.values(this.keys)[0];
    if (seat !== null) this.seat = seat;
    el("who").value = seat ?? "";
    this.pause(false);
    this.say();
  }

  use(k) {
    const v = data.versions[k];
    this.game.use(this.versions[k]);
    el("version").value = k;
    el("which").textContent = `version ${v.version}, ${v.env_steps.toLocaleString("en")} env steps`;
  }

  pause(now) {
    this.runs = !now;
    el("pause").textContent = now ? "continue" : "pause";
  }

  again() {
    this.game.begin();
    this.due = this.ended = 0;
    this.did = [];
    this.show();
  }

  step() {
    this.did = this.game.step();
    if (this.game.over) this.ended = performance.now();
    this.shown = false;
  }

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    this.attempt(() => {
      this.advance(now);
      if (!this.shown) this.show();
    });
    this.last = now;
  }

  /** Says on the page what a guest does wrong, and pauses. */
  attempt(f) {
    try {
      f();
    } catch (e) {
      fails(e);
      this.pause(true);
    }
  }

  /** Whether a step can be made without the person, or with the action that was chosen last. */
  ready() {
    const { game } = this;
    return !game.waits() || this.fps > 0 && game.legal(game.seats[game.person], game.chosen);
  }

  /** Makes the steps that are due. The picture at an end can be seen for a while. */
  advance(now) {
    const { game } = this;
    if (!this.runs || game.over && now - this.ended < (this.fps ? 1000 : 4000)) return;
    if (game.over) return this.again();
    if (!this.ready()) return;
    this.due = Math.min(this.due + (now - this.last) * this.rate / 1000, 50);
    for (; this.due >= 1 && !game.over && this.ready(); this.due--) this.step();
  }

  show() {
    this.shown = true;
    if (!(this.game.over && this.game.env.mode === ABI.AUTORESET_SAME_STEP)) this.screen.draw(); // else the next episode has begun
    this.say();
  }

  turn(waits, points) {
    if (this.game.over) return `the episode is over: return ${points}`;
    if (this.fps) return this.ready() ? "" : "this action is not legal now";
    return this.game.person === null ? "" : waits ? "your turn" : "the policy's turn";
  }

  say() {
    const { game } = this, seat = game.seats[this.seat], waits = game.waits() && !game.over;
    const points = game.returns.map((r, k) => game.seats.length > 1 ? `${game.seats[k].name} ${round(r)}` : round(r)).join(", ");
    el("said").textContent = `episode ${game.episode + 1}, step ${game.steps}, return ${points}`;
    const took = this.fps ? [] : game.seats.flatMap((seat, k) => this.did[k] ? [`${seat.name} took ${this.did[k].map(round)}`] : []);
    el("turn").textContent = [...took, this.turn(waits, points)].filter(Boolean).join("; ");
    for (const [key, button] of this.buttons ?? []) button.disabled = !this.fps && game.person !== null && !(waits && game.legal(seat, this.keys[key]));
  }
}

const round = (x) => String(Math.round(x * 100) / 100);

function fails(e) {
  el("failed").hidden = false;
  el("failed").textContent = `The environment cannot be played here. ${e.message}`;
  console.error(e);
}

const page = globalThis.rlhost = new Page();
page.open().catch(fails);
