// The address of a page keeps what a reader did with a figure, so that a link shows the same:
// #boundary={"angle":57.2}

const address = {
  own: "",
  timer: 0,

  // What the address says of a figure, or null.
  read(name) {
    const [, who, what] = location.hash.match(/^#([\w-]+)=(.*)$/) ?? [];
    if (who !== name) return null;
    try {
      return JSON.parse(decodeURIComponent(what));
    } catch {
      return null;
    }
  },

  // Written when the reader rests, so that a drag does not flood the browser's history.
  write(name, state) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.own = `#${name}=${encodeURIComponent(JSON.stringify(state))}`;
      history.replaceState(null, "", this.own);
    }, 300);
  },

  // Call back when the reader follows a link to a figure on the same page.
  follow(name, show) {
    addEventListener("hashchange", () => {
      if (location.hash !== this.own && this.read(name)) show();
    });
  },
};
