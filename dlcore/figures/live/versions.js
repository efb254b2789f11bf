// Data space and weight space, side by side: an example is a cut, a unit is a direction.

import { button, choice, slider, status } from "./controls.js";
import { dragging, html, Plane, set, svg, text } from "./plot.js";
import { fromArrays, keep, Points, restore } from "./points.js";
import { closestPoint } from "./separation.js";

const DEGREES = 180 / Math.PI, TURN = 2 * Math.PI;
const around = (v) => ((v % TURN) + TURN) % TURN;

/** The signed points y x; a unit without a bias is right where its product with them is positive. */
const signed = (points) => points.map(({ x, y, label }) => [label * x, label * y]);

/**
 * The directions of all weights that get points right without a bias, as version_arc of dlcore.
 *
 * `{ low, high, ends }` with low < high ≤ low + π: angles, and the two examples that cut there;
 * null if no direction is left. Without examples all are: then low and high are a turn apart.
 */
export function versionArc(points) {
  if (!points.length) return { low: -Math.PI, high: Math.PI, ends: [] };
  const Z = signed(points), angles = Z.map(([z1, z2]) => Math.atan2(z2, z1));
  const turns = angles.map((angle) => around(angle - angles[0] + Math.PI) - Math.PI);
  const last = Math.max(...turns), first = Math.min(...turns);
  const low = last - Math.PI / 2, high = first + Math.PI / 2;
  if (Z.some(([z1, z2]) => z1 === 0 && z2 === 0) || high - low <= 1e-12) return null;
  const ends = [turns.indexOf(last), turns.indexOf(first)];
  return { low: angles[0] + low, high: angles[0] + high, ends };
}

/** At most three examples that leave no direction together: zero is a mean of their y x. */
export function conflict(points) {
  const { weights } = closestPoint(signed(points));
  return weights.flatMap((weight, i) => (weight > 1e-9 ? [i] : []));
}

/** Which examples the direction of an angle gets wrong; one on the edge is wrong. */
export function mistakes(points, angle) {
  const w = [Math.cos(angle), Math.sin(angle)];
  return signed(points).flatMap(([z1, z2], i) => (w[0] * z1 + w[1] * z2 <= 0 ? [i] : []));
}

export function render({ model, el }) {
  const { X, y, limit = 1.5, shown = X.length } = model.get("data"), about = model.get("about");
  const all = fromArrays(X, y), first = () => all.slice(0, shown).map((p) => ({ ...p }));
  const state = { points: first(), next: shown, angle: 0, label: "1", ...restore(model) };
  const size = { width: 320, height: 314 }, wide = 1.3;
  const data = new Plane({ x: [-limit, limit], y: [-limit, limit], labels: ["x₁", "x₂"], about, ...size });
  const weights = new Plane({
    x: [-wide, wide], y: [-wide, wide], labels: ["w₁", "w₂"], ...size,
    about: "Weight space: the circle of all directions of the weights",
  });
  const sides = ["plus", "minus"].map((side) => svg("path", { class: `live-side ${side}` }));
  const edge = svg("path", { class: "live-line" }), arrow = svg("path", { class: "live-arrow" });
  const rings = svg("g");
  data.below.append(...sides);
  data.layer.append(edge, arrow, rings);
  const allowed = svg("path", { class: "live-allowed" }), lost = svg("path", { class: "live-lost" });
  const circle = svg("path", { class: "live-circle" }), arc = svg("path", { class: "live-arc" });
  const cuts = svg("g"), needle = svg("path", { class: "live-arrow" });
  weights.below.append(allowed, lost, cuts);
  weights.layer.append(circle, arc, needle);
  const handle = svg(
    "g", { class: "live-turn", tabindex: 0, role: "slider", "aria-label": "direction of the weights",
      "aria-valuemin": 0, "aria-valuemax": 360 },
    svg("circle", { r: 20, class: "live-reach" }), svg("circle", { r: 9, class: "live-handle" }),
  );
  const said = status();
  let held = -1; // the example whose cut is shown thick

  const onCircle = (angle) => [Math.cos(angle), Math.sin(angle)];
  const arcPath = (low, high) => {
    const steps = Math.max(2, Math.ceil(((high - low) / TURN) * 120));
    return Array.from({ length: steps + 1 }, (_, k) => onCircle(low + ((high - low) * k) / steps));
  };
  const drawCuts = (marked) => {
    const lines = pad.points.map(({ x, y: x2, label }, i) => {
      const look = `${label > 0 ? "plus" : "minus"} ${marked.includes(i) ? "ends" : ""} ${i === held ? "held" : ""}`;
      return svg("path", { class: `live-cut ${look}`, d: weights.path(weights.lineEnds([x, x2], 0)) });
    });
    cuts.replaceChildren(...lines);
    rings.replaceChildren(...marked.map((i) => {
      const [cx, cy] = data.toPixel(pad.points[i].x, pad.points[i].y);
      return svg("circle", { cx, cy, r: 12, class: "live-ring" });
    }));
    const point = pad.points[held], z = point && signed([point])[0];
    const there = z && Math.atan2(z[1], z[0]);
    set(lost, { d: z ? weights.path(arcPath(there + Math.PI / 2, there + 1.5 * Math.PI), true) : "M0,0" });
  };
  const draw = () => {
    const angle = state.angle / DEGREES, w = onCircle(angle), back = [-w[0], -w[1]];
    set(sides[0], { d: data.path(data.halfPlane(w, 0), true) });
    set(sides[1], { d: data.path(data.halfPlane(back, 0), true) });
    set(edge, { d: data.path(data.lineEnds(w, 0)) });
    set(arrow, { d: data.arrow([0, 0], w.map((v) => 0.55 * limit * v)) });
    set(needle, { d: weights.arrow([0, 0], w.map((v) => 0.88 * v)) });
    const [px, py] = weights.toPixel(...w), wrong = mistakes(pad.points, angle).length;
    set(handle, { transform: `translate(${px} ${py})`, "aria-valuenow": state.angle.toFixed(1),
      "aria-valuetext": `${text(state.angle, 1)} degrees, ${wrong} wrong` });
    const found = versionArc(pad.points), path = found ? arcPath(found.low, found.high) : [];
    const marked = found ? [...new Set(found.ends)] : conflict(pad.points);
    set(arc, { d: weights.path(path) });
    set(allowed, { d: found ? weights.path([[0, 0], ...path], true) : "M0,0" });
    drawCuts(marked);
    said.say(html("strong", {}, `${wrong} of ${pad.points.length} wrong.`), ` ${left(found, marked)}`);
    Object.assign(el.dataset, { wrong, low: found?.low ?? "", high: found?.high ?? "" });
    el.dataset.marked = marked.join(" ");
    more.disabled = state.next >= all.length;
    more.textContent = more.disabled ? "No more examples" : `Next: example ${state.next + 1} of ${all.length}`;
  };
  const changed = () => {
    draw();
    keep(model, { ...state, points: pad.points });
  };
  const turn = (degrees) => {
    state.angle = ((degrees % 360) + 360) % 360;
    angle.show(state.angle);
    changed();
  };
  const towards = (event) => {
    const [w1, w2] = weights.toData(event);
    turn(Math.atan2(w2, w1) * DEGREES);
  };
  const angle = slider({
    label: "angle of w (degrees)", min: 0, max: 360, step: 0.1, digits: 1, value: state.angle,
    input: (v) => { state.angle = v; changed(); },
  });
  const label = choice({
    label: "a click adds", options: { 1: "blue", "-1": "orange" }, value: state.label,
    input: (v) => { state.label = v; changed(); },
  });
  const more = button("", () => {
    pad.points.push({ ...all[state.next] });
    state.next += 1;
    pad.draw();
    held = pad.points.length - 1;
    changed();
  });
  const begin = (points, next) => () => {
    [state.next, held] = [next, -1];
    pad.replace(points());
    changed();
  };

  dragging(handle, towards);
  set(weights.ground, { click: towards });
  set(handle, { keydown: (event) => {
    const steps = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    turn(state.angle + steps[event.key] * (event.shiftKey ? 0.1 : 1));
  } });
  weights.above.append(handle);
  const pad = new Points(data, state.points, { changed, adding: () => Number(state.label), most: 40 });
  const hold = ({ target }) => {
    const at = pad.marks.indexOf(target.closest(".live-point"));
    if (at < 0 || at === held) return;
    held = at;
    draw();
  };
  set(data.element, { focusin: hold, pointerover: hold });

  el.classList.add("live");
  el.replaceChildren(
    html("div", { class: "live-spaces" },
      titled("data space", data.element), titled("weight space", weights.element)),
    said.element,
    html("div", { class: "live-controls" }, angle.element),
    html("div", { class: "live-controls" },
      more, label.element, button("Our examples", begin(first, shown)), button("Clear", begin(() => [], 0))),
  );
  set(circle, { d: weights.path(arcPath(0, TURN)) });
  draw();
}

const titled = (title, element) => html("div", {}, html("span", {}, title), element);

/** Say what the examples leave of the circle. */
function left(arc, marked) {
  if (arc && !marked.length) return "Every direction is allowed.";
  const width = arc && text((arc.high - arc.low) * DEGREES, 1);
  if (arc) return `${width}° of the circle are left; the ringed examples hold the ends.`;
  if (marked.length < 2) return "No direction is left: the ringed example lies at the origin.";
  return `No direction is left: the ${marked.length} ringed examples allow none in common.`;
}
