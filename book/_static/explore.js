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
    this.controls = [...figure.querySelectorAll("input, select")];
    this.first = this.choice();
    const box = figure.querySelector(".explore-controls");
    for (const sign of ["pointerenter", "focusin"])
      box.addEventListener(sign, () => this.decode());
    box.addEventListener("input", () => {
      this.show();
      address.write(figure.dataset.name, this.said());
    });
    this.setUpScrub();
    this.button = figure.querySelector("button");
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
      if (at >= 0) control.value = at;
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
    const digit = (k, control) => k * Number(control.dataset.size) + Number(control.value);
    return this.controls.reduce(digit, 0);
  }

  text(control) {
    return this.texts(control)[control.value];
  }

  show() {
    const said = this.controls.map((control) => {
      const text = this.text(control);
      if (control.type === "range") {
        control.nextElementSibling.textContent = text;
        control.setAttribute("aria-valuetext", text);
      }
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
    await image.decode();
    this.bitmap = await createImageBitmap(image);
    this.figure.dataset.ready = "";
    Explore.farOutOfSight.observe(this.figure);
  }

  letGo() {
    this.bitmap?.close();
    this.bitmap = this.decoding = null;
    delete this.figure.dataset.ready;
    Explore.farOutOfSight.unobserve(this.figure);
  }

  // Drag the picture sideways to move the slider that was moved last, or the first one.
  setUpScrub() {
    const sliders = this.controls.filter((control) => control.type === "range");
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
      const value = String(Math.round(from.value + share * slider.max));
      const before = slider.value;
      slider.value = value;
      if (slider.value !== before) slider.dispatchEvent(new Event("input", { bubbles: true }));
    });
    for (const end of ["pointerup", "pointercancel"])
      this.window.addEventListener(end, () => { from = null; });
  }

  setUpPlay() {
    const slider = this.controls.find((control) => control.type === "range");
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      this.button.textContent = "Play";
    };
    const step = () => {
      slider.value = Number(slider.value) + 1;
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
