// A digit to draw, read by a convolutional network at every stroke.

import { Bars, inWords, percent } from "./bars.js";
import { classifier } from "./classifier.js";
import { button, choice, status } from "./controls.js";
import { centred, Pad, Picture, reduced, SIDE } from "./pad.js";
import { html } from "./plot.js";
import { argmax, decode, softmax, tensor } from "./tensors.js";

const DIGITS = [..."0123456789"];

export function render({ model, el }) {
  const { net, samples, labels } = model.get("data"), about = model.get("about");
  const read = classifier(net), images = decode(samples).data;
  const state = { strokes: [], sample: -1, centring: "on", ...model.get("state") };
  const said = status(), bars = new Bars({ labels: DIGITS, width: 340, height: 190 });
  const seen = new Picture(SIDE, { about: "the picture that the network sees, 28 × 28" });
  const blank = read(tensor([1, SIDE, SIDE], new Float32Array(SIDE * SIDE))).maps[0];
  const [channels, side] = blank.shape;
  const maps = Array.from({ length: channels }, () => new Picture(side));

  const pixels = (k) =>
    images.slice(k * SIDE * SIDE, (k + 1) * SIDE * SIDE).map((byte) => byte / 255);
  const answer = () => {
    const picture = (state.centring === "on" ? centred : reduced)(pad.ink)
      ?? new Float64Array(SIDE * SIDE);
    const { logits, maps: found } = read(tensor([1, SIDE, SIDE], Float32Array.from(picture)));
    const p = pad.empty ? new Float64Array(10) : softmax(logits).data, [best] = argmax(logits);
    bars.draw(p, { chosen: pad.empty ? -1 : best, kept: (k) => k === best });
    seen.draw(picture);
    const [front] = found, top = Math.max(...front.data, 1e-9), size = side * side;
    maps.forEach((map, c) => {
      const channel = front.data.subarray(c * size, (c + 1) * size);
      map.draw(pad.empty ? new Float64Array(size) : channel.map((v) => v / top));
    });
    if (pad.empty) said.say("Draw a digit, large, or take one of the test images.");
    else {
      const others = inWords(DIGITS, p.map((v, k) => (k === best ? -1 : v)), 2);
      const what = state.sample < 0 || !pad.ground ? "" : ` The label is ${labels[state.sample]}.`;
      const reads = html("strong", {}, `It reads ${best}, ${percent(p[best])}`);
      said.say(reads, `; then ${others}.${what}`);
    }
    Object.assign(el.dataset, { answer: pad.empty ? "" : best, p: [...p].join(" ") });
  };

  let frame = 0;
  const changed = () => {
    if (!pad.ground) state.sample = -1;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(answer);
    model.set("state", { ...state, strokes: pad.strokes });
    model.save_changes();
  };
  const take = (digit) => {
    const all = labels.flatMap((label, k) => (label === digit ? [k] : []));
    state.sample = all[(all.indexOf(state.sample) + 1) % all.length];
    pad.replace([], pixels(state.sample));
    changed();
  };

  const pad = new Pad({
    about: "pad to draw a digit: drag; or move with the arrow keys, ink with space, "
      + "draw with shift and the arrow keys",
    changed,
    moved: (row, column) => said.say(`Row ${row}, column ${column} of ${SIDE}.`),
  });
  const controls = {
    undo: button("Undo", () => pad.undo()),
    clear: button("Clear", () => { pad.replace([]); changed(); }),
    centring: choice({
      label: "centre it", options: { on: "as MNIST does", off: "not at all" },
      value: state.centring, input: (v) => { state.centring = v; changed(); },
    }),
  };
  const known = [...new Set(labels)].sort((a, b) => a - b);
  const shelf = known.map((digit) =>
    button(`${digit}`, () => take(digit), { "aria-label": `a test image of ${digit}` }));
  const titled = (title, ...parts) =>
    html("div", { class: "live-titled" }, html("span", {}, title), ...parts);
  el.classList.add("live");
  el.replaceChildren(
    html("div", { class: "live-pair", role: "group", "aria-label": about },
      html("div", {}, pad.element,
        html("div", { class: "live-controls" }, controls.undo, controls.clear)),
      html("div", {}, bars.element, html("div", { class: "live-inside" },
        titled("what it sees", seen.element),
        titled(`${channels} maps of the first layer`,
          html("div", { class: "live-maps", role: "img", "aria-label":
            `the ${channels} feature maps of the first convolution` },
            ...maps.map((map) => map.element)))))),
    said.element,
    html("div", { class: "live-controls" },
      html("div", { class: "live-choice live-shelf", role: "group", "aria-label": "a test image" },
        html("span", {}, "a test image"), ...shelf)),
    html("div", { class: "live-controls" }, controls.centring.element),
  );
  pad.replace(state.strokes, state.sample < 0 ? null : pixels(state.sample));
  answer();
}
