// A pad with labelled points: to click, to drag, to move by keys.

import { set, svg, text } from "./plot.js";

/** Points from the rows of a matrix and their labels. */
export function fromArrays(X, y) {
  return X.map(([x1, x2], i) => ({ x: x1, y: x2, label: y[i] }));
}

/** What an address or a kernel remembers of a figure; points are rows `[x, y, label]`. */
export function restore(model) {
  const { points, ...others } = model.get("state") ?? {};
  if (!Array.isArray(points)) return others;
  return { ...others, points: points.map(([x, y, label]) => ({ x, y, label })) };
}

/** Let the address, or the kernel, remember a state. */
export function keep(model, { points, ...others }) {
  const round = (v) => (typeof v === "number" ? Math.round(v * 1e3) / 1e3 : v);
  const state = Object.fromEntries(Object.entries(others).map(([k, v]) => [k, round(v)]));
  state.points = points.map(({ x, y, label }) => [round(x), round(y), label]);
  model.set("state", state);
  model.save_changes();
}

const NAMES = { 1: "blue disc, label +1", [-1]: "orange square, label −1" };
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * Points on a plane. Each is `{ x, y, label }`, with the label 1 or −1.
 *
 * A click beside the points adds one, with the label that `adding()` gives; a click on a point
 * turns its label. Drag a point to move it, and out of the plane to take it away. By keys:
 * arrows, space, Delete. After each change `changed()` is called.
 */
export class Points {
  constructor(plane, points, { adding, changed, most = 60 }) {
    Object.assign(this, { plane, points, adding, changed, most });
    this.group = svg("g");
    plane.above.append(this.group);
    set(plane.ground, { click: (event) => this.add(plane.toData(event)) });
    this.draw();
  }

  add([x, y]) {
    if (this.points.length >= this.most) return;
    this.points.push({ x, y, label: this.adding() });
    this.draw();
    this.changed();
  }

  replace(points) {
    this.points = points;
    this.draw();
  }

  /** Draw all points anew; those that are only moved are drawn by `place`. */
  draw() {
    this.marks = this.points.map((point) => this.mark(point));
    this.group.replaceChildren(...this.marks);
  }

  mark(point) {
    const shape = point.label > 0
      ? svg("circle", { r: 7 })
      : svg("rect", { x: -6.5, y: -6.5, width: 13, height: 13 });
    const reach = svg("circle", { r: 16, class: "live-reach" });
    const mark = svg(
      "g",
      { tabindex: 0, role: "button", class: `live-point ${point.label > 0 ? "plus" : "minus"}`,
        pointerdown: (event) => this.take(event, point, mark),
        keydown: (event) => this.key(event, point, mark) },
      reach, shape,
    );
    this.place(point, mark);
    return mark;
  }

  place(point, mark) {
    const [x, y] = this.plane.toPixel(point.x, point.y);
    const where = `at ${text(point.x)}, ${text(point.y)}`;
    set(mark, { transform: `translate(${x} ${y})`, "aria-label": `${NAMES[point.label]}, ${where}` });
  }

  take(event, point, mark) {
    event.preventDefault();
    mark.focus({ preventScroll: true });
    mark.setPointerCapture(event.pointerId);
    let moved = false;
    const move = (e) => {
      moved ||= Math.hypot(e.clientX - event.clientX, e.clientY - event.clientY) > 3;
      if (!moved) return;
      [point.x, point.y] = this.plane.toData(e);
      this.place(point, mark);
      this.changed();
    };
    const leave = (e) => {
      mark.removeEventListener("pointermove", move);
      if (e.type === "pointercancel") return;
      if (!moved) this.turn(point);
      else if (!this.plane.holds(e)) this.remove(point);
    };
    mark.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"])
      mark.addEventListener(end, leave, { once: true });
  }

  /** Give a point the other label. */
  turn(point) {
    point.label = -point.label;
    this.redraw(this.points.indexOf(point));
  }

  remove(point) {
    const at = this.points.indexOf(point);
    this.points.splice(at, 1);
    this.redraw(Math.min(at, this.points.length - 1));
  }

  redraw(at) {
    this.draw();
    this.marks[at]?.focus({ preventScroll: true });
    this.changed();
  }

  key(event, point, mark) {
    const { x: [x0, x1], y: [y0, y1] } = this.plane;
    if (event.key in MOVES) {
      const [dx, dy] = MOVES[event.key], step = (x1 - x0) / (event.shiftKey ? 200 : 40);
      point.x = Math.min(x1, Math.max(x0, point.x + dx * step));
      point.y = Math.min(y1, Math.max(y0, point.y + dy * step));
      this.place(point, mark);
      this.changed();
    } else if (event.key === " " || event.key === "Enter") this.turn(point);
    else if (event.key === "Delete" || event.key === "Backspace") this.remove(point);
    else return;
    event.preventDefault();
  }
}
