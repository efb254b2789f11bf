// Figures to move: one picture holds all frames, and a canvas shows one of them.
//
// A page starts with stills. The sheet of a figure is decoded when a reader first reaches
// for its controls, and let go when the figure is far out of sight: decoded, it takes up
// to 80 MB.

class Explore {
  constructor(figure) {
    this.figure = figure;
    Object.assign(this, JSON.parse(figure.querySelector("script").textContent));
    this.window = figure.querySelector(".explore-window");
    this.button = figure.querySelector("button");
    this.setUpSwitches();
    this.controls = [...figure.querySelectorAll("input, select")];
    this.shown = new Map(this.controls.map((control) => [control, this.at(control)]));
    for (const slider of this.sliders) this.setUpTrack(slider);
    this.first = this.choice();
    const box = figure.querySelector(".explore-controls");
    for (const sign of ["pointerenter", "focusin"])
      box.addEventListener(sign, () => this.decode());
    box.addEventListener("input", () => {
      this.show();
      address.write(figure.dataset.name, this.said());
    });
    this.setUpScrub();
    if (this.button) this.setUpPlay();
    // A browser that restores the form on reload keeps picture and controls together.
    addEventListener("pageshow", () => this.choice() !== this.first && this.show());
    if (address.read(figure.dataset.name)) {
      this.recall();
      figure.scrollIntoView();
    }
    address.follow(figure.dataset.name, () => this.recall());
  }

  // What the controls say, by their labels.
  said() {
    return Object.fromEntries(this.controls.map((c) => [this.label(c), this.text(c)]));
  }

  // Set the controls to what the address says; what it does not know stays.
  recall() {
    for (const [label, text] of Object.entries(address.read(this.figure.dataset.name))) {
      const control = this.controls.find((c) => this.label(c) === label);
      const at = control ? this.texts(control).indexOf(text) : -1;
      if (at >= 0) this.put(control, at);
    }
    this.show();
  }

  label(control) {
    return control.labels[0].firstChild.textContent;
  }

  texts(control) {
    return control.options
      ? [...control.options].map((option) => option.text)
      : JSON.parse(control.dataset.texts);
  }

  // The number of the frame that the controls ask for; the last control moves fastest.
  choice() {
    const digit = (k, control) => k * Number(control.dataset.size) + this.at(control);
    return this.controls.reduce(digit, 0);
  }

  text(control) {
    return this.texts(control)[this.at(control)];
  }

  get sliders() {
    const isSwitch = (control) => control.closest(".explore-switch");
    return this.controls.filter((c) => c.type === "range" && !isSwitch(c));
  }

  // Where the values of a control lie on it.
  stops(control) {
    return control.options
      ? [...control.options].map((_, at) => at)
      : JSON.parse(control.dataset.stops);
  }

  // Which of its values a control is at: the nearest.
  at(control, value = control.value) {
    const distances = this.stops(control).map((stop) => Math.abs(stop - value));
    return distances.indexOf(Math.min(...distances));
  }

  put(control, at) {
    control.value = this.stops(control)[at];
  }

  // As a reader does who moves it.
  move(control, at) {
    if (at === this.at(control)) return;
    this.put(control, at);
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }

  show() {
    const said = this.controls.map((control) => {
      const text = this.text(control);
      if (control.type === "range") {
        control.nextElementSibling.textContent = text;
        control.setAttribute("aria-valuetext", text);
        control.parentElement.dataset.at = this.at(control);
      }
      this.shown.set(control, this.at(control));
      return `${this.label(control)} = ${text}`;
    });
    this.alt = `${this.about} (${said.join(", ")})`;
    return this.decode().then(() => this.paint());
  }

  paint() {
    if (!this.bitmap) return;
    if (!this.canvas) this.replaceStill();
    const [width, height] = this.frame, [x, y] = this.places[this.choice()];
    const frame = [0, 0, width, height];
    this.canvas.getContext("2d").drawImage(this.bitmap, x, y, width, height, ...frame);
    this.canvas.setAttribute("aria-label", this.alt);
    this.figure.dataset.place = `${x}:${y}`;
  }

  replaceStill() {
    const still = this.window.querySelector("img");
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = this.frame;
    canvas.style.width = `${still.getAttribute("width")}px`; // CSS keeps it on a phone
    canvas.setAttribute("role", "img");
    still.replaceWith(canvas);
    this.canvas = canvas;
  }

  decode() {
    this.decoding ??= this.load();
    return this.decoding;
  }

  async load() {
    const image = new Image();
    image.src = this.sheet;
    try {
      await image.decode();
      this.bitmap = await createImageBitmap(image);
    } catch {
      this.decoding = null; // the next move tries again
      return this.say("The pictures of this figure cannot be loaded, so it stays as it is.");
    }
    this.say("");
    this.figure.dataset.ready = "";
    Explore.farOutOfSight.observe(this.figure);
  }

  say(text) {
    if (!this.note && !text) return;
    this.note ??= this.window.appendChild(document.createElement("p"));
    this.note.setAttribute("role", "alert");
    this.note.textContent = text;
  }

  letGo() {
    this.bitmap?.close();
    this.bitmap = this.decoding = null;
    delete this.figure.dataset.ready;
    Explore.farOutOfSight.unobserve(this.figure);
  }

  // A control of two values becomes a switch: both are seen, and an invisible slider over
  // them has the focus, the label and the keys. What plays stays a slider.
  setUpSwitches() {
    for (const control of this.figure.querySelectorAll("[data-size='2']")) {
      if (control.type === "range" && this.button) continue;
      const [slider, output, box] = ["input", "output", "span"].map((tag) =>
        document.createElement(tag));
      const texts = this.texts(control), at = control.value;
      Object.assign(slider, { type: "range", max: 1, value: at, autocomplete: "off" });
      Object.assign(slider.dataset, { size: 2, stops: "[0,1]", texts: JSON.stringify(texts) });
      slider.setAttribute("aria-valuetext", texts[at]);
      output.hidden = true;
      output.textContent = texts[at];
      box.className = "explore-switch";
      box.dataset.at = at;
      box.append(slider, output, ...texts.map((text) => {
        const face = document.createElement("span");
        face.setAttribute("aria-hidden", "true");
        face.textContent = text;
        return face;
      }));
      if (control.type === "range") control.nextElementSibling.remove();
      control.replaceWith(box);
      // Not every browser moves a slider to where its track is tapped.
      slider.addEventListener("pointerup", ({ offsetX }) =>
        this.move(slider, Number(offsetX > slider.clientWidth / 2)));
      slider.addEventListener("keydown", (event) => {
        if (event.key !== " " && event.key !== "Enter") return;
        event.preventDefault();
        this.move(slider, 1 - this.at(slider));
      });
    }
  }

  // A track is spaced as its numbers are, and a slider goes from stop to stop: a hand drags
  // it to the nearest one; a key, or a screen reader, moves it on by at least one.
  setUpTrack(slider) {
    let held = false;
    slider.addEventListener("pointerdown", () => { held = true; });
    for (const end of ["pointerup", "pointercancel"])
      addEventListener(end, () => { held = false; });
    slider.addEventListener("input", () => {
      const before = this.shown.get(slider), at = this.at(slider);
      const way = Math.sign(slider.value - this.stops(slider)[before]);
      this.put(slider, held || at !== before ? at : at + way);
    });
  }

  // Drag the picture sideways to move the slider that was moved last, or the first one.
  setUpScrub() {
    const sliders = this.sliders;
    if (!sliders.length) return;
    let slider = sliders[0], from = null;
    for (const s of sliders) s.addEventListener("input", () => { slider = s; });
    this.window.classList.add("explore-scrub");
    this.window.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // a browser would drag the still
      this.decode();
      this.window.setPointerCapture(event.pointerId);
      from = { x: event.clientX, value: Number(slider.value) };
    });
    this.window.addEventListener("pointermove", (event) => {
      if (!from) return;
      const share = (event.clientX - from.x) / (0.8 * this.window.clientWidth);
      this.move(slider, this.at(slider, from.value + share * slider.max));
    });
    for (const end of ["pointerup", "pointercancel"])
      this.window.addEventListener(end, () => { from = null; });
  }

  setUpPlay() {
    const [slider] = this.sliders;
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      this.button.textContent = "Play";
    };
    const step = () => {
      this.put(slider, this.at(slider) + 1);
      this.show();
      if (slider.value === slider.max) stop();
    };
    this.button.addEventListener("click", () => {
      if (timer) return stop();
      if (slider.value === slider.max) slider.value = 0;
      this.show();
      this.button.textContent = "Pause";
      timer = setInterval(step, Number(this.button.dataset.ms));
    });
    slider.addEventListener("pointerdown", stop);
    slider.addEventListener("keydown", stop);
  }

  static all = new Map();

  static farOutOfSight = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        if (!isIntersecting) Explore.all.get(target).letGo();
    },
    { rootMargin: "100%" },
  );
}

document.querySelectorAll(".explore").forEach((figure) => {
  Explore.all.set(figure, new Explore(figure));
});
