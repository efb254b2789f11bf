// The edge of a unit, to be dragged: its margin, and the points that decide it.

import { button, slider, status } from "./controls.js";
import { html, Plane, set, svg, text } from "./plot.js";
import { fromArrays, keep, Points, restore } from "./points.js";
import { maxMargin, signedDistances } from "./separation.js";

export function render({ model, el }) {
  const { X, y, limit = 3.2 } = model.get("data"), about = model.get("about");
  const first = () => ({ points: fromArrays(X, y), angle: 0, b: 0 });
  const state = { ...first(), ...restore(model) };
  const plane = new Plane({ x: [-limit, limit], y: [-limit, limit], labels: ["x₁", "x₂"], about });
  const sides = ["plus", "minus"].map((side) => svg("path", { class: `live-side ${side}` }));
  const edge = svg("path", { class: "live-line" }), reach = svg("path", { class: "live-grip" });
  const gap = svg("path", { class: "live-dashes" }), normal = svg("path", { class: "live-arrow" });
  plane.below.append(...sides);
  plane.layer.append(gap, normal, edge, reach);
  const turn = svg("circle", { r: 9, class: "live-handle", tabindex: 0, role: "button" });
  const said = status();

  const draw = () => {
    const radians = (state.angle * Math.PI) / 180, w = [Math.cos(radians), Math.sin(radians)];
    const b = state.b, foot = [-b * w[0], -b * w[1]], tip = foot.map((v, k) => v + 0.8 * w[k]);
    set(sides[0], { d: plane.path(plane.halfPlane(w, b), true) });
    set(sides[1], { d: plane.path(plane.halfPlane([-w[0], -w[1]], -b), true) });
    for (const line of [edge, reach]) set(line, { d: plane.path(plane.lineEnds(w, b)) });
    set(normal, { d: plane.path([foot, tip]) });
    const [cx, cy] = plane.toPixel(...tip);
    set(turn, { cx, cy, "aria-label": `direction of the weights, ${text(state.angle, 1)} degrees` });
    const gamma = signedDistances(state.points, w, b), margin = Math.min(...gamma);
    const nearest = state.points[gamma.indexOf(margin)];
    const height = nearest ? w[0] * nearest.x + w[1] * nearest.y + b : 0;
    const end = nearest && [nearest.x - height * w[0], nearest.y - height * w[1]];
    set(gap, { d: nearest ? plane.path([[nearest.x, nearest.y], end]) : "M0,0" });
    const wrong = gamma.filter((g) => g <= 0).length, best = maxMargin(state.points);
    const top = best ? `the best line has ${text(best.margin)}` : "no line gets all of them right";
    said.say(html("strong", {}, `${wrong} wrong, margin ${text(margin)}`), `; ${top}`);
    el.dataset.margin = margin;
  };
  const changed = () => {
    draw();
    keep(model, { ...state, points: pad.points });
  };
  const angle = slider({
    label: "angle of w (degrees)", min: 0, max: 360, step: 0.1, digits: 1, value: state.angle,
    input: (v) => { state.angle = v; changed(); },
  });
  const bias = slider({
    label: "bias b", min: -limit, max: limit, step: 0.01, value: state.b,
    input: (v) => { state.b = v; changed(); },
  });
  const move = (degrees, b) => {
    state.angle = ((degrees % 360) + 360) % 360;
    state.b = Math.min(limit, Math.max(-limit, b));
    angle.show(state.angle);
    bias.show(state.b);
    changed();
  };

  dragging(reach, (event) => {
    const [x1, x2] = plane.toData(event), radians = (state.angle * Math.PI) / 180;
    move(state.angle, -(x1 * Math.cos(radians) + x2 * Math.sin(radians)));
  });
  dragging(turn, (event) => {
    const [x1, x2] = plane.toData(event), radians = (state.angle * Math.PI) / 180;
    const foot = [-state.b * Math.cos(radians), -state.b * Math.sin(radians)];
    move((Math.atan2(x2 - foot[1], x1 - foot[0]) * 180) / Math.PI, state.b);
  });
  set(turn, { keydown: (event) => {
    const steps = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const [a, c] = steps[event.key], fine = event.shiftKey ? 0.1 : 1;
    move(state.angle + a * fine, state.b + 0.1 * c * fine);
  } });

  const pad = new Points(plane, state.points, { changed, adding: () => 1, most: 40 });
  plane.above.append(turn);
  const reset = button("Reset", () => {
    Object.assign(state, first());
    pad.replace(state.points);
    move(state.angle, state.b);
  });
  el.classList.add("live");
  el.replaceChildren(
    plane.element, said.element,
    html("div", { class: "live-controls" }, angle.element, bias.element, reset),
  );
  draw();
}

/** Call `move` with the pointer's events while an element is dragged. */
function dragging(element, move) {
  set(element, {
    pointerdown: (event) => {
      event.preventDefault();
      element.setPointerCapture(event.pointerId);
      element.addEventListener("pointermove", move);
    },
    pointerup: () => element.removeEventListener("pointermove", move),
    pointercancel: () => element.removeEventListener("pointermove", move),
  });
}
