// Drawings in the book's palette: SVG, so that both themes and every size are sharp.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of HTML: tag, attributes (on… are listeners), children. */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  set(element, attributes);
  element.append(...children);
  return element;
}

/** Set attributes; a listener for each that is a function. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === null || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

/** Call `move` with the pointer's events while an element is dragged. */
export function dragging(element, move) {
  const stop = () => element.removeEventListener("pointermove", move);
  set(element, {
    pointerdown: (event) => {
      event.preventDefault();
      element.focus({ preventScroll: true });
      element.setPointerCapture(event.pointerId);
      element.addEventListener("pointermove", move);
    },
    pointerup: stop,
    pointercancel: stop,
  });
}

/** Write a number as the book does: few digits, a true minus. */
export function text(value, digits = 2) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return value.toFixed(digits).replace(/^-(0(\.0*)?)$/, "$1").replace("-", "−");
}

/** Choose round numbers for the ticks of an axis. */
export function ticks([low, high], count = 5) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const first = Math.ceil(low / step - 1e-9), found = [];
  for (let k = first; k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/**
 * A coordinate system: axes with ticks, and layers to draw in.
 *
 * `x` and `y` are the intervals that it shows. Lines and areas are cut at its border.
 */
export class Plane {
  constructor({ x, y, width = 480, height = 440, labels = ["", ""], about = "" }) {
    Object.assign(this, { x, y, width, height });
    this.box = { left: 44, right: width - 10, top: 8, bottom: height - 40 };
    const { left, right, top, bottom } = this.box;
    // Each figure of a page has its own copy of this class, so a count would not do.
    this.cut = `cut-${Math.random().toString(36).slice(2)}`;
    const frame = { x: left, y: top, width: right - left, height: bottom - top };
    const within = () => svg("g", { "clip-path": `url(#${this.cut})` });
    [this.below, this.layer] = [within(), within()];
    this.ground = svg("rect", { ...frame, class: "live-ground" });
    this.above = svg("g");
    this.axes = svg("g", { class: "live-axes", "aria-hidden": "true" });
    this.element = svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, class: "live-plane", role: "group",
        "aria-label": about, style: `max-width: ${width}px` },
      svg("defs", {}, svg("clipPath", { id: this.cut }, svg("rect", frame))),
      this.ground, this.below, this.axes, this.layer, this.above,
    );
    this.drawAxes(labels);
  }

  drawAxes([across, up]) {
    const { left, right, top, bottom } = this.box, digits = (v) => String(+v.toPrecision(6));
    const word = (x, y, said, anchor, more = {}) =>
      svg("text", { x, y, "text-anchor": anchor, ...more }, said.replace("-", "−"));
    const line = (x1, y1, x2, y2) => svg("line", { x1, y1, x2, y2 });
    this.axes.replaceChildren(line(left, bottom, right, bottom), line(left, top, left, bottom));
    for (const v of ticks(this.x)) {
      const [p] = this.toPixel(v, 0);
      this.axes.append(line(p, bottom, p, bottom + 5), word(p, bottom + 19, digits(v), "middle"));
    }
    for (const v of ticks(this.y)) {
      const [, p] = this.toPixel(0, v);
      this.axes.append(line(left - 5, p, left, p), word(left - 8, p + 4, digits(v), "end"));
    }
    const turned = { transform: `rotate(-90 12 ${(top + bottom) / 2})` };
    this.axes.append(
      word((left + right) / 2, bottom + 36, across, "middle"),
      word(12, (top + bottom) / 2, up, "middle", turned),
    );
  }

  /** From the numbers of the axes to the picture. */
  toPixel(x, y) {
    const { left, right, top, bottom } = this.box, [x0, x1] = this.x, [y0, y1] = this.y;
    return [
      left + ((x - x0) / (x1 - x0)) * (right - left),
      bottom - ((y - y0) / (y1 - y0)) * (bottom - top),
    ];
  }

  /** From a pointer's event to the numbers of the axes, kept inside. */
  toData(event) {
    const at = new DOMPoint(event.clientX, event.clientY);
    const { x, y } = at.matrixTransform(this.element.getScreenCTM().inverse());
    const { left, right, top, bottom } = this.box, [x0, x1] = this.x, [y0, y1] = this.y;
    const share = (v, from, to) => Math.min(1, Math.max(0, (v - from) / (to - from)));
    return [
      x0 + share(x, left, right) * (x1 - x0),
      y0 + share(y, bottom, top) * (y1 - y0),
    ];
  }

  /** Tell whether a pointer's event is inside, or close to the border. */
  holds({ clientX, clientY }) {
    const { left, right, top, bottom } = this.ground.getBoundingClientRect(), near = 12;
    return clientX > left - near && clientX < right + near &&
      clientY > top - near && clientY < bottom + near;
  }

  /** An SVG path through points given in the numbers of the axes. */
  path(points, close = false) {
    const corners = points.map(([x, y]) => this.toPixel(x, y).map((v) => v.toFixed(2)).join());
    return corners.length ? `M${corners.join("L")}${close ? "Z" : ""}` : "M0,0";
  }

  /** An SVG path for an arrow from one point to another. */
  arrow(from, to) {
    const [x0, y0] = this.toPixel(...from), [x1, y1] = this.toPixel(...to);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    const barb = (turn) =>
      [x1 - 9 * Math.cos(angle + turn), y1 - 9 * Math.sin(angle + turn)].map((v) => v.toFixed(2));
    return `${this.path([from, to])}M${barb(0.45)}L${x1.toFixed(2)},${y1.toFixed(2)}L${barb(-0.45)}`;
  }

  /** The part that is shown of the half-plane w·x + b > 0, as a polygon. */
  halfPlane([w1, w2], b) {
    const [x0, x1] = this.x, [y0, y1] = this.y, found = [];
    const corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
    const height = ([x, y]) => w1 * x + w2 * y + b;
    corners.forEach((p, k) => {
      const q = corners[(k + 1) % 4], h = height(p), g = height(q);
      if (h > 0) found.push(p);
      if (h > 0 !== g > 0 && h !== g) {
        const t = h / (h - g);
        found.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
      }
    });
    return found;
  }

  /** The part that is shown of the line w·x + b = 0, as its two ends, or nothing. */
  lineEnds([w1, w2], b) {
    const length = Math.hypot(w1, w2);
    if (!(length > 0)) return [];
    const reach = 4 * Math.max(...this.x.map(Math.abs), ...this.y.map(Math.abs), 1);
    const foot = [(-b * w1) / length ** 2, (-b * w2) / length ** 2];
    const along = [(-w2 / length) * reach, (w1 / length) * reach];
    return [1, -1].map((s) => [foot[0] + s * along[0], foot[1] + s * along[1]]);
  }
}

/** A picture of numbers from −1 (orange) through 0 (paper) to 1 (blue), rows from below. */
export class HeatMap {
  constructor(plane, cells = 48) {
    Object.assign(this, { plane, cells });
    const { left, right, top, bottom } = plane.box;
    this.canvas = html("canvas", { width: cells, height: cells });
    this.image = svg("image", {
      x: left, y: top, width: right - left, height: bottom - top,
      preserveAspectRatio: "none", class: "live-heat", "aria-hidden": "true",
    });
    plane.below.append(this.image);
  }

  /** Draw value(x, y) at the middle of each cell. */
  draw(value) {
    const { cells, plane: { x: [x0, x1], y: [y0, y1] } } = this;
    const context = this.canvas.getContext("2d"), pixels = context.createImageData(cells, cells);
    for (let row = 0, at = 0; row < cells; row++)
      for (let column = 0; column < cells; column++, at += 4) {
        const x = x0 + ((column + 0.5) / cells) * (x1 - x0);
        const v = value(x, y1 - ((row + 0.5) / cells) * (y1 - y0));
        pixels.data.set(v > 0 ? [0, 114, 178] : [213, 94, 0], at);
        pixels.data[at + 3] = Math.round(110 * Math.min(1, Math.abs(v)));
      }
    context.putImageData(pixels, 0, 0);
    set(this.image, { href: this.canvas.toDataURL() });
  }

  clear() {
    this.image.removeAttribute("href");
  }
}
