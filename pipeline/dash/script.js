// What a page does beyond showing itself: it takes changes as they come, shows values of curves, zooms, and sends forms without leaving.
"use strict";

const page = new URLSearchParams(location.search);
const link = document.getElementById("link");
const still = document.getElementById("still");
const marks = document.getElementById("marks");
const figures = [...document.querySelectorAll("figure")];
document.body.classList.add("scripted");

// range is the part of the axis that all pictures show; null is all of it.
let range = page.get("from") && page.get("to") ? [Number(page.get("from")), Number(page.get("to"))] : null;
let version = 0;

// ask returns the address of a picture, or of its numbers, for what is shown now.
function ask(address) {
  const [path, query] = address.split("?");
  const q = new URLSearchParams(query);
  for (const key of ["from", "to", "v", "marks"]) q.delete(key);
  if (range) { q.set("from", range[0]); q.set("to", range[1]); }
  if (marks && !marks.checked) q.set("marks", "0");
  q.set("v", version);
  return path + "?" + q;
}

// Pictures that can be seen are drawn anew when there are new points; others once they are seen.
const seen = new Set();
const watcher = new IntersectionObserver(entries => {
  for (const e of entries) {
    if (!e.isIntersecting) { seen.delete(e.target); continue; }
    seen.add(e.target);
    if (e.target.stale) draw(e.target);
  }
}, { rootMargin: "100px" });

function draw(figure) {
  figure.stale = false;
  figure.numbers = null;
  if (figure.loading) { figure.again = true; return; }
  figure.loading = true;
  const next = new Image();
  next.onload = next.onerror = () => {
    figure.loading = false;
    const img = figure.querySelector("img");
    if (next.naturalWidth) { next.alt = img.alt; next.width = 480; next.height = 250; img.replaceWith(next); }
    if (document.activeElement === figure || figure.matches(":hover")) numbers(figure);
    if (figure.again) { figure.again = false; draw(figure); }
  };
  next.src = ask(figure.querySelector("img").getAttribute("src"));
}

function drawAll() {
  version++;
  for (const f of figures) seen.has(f) ? draw(f) : f.stale = true;
}

// numbers returns what a picture shows, for the pointer; null while it comes.
function numbers(figure) {
  if (!figure.numbers && !figure.asking) {
    figure.asking = true;
    fetch(ask(figure.dataset.points)).then(r => r.ok ? r.json() : null).then(n => { figure.numbers = n; }).catch(() => {}).finally(() => { figure.asking = false; });
  }
  return figure.numbers;
}

function box(figure) { return figure.querySelector("img").getBoundingClientRect(); }

// place returns the value of the axis under a pointer.
function place(figure, clientX) {
  const n = numbers(figure), b = box(figure);
  if (!n) return null;
  const share = ((clientX - b.left) / b.width - n.layout.Left) / (n.layout.Right - n.layout.Left);
  return n.layout.MinX + Math.min(Math.max(share, 0), 1) * (n.layout.MaxX - n.layout.MinX);
}

function near(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) { const m = (low + high) >> 1; xs[m] < x ? low = m : high = m; }
  return high < 0 ? -1 : x - xs[low] < xs[high] - x ? low : high;
}

const short = v => Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(3) : String(Math.round(v * 1000) / 1000);

// bar shows a line or an area over a picture, between two values of the axis.
function bar(figure, kind, from, to) {
  let e = figure.querySelector("." + kind);
  if (!e) { e = document.createElement("div"); e.className = kind; figure.append(e); }
  const n = figure.numbers, b = box(figure), f = figure.getBoundingClientRect();
  const at = x => b.left - f.left + b.width * (n.layout.Left + (x - n.layout.MinX) / (n.layout.MaxX - n.layout.MinX) * (n.layout.Right - n.layout.Left));
  e.style.left = at(Math.min(from, to)) + "px";
  e.style.width = Math.max(at(Math.max(from, to)) - at(Math.min(from, to)), 1) + "px";
  e.style.top = b.top - f.top + b.height * n.layout.Top + "px";
  e.style.height = b.height * (n.layout.Bottom - n.layout.Top) + "px";
}

function hover(figure, clientX) {
  const x = place(figure, clientX);
  if (x === null) return;
  const n = figure.numbers, lines = ["x " + short(x)];
  for (const l of n.lines || []) {
    const i = near(l.x, x);
    if (i >= 0) lines.push((l.label || "value") + " " + short(l.y[i]) + (l.low ? " (" + short(l.low[i]) + " to " + short(l.high[i]) + ")" : ""));
  }
  const close = (n.layout.MaxX - n.layout.MinX) / 100;
  for (const m of n.marks || []) if (Math.abs(m.x - x) < close) lines.push(m.text);
  figure.querySelector("output").textContent = lines.slice(0, 12).join("\n");
  bar(figure, "cross", x, x);
}

function leave(figure) {
  figure.querySelector("output").textContent = "";
  for (const e of figure.querySelectorAll(".cross, .chosen")) e.remove();
}

function zoom(to) {
  range = to;
  const q = new URLSearchParams(location.search);
  q.delete("from"); q.delete("to");
  if (to) { q.set("from", to[0]); q.set("to", to[1]); }
  history.replaceState(null, "", "?" + q);
  for (const key of ["from", "to"]) {
    const field = document.querySelector(`.axes input[name=${key}]`);
    if (field) field.value = q.get(key) || "";
  }
  figures.forEach(leave);
  drawAll();
}

for (const figure of figures) {
  watcher.observe(figure);
  let began = null;
  figure.addEventListener("pointerdown", e => { began = place(figure, e.clientX); if (began !== null) { figure.setPointerCapture(e.pointerId); e.preventDefault(); figure.focus(); } });
  figure.addEventListener("pointermove", e => {
    hover(figure, e.clientX);
    const x = place(figure, e.clientX);
    if (began !== null && x !== null) bar(figure, "chosen", began, x);
  });
  figure.addEventListener("pointerup", e => {
    const x = place(figure, e.clientX), from = began, n = figure.numbers;
    began = null;
    if (from !== null && x !== null && Math.abs(x - from) > (n.layout.MaxX - n.layout.MinX) / 100) zoom([Math.min(from, x), Math.max(from, x)]);
    else leave(figure);
  });
  figure.addEventListener("pointerleave", () => { began = null; leave(figure); });
  figure.addEventListener("dblclick", () => zoom(null));
  figure.addEventListener("focus", () => numbers(figure));
  figure.addEventListener("keydown", e => {
    const n = numbers(figure);
    if (e.key === "Escape" || e.key === "0") { zoom(null); e.preventDefault(); return; }
    if (!n) return;
    const { MinX: a, MaxX: b } = n.layout, w = b - a;
    const to = { ArrowLeft: [a - w / 4, b - w / 4], ArrowRight: [a + w / 4, b + w / 4], "+": [a + w / 4, b - w / 4], "-": [a - w / 2, b + w / 2] }[e.key];
    if (to) { zoom(to); e.preventDefault(); }
  });
}

if (marks) marks.addEventListener("change", drawAll);

// Changes come as events, part by part.
let source = null;
function listen() {
  const q = new URLSearchParams();
  for (const run of page.getAll("run")) q.append("run", run);
  if (!figures.length || ![...q].length) return;
  source = new EventSource("events?" + q);
  source.onopen = () => { link.textContent = "live"; };
  source.onerror = () => { link.textContent = "connection lost: trying again"; };
  source.addEventListener("curves", drawAll);
  source.addEventListener("part", e => {
    const [name, html] = JSON.parse(e.data), part = document.getElementById("part-" + name);
    if (!part) return;
    const log = part.querySelector(".log"), end = !log || log.scrollTop + log.clientHeight > log.scrollHeight - 40;
    const kept = [...part.querySelectorAll(".wide")].map(w => [w.scrollLeft, w.scrollTop]);
    part.innerHTML = html;
    part.querySelectorAll(".wide").forEach((w, i) => { if (kept[i]) [w.scrollLeft, w.scrollTop] = kept[i]; });
    const now = part.querySelector(".log");
    if (now && end) now.scrollTop = now.scrollHeight;
  });
}
function stop() { if (source) source.close(); source = null; link.textContent = ""; }
if (still) still.addEventListener("change", () => { still.checked ? stop() : listen(); });
if (!still || !still.checked) listen();

// Forms of commands answer in place; the command line follows their fields.
const quote = word => /^[-\w./=:@,+]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
for (const form of document.querySelectorAll(".actions form")) {
  const line = form.querySelector("code"), said = form.querySelector("output");
  const tell = () => {
    line.textContent = form.dataset.line.replace(/\{(\w+)\}/g, (all, name) => form.elements[name] && form.elements[name].value ? quote(form.elements[name].value) : name.toUpperCase());
  };
  form.addEventListener("input", tell);
  form.addEventListener("submit", async e => {
    e.preventDefault();
    if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
    const button = form.querySelector("button");
    button.disabled = true;
    said.textContent = "…";
    try {
      const r = await fetch(form.action, { method: "POST", headers: { Accept: "text/plain" }, body: new URLSearchParams(new FormData(form)) });
      said.textContent = await r.text();
    } catch (error) {
      said.textContent = "the page's server does not answer: " + error.message;
    }
    button.disabled = false;
  });
}
