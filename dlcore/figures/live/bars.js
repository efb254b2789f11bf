// Bars of probabilities, one for each sign.

import { set, svg, text } from "./plot.js";

const TOP = 22, LEFT = 50, short = (v) => Number(v.toFixed(1)); // pages are weighed

/** A probability in per cent; nothing is rounded to certainty. */
export function percent(p) {
  if (p < 0.0005 || p > 0.9995) return p < 0.5 ? "< 0.1 %" : "> 99.9 %";
  return `${text(100 * p, p < 0.0995 || p > 0.985 ? 1 : 0)} %`;
}

/** Signs with their probabilities, the largest first, in words. */
export function inWords(labels, values, count) {
  const order = [...values.keys()].sort((a, b) => values[b] - values[a]);
  return order.slice(0, count).map((k) => `${labels[k]} ${percent(values[k])}`).join(", ");
}

/** Bars side by side, with the signs `labels` below them, in speech `words`. */
export class Bars {
  constructor({ labels, words = labels, width = 480, height = 170 }) {
    Object.assign(this, { words, height });
    this.step = (width - LEFT) / labels.length;
    this.bars = labels.map((label) => {
      const middle = short(this.step / 2);
      const bar = svg("rect", { width: short(0.76 * this.step), x: short(0.12 * this.step) });
      const share = svg("text", { x: middle, class: "live-share" });
      const sign = svg("text", { x: middle, y: height - 6 }, label);
      return { bar, share, group: svg("g", {}, bar, share, sign) };
    });
    this.rules = [1, 0.5, 0].map(() => ({
      line: svg("line", { x1: LEFT, x2: width }),
      word: svg("text", { x: LEFT - 5 }),
    }));
    const rules = this.rules.flatMap(({ line, word }) => [line, word]);
    this.element = svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, class: "live-plane live-bars", role: "img" },
      svg("g", { class: "live-axes" }, ...rules), ...this.bars.map(({ group }) => group),
    );
  }

  /**
   * Draw probabilities. `kept` tells which bars have their colour, `chosen` is marked, `order`
   * has the numbers of the bars from left to right, and `top` is the end of the axis.
   */
  draw(values, { kept = () => true, chosen = -1, order = [...values.keys()], top = 1 } = {}) {
    const bottom = this.height - 24, high = bottom - TOP;
    this.rules.forEach(({ line, word }, k) => {
      const y = bottom - high * (1 - k / 2);
      set(line, { y1: y, y2: y });
      set(word, { y: y + 4 });
      word.textContent = `${text(100 * top * (1 - k / 2), top < 0.1 ? 1 : 0)} %`;
    });
    order.forEach((k, place) => {
      const { bar, share, group } = this.bars[k], p = values[k];
      const tall = high * Math.min(1, p / top), y = bottom - tall;
      const look = `${kept(k) ? "plus" : "live-faded"}${k === chosen ? " live-chosen" : ""}`;
      set(group, { transform: `translate(${short(LEFT + place * this.step)} 0)`, class: look });
      set(bar, { y: short(y), height: short(tall) });
      set(share, { y: short(y - 5) });
      // Short, and without 100: that would be certainty.
      const worth = p >= 0.04 * top && p >= 0.01;
      share.textContent = worth ? `${Math.min(99, Math.round(100 * p))}` : "";
    });
    set(this.element, { "aria-label": `probabilities: ${inWords(this.words, values, 5)}` });
  }
}
