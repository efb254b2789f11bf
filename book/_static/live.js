// Live figures on a page: what a kernel is to a widget, an object is here.
//
// A figure starts when a reader comes near; the address keeps what was done with it.

class Model {
  #values;
  #listeners = new Map();

  constructor(values, remember) {
    this.#values = values;
    this.remember = remember;
  }

  get(name) {
    return this.#values[name];
  }

  set(name, value) {
    this.#values[name] = value;
    for (const listener of this.#listeners.get(`change:${name}`) ?? []) listener();
  }

  on(event, listener) {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  save_changes() {
    this.remember(this.#values.state);
  }
}

function start(figure) {
  const stored = JSON.parse(figure.querySelector("script").textContent);
  const { name, about, data } = stored;
  const show = () => {
    const remember = (state) => address.write(name, state);
    const model = new Model({ data, about, state: address.read(name) ?? {} }, remember);
    const el = document.createElement("div");
    window.liveFigures[stored.figure].render({ model, el });
    figure.querySelector(".live-here").replaceChildren(el);
    figure.dataset.ready = "";
  };
  show();
  address.follow(name, show);
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries)
      if (isIntersecting) {
        near.unobserve(target);
        start(target);
      }
  },
  { rootMargin: "100%" },
);

// After the scripts of the figures, which stand in the page.
addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll("[data-live]")) {
    near.observe(figure);
    if (address.read(figure.dataset.live)) figure.scrollIntoView();
  }
});
