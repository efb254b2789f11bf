// The perceptron at work on points of the reader's own, and eight hidden units beside it.

import { button, choice, Player, status } from "./controls.js";
import { adam, network, rng } from "./learn.js";
import { HeatMap, html, Plane, set, svg, text } from "./plot.js";
import { fromArrays, keep, Points, restore } from "./points.js";
import { hull, Perceptron, separate } from "./separation.js";

const XOR = [[-1, -1, -1], [1, 1, -1], [-1, 1, 1], [1, -1, 1]];
const PAUSE = 300; // milliseconds between two corrections, so that each is seen
const STEPS = 8; // of Adam, in a frame
const SETTLED = 1500; // steps after which the network stops

export function render({ model, el }) {
  const { X, y, limit = 1.7 } = model.get("data"), about = model.get("about");
  const state = { points: fromArrays(X, y), label: "1", hidden: "0", ...restore(model) };
  const plane = new Plane({ x: [-limit, limit], y: [-limit, limit], labels: ["x₁", "x₂"], about });
  const heat = new HeatMap(plane);
  const sides = ["plus", "minus"].map((side) => svg("path", { class: `live-side ${side}` }));
  const edge = svg("path", { class: "live-line" }), arrow = svg("path", { class: "live-arrow" });
  const ring = svg("circle", { r: 13, class: "live-ring" });
  const meet = svg("path", { class: "live-cross", d: "M-8,-8L8,8M-8,8L8,-8" });
  const hulls = ["plus", "minus"].map((side) => svg("path", { class: `live-hull ${side}` }));
  plane.below.append(...sides, ...hulls);
  plane.layer.append(edge, arrow, ring);
  plane.above.append(meet);
  const said = status();
  let unit, answer, net, rule, steps, cost;

  const begin = () => {
    player.stop();
    unit = new Perceptron(pad.points);
    answer = pad.points.length ? separate(pad.points) : {};
    net = network([2, 8, 1], { activation: "tanh", random: rng(1) });
    rule = adam({ lr: 0.03 });
    [steps, cost] = [0, NaN];
    draw();
  };
  const changed = () => {
    begin();
    keep(model, { ...state, points: pad.points });
  };
  const draw = () => {
    const units = state.hidden === "0";
    for (const part of [...sides, edge, arrow, ring])
      set(part, { display: units ? null : "none" });
    set(meet, { display: answer.meet ? null : "none" });
    hulls.forEach((path, k) => {
      const some = pad.points.filter(({ label }) => label > 0 === (k === 0));
      const corners = hull(answer.meet ? some : []);
      set(path, { d: plane.path(corners, corners.length > 2) });
    });
    if (answer.meet) set(meet, { transform: `translate(${plane.toPixel(...answer.meet)})` });
    if (units) drawUnit();
    else drawNetwork();
    buttons.learn.textContent = player.playing ? "Pause" : "Learn";
  };
  const drawUnit = () => {
    const { w, b, updates, mistake, points } = unit, length = Math.hypot(...w);
    heat.clear();
    set(sides[0], { d: plane.path(plane.halfPlane(w, b), true) });
    set(sides[1], { d: plane.path(plane.halfPlane([-w[0], -w[1]], -b), true) });
    set(edge, { d: plane.path(plane.lineEnds(w, b)) });
    const long = length ? (0.5 * limit) / length : 0;
    set(arrow, { d: length ? plane.arrow([0, 0], [w[0] * long, w[1] * long]) : "M0,0" });
    set(ring, { display: mistake < 0 ? "none" : null });
    if (mistake >= 0)
      set(ring, { transform: `translate(${plane.toPixel(points[mistake].x, points[mistake].y)})` });
    const wrong = points.filter(({ x, y, label }) => label * (w[0] * x + w[1] * y + b) <= 0).length;
    const bound = answer.bound ? `at most ${Math.floor(answer.bound + 1e-6)} (R²/γ²)` : "no bound";
    const end = answer.meet
      ? " No line separates these points: the hulls of the two classes meet at the cross."
      : unit.done && updates ? " Done: a whole pass without a mistake." : "";
    const counted = `${updates} correction${updates === 1 ? "" : "s"}, ${bound}; ${wrong} wrong.`;
    said.say(html("strong", {}, counted), end);
    Object.assign(el.dataset, { updates, wrong, bound: answer.bound ?? "" });
  };
  const drawNetwork = () => {
    const score = (x1, x2) => net.forward([x1, x2])[0];
    heat.draw((x1, x2) => Math.tanh(score(x1, x2) / 2));
    const wrong = pad.points.filter(({ x, y, label }) => label * score(x, y) <= 0).length;
    const mean = Number.isFinite(cost) ? `, mean loss ${text(cost, 3)}` : "";
    said.say(html("strong", {}, `${steps} steps of Adam${mean}; ${wrong} wrong.`));
    Object.assign(el.dataset, { steps, wrong });
  };

  const correct = () => {
    const more = state.hidden === "0" ? unit.step() : descend();
    draw();
    return more;
  };
  const descend = () => {
    const points = pad.points.map(({ x, y }) => [x, y]), labels = pad.points.map((p) => p.label);
    for (let k = 0; k < STEPS && points.length; k++, steps++) {
      const found = net.gradient(points, labels, "logistic");
      cost = found.cost;
      rule.step(net.parameters, found.gradients);
    }
    return points.length > 0 && steps < SETTLED;
  };
  let last = 0;
  const player = new Player(() => {
    if (state.hidden === "0" && performance.now() - last < PAUSE) return true;
    last = performance.now();
    const more = correct();
    if (!more) { player.stop(); draw(); }
    return more;
  });
  const use = (rows) => {
    pad.replace(rows.map(([x1, x2, label]) => ({ x: x1, y: x2, label })));
    changed();
  };
  const buttons = {
    learn: button("Learn", () => {
      if (player.playing) player.stop();
      else player.play();
      draw();
    }),
    step: button("One step", () => { player.stop(); correct(); }),
    again: button("From zero", () => begin()),
    impossible: button("Make it impossible", () => use(XOR)),
    back: button("Our points", () => use(X.map((row, i) => [...row, y[i]]))),
    clear: button("Clear", () => use([])),
  };
  const label = choice({
    label: "a click adds", options: { 1: "blue", "-1": "orange" }, value: state.label,
    input: (v) => { state.label = v; },
  });
  const hidden = choice({
    label: "learner", options: { 0: "one unit", 8: "eight hidden units" }, value: state.hidden,
    input: (v) => { state.hidden = v; changed(); },
  });
  const pad = new Points(plane, state.points, { changed, adding: () => Number(state.label) });
  el.classList.add("live");
  el.replaceChildren(
    plane.element, said.element,
    html("div", { class: "live-controls" }, buttons.learn, buttons.step, buttons.again),
    html("div", { class: "live-controls" }, hidden.element, label.element),
    html("div", { class: "live-controls" }, buttons.impossible, buttons.back, buttons.clear),
  );
  begin();
}
