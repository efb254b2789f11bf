// Predict, then see: a question keeps its answer until the reader has committed to a guess.
//
// Guesses stay in the browser, each under the label of its question: the guess that is shown,
// and the first one, which counts. Where a browser keeps nothing, the page does until it is
// left.

const kept = new Map();

function recall(label) {
  try {
    const record = JSON.parse(localStorage.getItem(`predict:${label}`));
    if (typeof record?.first === "string") kept.set(label, record);
  } catch {} // what cannot be read was never kept
  return kept.get(label);
}

function keep(label, record) {
  if (record) kept.set(label, record);
  else kept.delete(label);
  try {
    if (record) localStorage.setItem(`predict:${label}`, JSON.stringify(record));
    else localStorage.removeItem(`predict:${label}`);
  } catch {} // a browser may refuse
}

// The number that a text says: 0.5, 1,000, 0,5, −3, 2e-3 or 12 %.
function numberOf(text) {
  let plain = text.trim().replace("−", "-").replace(/[^\d.)]+$/, "").replace(/\s/g, "");
  if (/^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain)) plain = plain.replaceAll(",", "");
  else plain = plain.replace(",", ".");
  return plain === "" ? NaN : Number(plain);
}

// How far a guess is from the answer, in words: "20 % too small".
function distance(guess, answer) {
  if (guess === answer) return "exact";
  const way = guess > answer ? "too large" : "too small";
  const ratio = guess / answer;
  const rounded = (x) => Number(x.toPrecision(2)).toString();
  if (answer === 0 || ratio <= 0) return `${way} by ${rounded(Math.abs(guess - answer))}`;
  if (ratio >= 2 || ratio <= 1 / 2) {
    const shrunk = Math.abs(guess) < Math.abs(answer);
    return `${way} by a factor of ${rounded(shrunk ? 1 / ratio : ratio)}`;
  }
  return `${rounded(100 * Math.abs(ratio - 1))} % ${way}`;
}

class Prediction {
  constructor(field) {
    this.field = field;
    this.label = field.id;
    this.inputs = [...field.querySelectorAll("input")];
    this.isNumber = field.dataset.number !== undefined;
    this.commitButton = field.querySelector("button");
    this.setUpAnswer();
    this.commitButton.addEventListener("click", () => this.commit());
    this.againButton.addEventListener("click", () => this.again());
    for (const input of this.inputs)
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault(); // or the same key presses the button that gets the focus
        this.commit();
      });
    // A key that is held down commits, and does not take it back.
    this.againButton.addEventListener("keydown", (event) => {
      if (event.repeat) event.preventDefault();
    });
    recall(this.label);
    this.show();
  }

  // Without a script the answer is folded. Unfold it, and hide it here instead.
  setUpAnswer() {
    const details = this.field.querySelector("details");
    this.said = details.querySelector(".predict-said");
    this.words = [...this.said.querySelectorAll(".predict-word")];
    this.how = this.said.querySelector(".predict-how");
    this.verdict = document.createElement("p");
    this.verdict.className = "predict-verdict";
    this.said.prepend(this.verdict);
    this.how.before(this.words.find((word) => word.dataset.kind === "right")); // guess first
    this.said.setAttribute("aria-live", "polite");
    this.againButton = document.createElement("button");
    this.againButton.type = "button";
    this.againButton.textContent = "Try again";
    for (const part of [...this.words, this.how]) part.hidden = true;
    details.replaceWith(this.said, this.againButton);
    this.how.querySelector("a").addEventListener("click", (event) => {
      const id = event.currentTarget.getAttribute("href").slice(1);
      const folds = document.getElementById(id)?.querySelectorAll("details") ?? [];
      for (const fold of folds) fold.open = true;
    });
  }

  // The guess that stands; none if the page has changed and no longer offers it.
  get guess() {
    const guess = kept.get(this.label)?.guess ?? null;
    return guess !== null && this.accepts(guess) ? guess : null;
  }

  accepts(guess) {
    if (this.isNumber) return Number.isFinite(numberOf(guess));
    return this.inputs.some((input) => input.value === guess);
  }

  isRight(guess) {
    const { right, number, within } = this.field.dataset;
    if (!this.isNumber) return guess === right;
    const off = Math.abs(numberOf(guess) - Number(number));
    return off <= Number(within) * Math.abs(Number(number)) * (1 + 1e-9);
  }

  get isRightAtFirst() {
    return this.isRight(kept.get(this.label).first);
  }

  commit() {
    const entry = this.isNumber ? this.inputs[0] : this.inputs.find((i) => i.checked);
    const guess = entry?.value ?? "";
    if (!this.accepts(guess)) {
      this.verdict.textContent = this.isNumber ? "Type a number first." : "Choose one first.";
      return;
    }
    keep(this.label, { guess, first: kept.get(this.label)?.first ?? guess });
    this.show();
    this.againButton.focus();
    count();
  }

  again() {
    keep(this.label, { ...kept.get(this.label), guess: null });
    this.show();
    this.inputs[0].focus();
    count();
  }

  forget() {
    keep(this.label, null);
    this.show();
  }

  show() {
    const { guess } = this, isOpen = guess === null;
    for (const input of this.inputs) {
      input.disabled = !isOpen;
      if (this.isNumber) input.value = guess ?? "";
      else this.mark(input, guess);
    }
    this.commitButton.hidden = !isOpen;
    this.againButton.hidden = isOpen;
    this.how.hidden = isOpen;
    this.verdict.textContent = !isOpen && this.isNumber ? this.measure(guess) : "";
    for (const word of this.words) {
      const { kind, of } = word.dataset, which = word.querySelector(".predict-which");
      word.hidden = isOpen || (kind === "wrong" && of !== guess);
      if (kind === "wrong") which.textContent = "✗ Your guess, ";
      else which.textContent = of === guess ? "✓ Right, " : "✓ The answer, ";
    }
  }

  // Mark a choice by a sign and in words.
  mark(input, guess) {
    const entry = input.closest("label"), { right } = this.field.dataset;
    const isGuess = input.value === guess, isRight = input.value === right;
    input.checked = isGuess;
    const state = guess === null ? "" : isRight ? "right" : isGuess ? "wrong" : "";
    entry.dataset.state = state;
    const said = { right: isGuess ? "✓ your guess" : "✓ the answer", wrong: "✗ your guess" };
    entry.querySelector(".predict-mark").textContent = said[state] ?? "";
  }

  measure(guess) {
    const far = distance(numberOf(guess), Number(this.field.dataset.number));
    const sign = this.isRight(guess) ? "✓ Right" : "✗ Not close enough";
    return `${sign}: your guess, ${guess.trim()}, is ${far}.`;
  }
}

const predictions = [...document.querySelectorAll("fieldset.predict")].map(
  (field) => new Prediction(field),
);

function count() {
  const answered = predictions.filter((p) => p.guess !== null);
  const atFirst = answered.filter((p) => p.isRightAtFirst).length;
  const said = `You have answered ${answered.length} of ${predictions.length}`;
  for (const place of document.querySelectorAll(".predictions")) {
    place.hidden = false;
    place.querySelector("p").textContent =
      `${said}${answered.length ? `, ${atFirst} right at the first guess` : ""}.`;
  }
}

for (const button of document.querySelectorAll(".predictions button"))
  button.addEventListener("click", () => {
    for (const prediction of predictions) prediction.forget();
    count();
  });
count();
