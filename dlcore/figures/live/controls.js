// What a reader moves, types and presses; all of it works by keyboard and is labelled.

import { html, set, text } from "./plot.js";

/** A button; `press` is called when it is pressed. */
export function button(said, press, more = {}) {
  return html("button", { type: "button", click: press, ...more }, said);
}

/**
 * A slider with its value beside it, to be typed; `input` gets the number.
 *
 * With `log` the track has equal lengths for equal factors; with `digits: 0` a number that is
 * typed is rounded.
 */
export function slider({ label, min, max, step, value, input, digits = 2, log = false }) {
  const [there, back] = log ? [Math.log, Math.exp] : [(v) => v, (v) => v];
  const ends = { min: there(min), max: there(max), step: log ? "any" : step };
  const range = html("input", { type: "range", ...ends, "aria-label": label,
    "data-lm-suppress-shortcuts": "" }); // JupyterLab's arrow keys go to another cell
  const typed = html("input", { type: "number", min, max, step: "any", "aria-label": label });
  let current = value;
  const show = (v) => {
    current = v;
    range.value = there(v);
    range.setAttribute("aria-valuetext", text(v, digits));
    if (document.activeElement !== typed) typed.value = Number(v).toFixed(digits);
  };
  const moved = (entry, number) => () => {
    const v = number(entry.valueAsNumber);
    if (!Number.isFinite(v)) return;
    const inside = Math.min(max, Math.max(min, digits ? v : Math.round(v)));
    show(inside);
    input(inside);
  };
  set(range, { input: moved(range, back) });
  set(typed, { input: moved(typed, (v) => v), blur: () => show(current) });
  show(value);
  const element = html("div", { class: "live-slider" }, html("span", {}, label), range, typed);
  return { element, show };
}

/** A button that stays pressed while something is on; `input` gets whether it is. */
export function toggle(said, value, input, more = {}) {
  const element = button(said, () => { show(!on); input(on); }, more);
  let on;
  const show = (now) => {
    on = now;
    set(element, { "aria-pressed": String(now) });
  };
  show(value);
  return { element, show };
}

/** A choice of one among few, as buttons that stay pressed; `input` gets the value. */
export function choice({ label, options, value, input }) {
  const buttons = Object.entries(options).map(([key, said]) => {
    const chosen = () => { show(key); input(key); };
    return [key, button(said, chosen, { "aria-pressed": "false" })];
  });
  const show = (chosen) => {
    for (const [key, b] of buttons) b.setAttribute("aria-pressed", String(key === chosen));
  };
  show(value);
  const element = html(
    "div", { class: "live-choice", role: "group", "aria-label": label },
    html("span", {}, label), ...buttons.map(([, b]) => b),
  );
  return { element, show };
}

/** A line that says what happens, to the eye and, when it rests, to the ear. */
export function status() {
  const seen = html("p", { class: "live-status", "aria-hidden": "true" });
  const heard = html("p", { class: "live-heard", role: "status" });
  let timer = 0;
  const say = (...parts) => {
    seen.replaceChildren(...parts);
    clearTimeout(timer);
    timer = setTimeout(() => { heard.textContent = seen.textContent; }, 600);
  };
  return { element: html("div", {}, seen, heard), say };
}

/** Call `step` once a frame until it returns false, or until it is stopped. */
export class Player {
  constructor(step) {
    this.step = step;
    this.frame = 0;
  }

  get playing() {
    return this.frame !== 0;
  }

  play() {
    if (this.playing) return;
    const next = () => {
      this.frame = requestAnimationFrame(next);
      if (this.step() === false) this.stop();
    };
    this.frame = requestAnimationFrame(next);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}
