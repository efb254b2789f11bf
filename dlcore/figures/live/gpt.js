// A transformer that goes on with the reader's text: what it expects, where it looks, what it
// loses without one of its parts.

import { Bars, inWords, percent } from "./bars.js";
import { button, choice, Player, slider, status, toggle } from "./controls.js";
import { nucleus, probabilities, ranked, sample, tempered, topK } from "./decoding.js";
import { rng } from "./learn.js";
import { html, set, text } from "./plot.js";
import { gpt, inSight, meanLoss } from "./transformer.js";

const LONGEST = 400; // characters of a text
const PAUSE = 70; // milliseconds between two characters, so that each is seen

export function render({ model, el }) {
  const { net, heads, letters, start = "" } = model.get("data"), about = model.get("about");
  const writer = gpt(net, heads), signs = [...letters, "/"], end = letters.length;
  const names = signs.map((sign) => (sign === " " ? "␣" : sign));
  const words = signs.map((sign) => ({ " ": "space", "/": "end" })[sign] ?? sign);
  const first = () => ({
    text: start, typed: start, temperature: 1, k: signs.length, p: 1, order: "alphabet",
    mask: true, places: true, off: [], seed: 1,
  });
  const state = { ...first(), ...model.get("state") };
  const said = status(), cost = status(), bars = new Bars({ labels: names, words, height: 190 });
  let whole, found, scores, place = -1;

  const tokensOf = (written) => {
    const all = [end, ...[...written].map((sign) => signs.indexOf(sign))];
    return all.slice(-inSight(all.length, writer.context));
  };
  const compute = () => {
    const tokens = tokensOf(state.text), { mask, places, off } = state;
    const key = tokens.join();
    if (whole?.key !== key) whole = { key, ...writer.read(tokens) };
    const same = mask && places && !off.length;
    found = { tokens, ...(same ? whole : writer.read(tokens, { mask, places, off })) };
    scores = found.logs.data.slice(-writer.tokens);
    place = -1;
  };
  /** Scores after all rules: −∞ for what is cut. */
  const ruled = () =>
    nucleus(topK(tempered(Float64Array.from(scores), state.temperature), state.k), state.p);

  const drawBars = () => {
    const warm = tempered(Float64Array.from(scores), state.temperature), left = ruled();
    const p = probabilities(warm), count = left.filter(Number.isFinite).length;
    const largest = Math.max(...p), top = [0.25, 0.5, 1].find((v) => v >= largest - 1e-9) ?? 1;
    const order = state.order === "alphabet" ? [...p.keys()] : ranked(warm);
    bars.draw(p, { kept: (k) => left[k] > -Infinity, order, top });
    const share = p.reduce((sum, v, k) => (left[k] > -Infinity ? sum + v : sum), 0);
    const kept = count === p.length ? "All signs can be drawn"
      : `${count} sign${count === 1 ? "" : "s"} can be drawn, ${percent(share)} together`;
    said.say(html("strong", {}, `Next: ${inWords(words, p, 3)}.`), ` ${kept}.`, dropped);
    el.dataset.kept = [...left.keys()].filter((k) => left[k] > -Infinity).join(" ");
    el.dataset.p = [...p].join(" ");
  };
  const drawLoss = () => {
    const { tokens } = found, count = tokens.length - 1;
    const before = meanLoss(whole.logs, tokens), after = meanLoss(found.logs, tokens);
    const which = [...state.text].length > count ? `the last ${count} characters` : "your text";
    const changes = found.logs !== whole.logs, numbers = [before, after].map((v) => text(v, 3));
    const losses = changes ? numbers.join(" → ") : numbers[0];
    if (!count) cost.say("Type something, and its mean loss stands here.");
    else
      cost.say(html("strong", {}, `Mean loss on ${which}: ${losses} nats`),
        ` a character${changes ? ", with what you switched off" : ""}.`);
    Object.assign(el.dataset, { before, after });
  };

  // Where the heads look: a row of cells for each, below the characters.
  const row = html("div", { class: "live-letters" });
  const lines = Array.from({ length: writer.layers }, (_, l) =>
    Array.from({ length: heads }, (_, a) => {
      const name = `${l}.${a}`, said = `head ${a + 1} of layer ${l + 1}`;
      const on = toggle(`${l + 1}.${a + 1}`, !state.off.includes(name), (now) => {
        state.off = now ? state.off.filter((other) => other !== name) : [...state.off, name];
        changed();
      }, { "aria-label": said });
      const canvas = html("canvas", { height: 1, class: "live-weights", role: "img" });
      return { l, a, name, said, on, canvas };
    })).flat();
  const drawHeads = () => {
    const { tokens, weights } = found, T = tokens.length, from = place < 0 ? T - 1 : place;
    row.replaceChildren(...tokens.map((token, t) => html(
      "button", { type: "button", tabindex: t === from ? 0 : -1, "aria-pressed": String(t === from),
        "aria-label": words[token] !== names[token] && words[token], click: () => lookFrom(t),
        keydown: (event) => step(event, t) },
      names[token])));
    for (const { l, a, name, said, canvas, on } of lines) {
      const first = (a * T + from) * T, line = weights[l].data.subarray(first, first + T);
      canvas.width = T;
      const context = canvas.getContext("2d"), pixels = context.createImageData(T, 1);
      line.forEach((w, t) => pixels.data.set([0, 114, 178, Math.round(255 * Math.sqrt(w))], 4 * t));
      context.putImageData(pixels, 0, 0);
      const top = line.indexOf(Math.max(...line)), back = from - top;
      const where = back > 0 ? `, ${back} before` : back < 0 ? `, ${-back} behind` : ", itself";
      const off = state.off.includes(name);
      const most = `${percent(line[top])} on “${words[tokens[top]]}”${where}`;
      const label = `${said}: ${most}${off ? "; switched off" : ""}`;
      set(canvas, { style: `--places: ${T}; opacity: ${off ? 0.3 : 1}`, "aria-label": label });
      on.show(!off);
    }
    if (place < 0) rows.scrollLeft = rows.scrollWidth;
  };
  const lookFrom = (t) => {
    place = t;
    drawHeads();
    row.children[t].focus({ preventScroll: true });
  };
  const step = (event, t) => {
    const to = t + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0);
    if (to === t || !row.children[to]) return;
    event.preventDefault();
    lookFrom(to);
    row.children[to].scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  const draw = () => {
    drawBars();
    drawLoss();
    drawHeads();
  };
  const remember = () => {
    model.set("state", { ...state });
    model.save_changes();
  };
  const changed = () => {
    compute();
    draw();
    if (!player.playing) remember();
  };

  // The text: what the model has no sign for is dropped, and a word is said about it.
  let dropped = "";
  const field = html("textarea", {
    rows: 3, maxlength: LONGEST, "aria-label": "your text",
    spellcheck: "false", autocapitalize: "off", autocomplete: "off",
    input: () => {
      player.stop();
      const caret = field.selectionStart, typed = field.value;
      const [before, kept] = [typed.slice(0, caret), typed].map(clean);
      const strange = [...new Set([...typed.toLowerCase().replaceAll("-", " ")])]
        .filter((sign) => !signs.includes(sign));
      const list = strange.map((sign) => (sign === "\n" ? "a new line" : `“${sign}”`)).join(", ");
      const known = "The model knows a to z, the space, and / for the end of a verse.";
      dropped = strange.length ? ` Dropped: ${list}. ${known}` : "";
      if (kept !== typed) {
        field.value = kept;
        field.setSelectionRange(before.length, before.length);
      }
      Object.assign(state, { text: kept, typed: kept });
      changed();
      buttons.show();
    },
  });
  const clean = (typed) => [...typed.toLowerCase().replaceAll("-", " ")]
    .filter((sign) => signs.includes(sign)).join("");

  const write = () => {
    if (state.text.length >= LONGEST) return false;
    const number = rng(state.seed * 100_003 + state.text.length)();
    state.text += signs[sample(ruled(), number)];
    show();
    changed();
    return state.text.length < LONGEST;
  };
  let last = 0;
  const player = new Player(() => {
    if (performance.now() - last < PAUSE) return true;
    last = performance.now();
    const more = write();
    if (!more) stop();
    return more;
  });
  const stop = () => {
    player.stop();
    buttons.show();
    remember();
  };
  const show = () => {
    dropped = "";
    field.value = state.text;
    field.scrollTop = field.scrollHeight;
    buttons.show();
  };

  const buttons = {
    next: button("Next character", () => { stop(); write(); }),
    on: button("Write on", () => {
      if (player.playing) return stop();
      player.play();
      buttons.show();
    }),
    back: button("Take back", () => {
      stop();
      state.text = state.typed;
      show();
      changed();
    }),
    reset: button("Reset", () => {
      stop();
      Object.assign(state, first());
      settle();
      show();
      changed();
    }),
    show() {
      this.on.textContent = player.playing ? "Stop" : "Write on";
      this.back.disabled = state.text === state.typed;
      this.next.disabled = this.on.disabled = state.text.length >= LONGEST;
    },
  };
  const rule = (name, label, more) => slider({
    label, value: state[name], ...more,
    input: (v) => { state[name] = v; drawBars(); remember(); },
  });
  const sliders = {
    temperature: rule("temperature", "temperature", { min: 0.1, max: 4, log: true }),
    k: rule("k", "top-k", { min: 1, max: signs.length, step: 1, digits: 0 }),
    p: rule("p", "nucleus p", { min: 0.01, max: 1, step: 0.01 }),
  };
  const order = choice({
    label: "order", options: { alphabet: "a–z", size: "largest first" }, value: state.order,
    input: (v) => { state.order = v; drawBars(); remember(); },
  });
  const part = (name, label) => toggle(label, state[name], (now) => {
    state[name] = now;
    changed();
  });
  const parts = { mask: part("mask", "mask"), places: part("places", "positions") };
  const seed = html("input", { type: "number", min: 0, max: 9999, step: 1, "aria-label": "seed",
    input: () => {
      const v = seed.valueAsNumber;
      if (Number.isInteger(v) && v >= 0) { state.seed = v; remember(); }
    } });
  const settle = () => {
    for (const [name, { show: put }] of Object.entries({ ...sliders, ...parts })) put(state[name]);
    order.show(state.order);
    seed.value = state.seed;
  };

  const rows = html("div", { class: "live-rows" }, row,
    ...lines.map(({ canvas }) => canvas));
  el.classList.add("live");
  el.replaceChildren(
    html("div", { class: "live-text", role: "group", "aria-label": about }, field),
    html("div", { class: "live-controls" }, buttons.next, buttons.on, buttons.back, buttons.reset,
      html("label", { class: "live-seed" }, "seed ", seed)),
    bars.element, said.element,
    html("div", { class: "live-controls" },
      ...Object.values(sliders).map(({ element }) => element), order.element),
    html("p", { class: "live-caption" },
      "Where each head looks from the marked character, stronger for more. "
      + "Press a head (layer.head) to switch it off."),
    html("div", { class: "live-heads" },
      html("div", { class: "live-names" }, html("span"), ...lines.map(({ on }) => on.element)),
      rows),
    html("div", { class: "live-controls" },
      html("div", { class: "live-choice", role: "group", "aria-label": "parts that work" },
        html("span", {}, "parts that work"), parts.mask.element, parts.places.element)),
    cost.element,
  );
  settle();
  compute();
  show();
  draw();
  requestAnimationFrame(() => { rows.scrollLeft = rows.scrollWidth; });
}
