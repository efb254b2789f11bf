// A pad to draw a digit on: by pointer, by finger, by keys; and digits set as MNIST's are.

import { html, set } from "./plot.js";

/** Rows and columns of a picture of MNIST. */
export const SIDE = 28;

/** Rows and columns of the ink on a pad, for each of a picture. */
export const FINE = 4;

const WIDE = SIDE * FINE;
const BOX = 20; // a digit of MNIST fits into a box of so many pixels
const PEN = 1.2 * FINE; // radius
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Draw a line from [x0, y0] to [x1, y1] with a round pen into `ink`, from 0 to 1. */
export function stroke(ink, [x0, y0], [x1, y1], radius = PEN) {
  const reach = radius + 1, square = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  const from = (a, b) => Math.max(0, Math.floor(Math.min(a, b) - reach));
  const to = (a, b) => Math.min(WIDE - 1, Math.ceil(Math.max(a, b) + reach));
  for (let i = from(y0, y1); i <= to(y0, y1); i++) {
    for (let j = from(x0, x1); j <= to(x0, x1); j++) {
      const dx = j + 0.5 - x0, dy = i + 0.5 - y0;
      const along = square ? (dx * (x1 - x0) + dy * (y1 - y0)) / square : 0;
      const t = Math.min(1, Math.max(0, along));
      const far = Math.hypot(dx - t * (x1 - x0), dy - t * (y1 - y0));
      const dark = Math.min(1, Math.max(0, radius + 0.5 - far)), at = i * WIDE + j;
      if (dark > ink[at]) ink[at] = dark;
    }
  }
}

/** The ink of a picture of MNIST, `pixels` from 0 to 1: each becomes a square. */
export function enlarged(pixels) {
  return Float64Array.from({ length: WIDE * WIDE }, (_, at) => {
    const row = Math.floor(at / WIDE / FINE), column = Math.floor((at % WIDE) / FINE);
    return pixels[row * SIDE + column];
  });
}

/** The picture of an ink as it stands on the pad: means of squares. */
export function reduced(ink) {
  return sampled(ink, { top: 0, left: 0, scale: FINE });
}

/**
 * The picture of an ink as MNIST has it: the digit is scaled to fit a box of 20 × 20, and
 * moved by whole pixels until its centre of mass lies in the middle one. Null without ink.
 */
export function centred(ink) {
  const box = bounds(ink);
  if (!box) return null;
  const { top, left, bottom, right } = box;
  const scale = Math.max(bottom - top, right - left) / BOX;
  const corner = sampled(ink, { top, left, scale });
  const [row, column] = centreOfMass(corner).map((c) => Math.round(SIDE / 2 - c));
  const picture = new Float64Array(SIDE * SIDE);
  corner.forEach((dark, at) => {
    const i = Math.floor(at / SIDE) + row, j = (at % SIDE) + column;
    if (dark > 0 && i >= 0 && i < SIDE && j >= 0 && j < SIDE) picture[i * SIDE + j] = dark;
  });
  return picture;
}

/** The rows and columns that have ink, the last ones excluded; null if there are none. */
function bounds(ink) {
  let [top, left, bottom, right] = [WIDE, WIDE, 0, 0];
  ink.forEach((dark, at) => {
    if (!(dark > 0)) return;
    const i = Math.floor(at / WIDE), j = at % WIDE;
    [top, left] = [Math.min(top, i), Math.min(left, j)];
    [bottom, right] = [Math.max(bottom, i + 1), Math.max(right, j + 1)];
  });
  return bottom ? { top, left, bottom, right } : null;
}

/** Means of the squares of `scale` × `scale` that lie side by side, beginning at a corner. */
function sampled(ink, { top, left, scale }) {
  const rows = shares(top, scale), columns = shares(left, scale);
  return Float64Array.from({ length: SIDE * SIDE }, (_, at) => {
    let sum = 0;
    for (const [i, high] of rows[Math.floor(at / SIDE)])
      for (const [j, wide] of columns[at % SIDE]) sum += high * wide * ink[i * WIDE + j];
    return sum;
  });
}

/** For each of 28 intervals of length `scale`, the unit intervals in it with their shares. */
function shares(first, scale) {
  return Array.from({ length: SIDE }, (_, k) => {
    const low = first + k * scale, high = low + scale, found = [];
    for (let i = Math.floor(low); i < Math.min(high, WIDE); i++)
      found.push([i, (Math.min(high, i + 1) - Math.max(low, i)) / scale]);
    return found;
  });
}

/** Row and column, counted from 0, around which a picture is balanced. */
function centreOfMass(picture) {
  let [mass, row, column] = [0, 0, 0];
  picture.forEach((dark, at) => {
    mass += dark;
    row += dark * Math.floor(at / SIDE);
    column += dark * (at % SIDE);
  });
  return [row / mass, column / mass];
}

/** A picture of numbers from 0 (paper) to 1 (ink), which `draw` changes. */
export class Picture {
  constructor(side, { about, ...more } = {}) {
    const named = about ? { role: "img", "aria-label": about } : { "aria-hidden": "true" };
    const size = { width: side, height: side, class: "live-ink" };
    this.element = html("canvas", { ...size, ...named, ...more });
  }

  draw(numbers) {
    const { width, height } = this.element, context = this.element.getContext("2d");
    const pixels = context.createImageData(width, height);
    for (let k = 0; k < numbers.length; k++)
      pixels.data[4 * k + 3] = Math.round(255 * Math.min(1, Math.max(0, numbers[k])));
    context.putImageData(pixels, 0, 0);
  }
}

/**
 * A pad: strokes, lists of points [x, y] in pixels of its ink, over a ground.
 *
 * Drag to draw. By keys: arrows move a cursor, space inks, arrows with shift draw, Backspace
 * takes the last stroke back. After each change `changed()` is called, and `moved(row, column)`
 * when the cursor has moved without ink.
 */
export class Pad {
  constructor({ about, changed, moved = () => {} }) {
    Object.assign(this, { changed, moved, ground: null, strokes: [], cursor: [14, 14] });
    this.ink = new Float64Array(WIDE * WIDE);
    this.picture = new Picture(WIDE);
    this.mark = html("span", { class: "live-cursor", "aria-hidden": "true", hidden: true });
    this.element = html(
      "div",
      { class: "live-pad", tabindex: 0, role: "application", "aria-label": about,
        pointerdown: (event) => this.take(event), keydown: (event) => this.key(event) },
      this.picture.element, this.mark,
    );
    this.paint();
  }

  /** Show strokes over a ground, a picture or null. */
  replace(strokes, ground = null) {
    Object.assign(this, { strokes, ground });
    this.paint();
  }

  undo() {
    if (this.strokes.length) this.strokes.pop();
    else this.ground = null;
    this.paint();
    this.changed();
  }

  get empty() {
    return !this.strokes.length && !this.ground;
  }

  /** Draw all of the ink anew. */
  paint() {
    this.ink = this.ground ? enlarged(this.ground) : new Float64Array(WIDE * WIDE);
    for (const points of this.strokes)
      points.forEach((point, k) => stroke(this.ink, points[Math.max(0, k - 1)], point));
    this.show();
  }

  show() {
    this.picture.draw(this.ink);
    const [column, row] = this.cursor, part = (v) => `${(100 * v) / SIDE}%`;
    set(this.mark, { style: `left: ${part(column)}; top: ${part(row)}` });
  }

  /** Go on with the last stroke. */
  draw(point) {
    const points = this.strokes.at(-1), rounded = point.map((v) => Math.round(v * 10) / 10);
    stroke(this.ink, points.at(-1) ?? rounded, rounded);
    points.push(rounded);
  }

  take(event) {
    if (event.button) return;
    set(this.mark, { hidden: true });
    this.element.setPointerCapture(event.pointerId);
    const { left, top, width, height } = this.element.getBoundingClientRect();
    const place = (e) => [((e.clientX - left) / width) * WIDE, ((e.clientY - top) / height) * WIDE];
    const go = (e) => {
      const events = e.getCoalescedEvents?.() ?? [];
      for (const one of events.length ? events : [e]) this.draw(place(one));
      this.show();
      this.changed();
    };
    const leave = () => this.element.removeEventListener("pointermove", go);
    this.strokes.push([]);
    go(event);
    this.element.addEventListener("pointermove", go);
    for (const end of ["pointerup", "pointercancel"])
      this.element.addEventListener(end, leave, { once: true });
  }

  key(event) {
    set(this.mark, { hidden: false });
    const middle = ([column, row]) => [(column + 0.5) * FINE, (row + 0.5) * FINE];
    if (event.key in MOVES) {
      const old = middle(this.cursor), [dx, dy] = MOVES[event.key], [column, row] = this.cursor;
      const inside = (v) => Math.min(SIDE - 1, Math.max(0, v));
      this.cursor = [inside(column + dx), inside(row + dy)];
      if (event.shiftKey) {
        if (`${this.strokes.at(-1)?.at(-1)}` !== `${old}`) this.strokes.push([old]);
        this.draw(middle(this.cursor));
      } else this.moved(...this.cursor.map((v) => v + 1).reverse());
      this.show();
      if (event.shiftKey) this.changed();
    } else if (event.key === " ") {
      this.strokes.push([]);
      this.draw(middle(this.cursor));
      this.show();
      this.changed();
    } else if (event.key === "Backspace" || event.key === "Delete") this.undo();
    else return;
    event.preventDefault();
  }
}
