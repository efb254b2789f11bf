// A dense network that learns: costs, their gradients by reverse mode, and optimizers.
//
// All numbers are doubles. Parameters and gradients are lists of tensors, W and b of each layer
// in turn; an optimizer looks at their `data` only.

import { decode, demand, dense, logSoftmax, relu, sigmoid, tanh, tensor } from "./tensors.js";

// A function of a layer's sums, and its derivative in terms of its value.
const ACTIVATIONS = {
  tanh: { phi: tanh, slope: (y) => 1 - y * y },
  relu: { phi: relu, slope: (y) => (y > 0 ? 1 : 0) },
  sigmoid: { phi: sigmoid, slope: (y) => y * (1 - y) },
  identity: { phi: (x) => x, slope: () => 1 },
};

// The sum of the losses of N rows of outputs, o (N, m), and its gradient by o. As in `dlcore`,
// the squared loss has the factor 1/2: ½ (o − y)², added over the outputs.
const LOSSES = {
  logistic: (o, y) => {
    const targets = Float64Array.from(y), fits = targets.every((t) => t === 1 || t === -1);
    demand(o.shape[1] === 1, "logistic: the network", "have one output", o.shape[1]);
    demand(fits, "logistic: y", "be labels 1 and -1", y);
    const margins = o.data.map((z, s) => targets[s] * z);
    const losses = margins.map((m) => Math.max(-m, 0) + Math.log1p(Math.exp(-Math.abs(m))));
    const gradient = margins.map((m, s) => -targets[s] / (1 + Math.exp(m)));
    return { value: total(losses), gradient };
  },
  squares: (o, y) => {
    const targets = decode(y).data, count = o.data.length;
    demand(targets.length === count, "squares: y", `have ${count} numbers`, targets.length);
    const gradient = o.data.map((v, k) => v - targets[k]);
    return { value: total(gradient.map((r) => (r * r) / 2)), gradient };
  },
  "cross-entropy": (o, y) => {
    const classes = o.shape[1], logs = logSoftmax(o).data, gradient = logs.map(Math.exp);
    let value = 0;
    y.forEach((label, s) => {
      const known = Number.isInteger(label) && label >= 0 && label < classes;
      demand(known, "cross-entropy: y", `be whole numbers from 0 to ${classes - 1}`, label);
      value -= logs[s * classes + label];
      gradient[s * classes + label] -= 1;
    });
    return { value, gradient };
  },
};

/**
 * A dense network with `widths[0]` inputs, whose last layer is linear.
 *
 * `weights` are pairs [W, b] with W (m, n), stored as `decode` reads it, and are copied; without
 * them they are drawn as `dlcore` does, W from N(0, 2 / n) by `random`, and b = 0.
 */
export function network(widths, { activation = "tanh", weights, random = Math.random } = {}) {
  const { phi, slope } = oneOf("network: activation", ACTIVATIONS, activation);
  const layers = widths.slice(1).map((m, l) => {
    const n = widths[l];
    const draw = () => Math.sqrt(2 / n) * normal(random);
    const [W, b] = weights ? weights[l].map((w) => Float64Array.from(decode(w).data))
      : [Float64Array.from({ length: m * n }, draw), new Float64Array(m)];
    return { W: tensor([m, n], W), b: tensor([m], b) };
  });

  /** Outputs (N, m) of all layers for X (N, n), which comes first. */
  const activations = (X) => {
    const outputs = [rows(X, widths[0])];
    layers.forEach(({ W, b }, l) => {
      const sums = dense(outputs[l], W, b);
      outputs.push(l + 1 < layers.length ? phi(sums) : sums);
    });
    return outputs;
  };

  /** Outputs for a point, a list of numbers; for a list of points, or a tensor, (N, m). */
  const forward = (X) => {
    const point = typeof X[0] === "number", outputs = activations(point ? [X] : X).at(-1);
    return point ? outputs.data : outputs;
  };

  const lossOf = (o, y, loss) => {
    const rule = oneOf("network: loss", LOSSES, loss), N = o.shape[0];
    const count = y.length ?? y.shape[0];
    demand(count === N, "network: y", `have one target for each of ${N} points`, count);
    const { value, gradient } = rule(o, y);
    return { cost: value / N, delta: tensor(o.shape, gradient.map((g) => g / N)) };
  };

  /** The mean loss of points X (N, n) with targets y. */
  const cost = (X, y, loss) => lossOf(activations(X).at(-1), y, loss).cost;

  /** The mean loss, and its gradients by all parameters: `{ cost, gradients }`. */
  const gradient = (X, y, loss) => {
    const outputs = activations(X), gradients = [];
    let { cost, delta } = lossOf(outputs.at(-1), y, loss);
    for (let l = layers.length - 1; l >= 0; l--) {
      if (l + 1 < layers.length) delta = through(delta, outputs[l + 1], slope);
      const back = denseBackward(outputs[l], layers[l].W, delta);
      gradients.unshift(back.W, back.b);
      delta = back.x;
    }
    return { cost, gradients };
  };

  const parameters = layers.flatMap(({ W, b }) => [W, b]);
  return { widths, parameters, activations, forward, cost, gradient };
}

/** Gradient descent with momentum: m ← β m + g, θ ← θ − η m. `GD` and `Momentum` of `dlcore`. */
export function sgd({ lr, momentum = 0 }) {
  return optimizer(lr, (eta, p, g, { m }) => {
    for (let k = 0; k < p.length; k++) {
      m[k] = momentum * m[k] + g[k];
      p[k] -= eta * m[k];
    }
  });
}

/** Nesterov's gradient: m ← β m + g, θ ← θ − η (g + β m). `Nesterov` of `dlcore`. */
export function nesterov({ lr, momentum = 0.9 }) {
  return optimizer(lr, (eta, p, g, { m }) => {
    for (let k = 0; k < p.length; k++) {
      m[k] = momentum * m[k] + g[k];
      p[k] -= eta * (g[k] + momentum * m[k]);
    }
  });
}

/** v ← α v + (1 − α) g², θ ← θ − η g / (√v + ε). `RMSProp` of `dlcore`. */
export function rmsprop({ lr = 1e-2, alpha = 0.99, eps = 1e-8 } = {}) {
  return optimizer(lr, (eta, p, g, { v }) => {
    for (let k = 0; k < p.length; k++) {
      v[k] = alpha * v[k] + (1 - alpha) * g[k] ** 2;
      p[k] -= (eta * g[k]) / (Math.sqrt(v[k]) + eps);
    }
  });
}

/** m ← β₁ m + g, v ← β₂ v + g², each by its sum of weights; θ ← θ − η m̂ / (√v̂ + ε). `Adam`. */
export function adam({ lr = 1e-3, betas = [0.9, 0.999], eps = 1e-8 } = {}) {
  return optimizer(lr, (eta, p, g, { m, v, t }) => {
    const [sum1, sum2] = betas.map((beta) => (1 - beta ** t) / (1 - beta));
    for (let k = 0; k < p.length; k++) {
      m[k] = betas[0] * m[k] + g[k];
      v[k] = betas[1] * v[k] + g[k] ** 2;
      p[k] -= (eta * (m[k] / sum1)) / (Math.sqrt(v[k] / sum2) + eps);
    }
  });
}

/** A source of numbers in [0, 1), the same for the same seed (mulberry32). */
export function rng(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number from N(0, 1), made of two that `random` draws (Box and Muller). */
export function normal(random) {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return radius * Math.cos(2 * Math.PI * random());
}

/**
 * A rule that changes parameters in place: `step(parameters, gradients)`. Its `lr` may be set
 * between steps. What it remembers of each parameter starts with zeros at the first step.
 */
function optimizer(lr, update) {
  demand(lr > 0, "optimizer: lr", "be positive", lr);
  const memory = [], zeros = (p) => new Float64Array(p.data.length);
  const step = (parameters, gradients) => parameters.forEach((p, i) => {
    memory[i] ??= { m: zeros(p), v: zeros(p), t: 0 };
    memory[i].t += 1;
    update(rule.lr, p.data, gradients[i].data, memory[i]);
  });
  const rule = { lr, step };
  return rule;
}

/** The gradient by a layer's sums, given that by its outputs, both (N, m). */
function through(delta, outputs, slope) {
  return tensor(delta.shape, delta.data.map((d, k) => d * slope(outputs.data[k])));
}

/** The gradients by x (N, n), W (m, n) and b (m), given that by x Wᵀ + b (N, m). */
function denseBackward(x, W, delta) {
  const [N, n] = x.shape, [m] = W.shape;
  const dx = new Float64Array(N * n), dW = new Float64Array(m * n), db = new Float64Array(m);
  for (let s = 0; s < N; s++) {
    for (let i = 0; i < m; i++) {
      const d = delta.data[s * m + i];
      db[i] += d;
      for (let j = 0; j < n; j++) {
        dW[i * n + j] += d * x.data[s * n + j];
        dx[s * n + j] += d * W.data[i * n + j];
      }
    }
  }
  return { x: tensor([N, n], dx), W: tensor([m, n], dW), b: tensor([m], db) };
}

/** Points as a tensor (N, n) of doubles; there may be none. */
function rows(X, n) {
  const { shape, data } = decode(X);
  return tensor([shape[0], n], Float64Array.from(data));
}

function oneOf(what, kinds, name) {
  demand(Object.hasOwn(kinds, name), what, `be one of ${Object.keys(kinds).join(", ")}`, name);
  return kinds[name];
}

function total(numbers) {
  return numbers.reduce((sum, v) => sum + v, 0);
}
