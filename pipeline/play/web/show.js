// Shows a game beside each element with data-frames: pictures or text as they come, and a line below. Where it has data-press, keys go there.
"use strict";

const KEYS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", " ": "space", Enter: "enter", Escape: "esc", Backspace: "backspace" };

class Show {
  constructor(box) {
    this.box = box;
    this.part = name => box.querySelector("." + name);
    this.held = new Set();
    this.sent = Promise.resolve();
    if (box.tagName === "DETAILS") box.addEventListener("toggle", () => box.open ? this.open() : this.close());
    if (box.tagName !== "DETAILS" || box.open) this.open();
    if (box.dataset.press) this.listen();
  }

  open() {
    if (this.source) return;
    this.source = new EventSource(this.box.dataset.frames);
    this.source.onmessage = e => this.draw(JSON.parse(e.data));
    this.source.onerror = () => { this.part("note").textContent = "connection lost: trying again"; };
  }

  close() {
    if (this.source) this.source.close();
    this.source = null;
  }

  draw(frame) {
    const img = this.part("picture"), text = this.part("text");
    if (!frame.problem) {
      if (frame.picture) img.src = "data:image/png;base64," + frame.picture;
      text.textContent = frame.text || "";
      img.hidden = !frame.picture;
      text.hidden = !frame.text;
    }
    this.part("note").textContent = frame.problem || frame.note || "";
    this.part("said").textContent = (frame.by ? frame.by + ": " : "") + (frame.said || "");
  }

  listen() {
    const buttons = [...this.box.querySelectorAll("button[data-key]")];
    this.keys = new Set([...this.box.dataset.keys.split(" "), ...buttons.map(b => b.dataset.key)]);
    addEventListener("keydown", e => this.key(e, key => e.repeat || this.press(key)));
    addEventListener("keyup", e => this.key(e, key => this.release(key)));
    addEventListener("blur", () => { for (const key of this.held) this.release(key); });
    for (const button of buttons) {
      const key = button.dataset.key;
      button.addEventListener("pointerdown", () => this.press(key));
      for (const event of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(event, () => this.release(key));
      button.addEventListener("click", e => { if (!e.detail) { this.press(key); this.release(key); } }); // from the keyboard
    }
  }

  key(e, f) {
    const key = KEYS[e.key] || e.key;
    if (e.ctrlKey || e.metaKey || e.altKey || !this.keys.has(key)) return;
    e.preventDefault();
    f(key);
  }

  press(key) { this.held.add(key); this.send({ key }); }

  release(key) { if (this.held.delete(key)) this.send({ key, released: "1" }); }

  // send sends one key after the other.
  send(key) {
    const body = new URLSearchParams(key);
    this.sent = this.sent.then(() => fetch(this.box.dataset.press, { method: "POST", body })).then(async r => {
      if (!r.ok) this.part("note").textContent = await r.text();
    }).catch(() => { this.part("note").textContent = "the page's server does not answer"; });
  }
}

for (const box of document.querySelectorAll("[data-frames]")) new Show(box);
