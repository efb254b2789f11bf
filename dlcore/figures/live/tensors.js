// Arrays, and the layers of a network, forward only.
//
// A tensor is `{ shape, data }`: its numbers stand in one typed array, the last axis fastest.
// Layers add up in double precision and answer in the precision of their input x.

/** A tensor of a shape over a typed array. */
export function tensor(shape, data) {
  const size = shape.reduce((product, n) => product * n, 1);
  demand(size === data.length, "tensor: data", `have ${size} numbers for (${shape})`, data.length);
  return { shape, data };
}

/**
 * A tensor from what a page stores: nested lists of numbers, which become doubles;
 * `{ shape, f32 }`, little-endian floats in base64; or `{ shape, i8, scales }`, whole numbers
 * from −128 to 127 in base64, where each row of the first axis is multiplied by its scale, or
 * all are by the only one; or `{ shape, u8 }`, bytes in base64. A tensor is returned as it is.
 */
export function decode(stored) {
  if (stored.data) return stored;
  if (stored.f32 !== undefined) {
    const bytes = fromBase64(stored.f32), data = new Float32Array(bytes.byteLength / 4);
    for (let i = 0; i < data.length; i++) data[i] = bytes.getFloat32(4 * i, true);
    return tensor(stored.shape, data);
  }
  if (stored.i8 !== undefined) {
    const { shape } = stored, scales = decode(stored.scales).data;
    const fits = [1, shape[0]].includes(scales.length);
    demand(fits, "decode: scales", `be 1 or ${shape[0]}, one for each row`, scales.length);
    const bytes = fromBase64(stored.i8), data = new Float32Array(bytes.byteLength);
    const row = data.length / scales.length;
    for (let i = 0; i < data.length; i++) data[i] = bytes.getInt8(i) * scales[Math.floor(i / row)];
    return tensor(shape, data);
  }
  if (stored.u8 !== undefined)
    return tensor(stored.shape, Float32Array.from(new Uint8Array(fromBase64(stored.u8).buffer)));
  return tensor(shapeOf(stored), Float64Array.from([stored].flat(Infinity)));
}

/** y = x Wᵀ + b for x (N, n), W (m, n), b (m) or null; y (N, m). */
export function dense(x, W, b = null) {
  const [N, n] = x.shape, [m, inputs] = W.shape;
  demand(n === inputs, "dense: x", `have ${inputs} columns`, `shape (${x.shape})`);
  const y = like(x, [N, m]);
  for (let s = 0; s < N; s++) {
    for (let i = 0; i < m; i++) {
      let sum = b ? b.data[i] : 0;
      for (let j = 0; j < n; j++) sum += W.data[i * n + j] * x.data[s * n + j];
      y.data[s * m + i] = sum;
    }
  }
  return y;
}

/** Cross-correlation of x (C, H, W) with kernels (O, C, k, l), plus b (O) or null; (O, h, w). */
export function conv2d(x, W, b = null, { padding = 0, stride = 1 } = {}) {
  const [O, C, k, l] = W.shape;
  demand(x.shape[0] === C, "conv2d: x", `have ${C} channels`, `shape (${x.shape})`);
  const padded = padding ? pad(x, padding) : x, [, rows, columns] = padded.shape;
  demand(k <= rows && l <= columns, "conv2d: W", "fit into x", `kernels of ${k} × ${l}`);
  const h = Math.floor((rows - k) / stride) + 1, w = Math.floor((columns - l) / stride) + 1;
  const y = like(x, [O, h, w]);
  for (let o = 0; o < O; o++) {
    const map = new Float64Array(h * w).fill(b ? b.data[o] : 0);
    for (let c = 0; c < C; c++) {
      for (let u = 0; u < k; u++) {
        for (let v = 0; v < l; v++) {
          const weight = W.data[((o * C + c) * k + u) * l + v];
          for (let i = 0; i < h; i++) {
            const from = (c * rows + i * stride + u) * columns + v;
            for (let j = 0; j < w; j++) map[i * w + j] += weight * padded.data[from + j * stride];
          }
        }
      }
    }
    y.data.set(map, o * h * w);
  }
  return y;
}

/** The largest number of each window of x (C, H, W), side by side; (C, H / size, W / size). */
export function maxPool(x, size = 2) {
  return pool(x, size, (numbers) => Math.max(...numbers));
}

/** The mean of each window of x (C, H, W), side by side; (C, H / size, W / size). */
export function avgPool(x, size = 2) {
  return pool(x, size, (numbers) => numbers.reduce((a, b) => a + b) / numbers.length);
}

/** max(x, 0), any shape. */
export function relu(x) {
  return map(x, (v) => (v > 0 ? v : 0));
}

/** x Φ(x) with the normal distribution's Φ, exact, any shape. */
export function gelu(x) {
  return map(x, (v) => (v * (1 + erf(v / Math.SQRT2))) / 2);
}

/** tanh x, any shape. */
export function tanh(x) {
  return map(x, Math.tanh);
}

/** 1 / (1 + e^−x), any shape. */
export function sigmoid(x) {
  return map(x, logistic);
}

/** Probabilities of the scores x / temperature along the last axis, same shape. */
export function softmax(x, temperature = 1) {
  return alongLast(x, (row) => {
    const { top, sum } = partition(row, temperature);
    return row.map((v) => Math.exp(v / temperature - top) / sum);
  });
}

/** Logarithms of the softmax of x / temperature along the last axis, same shape. */
export function logSoftmax(x, temperature = 1) {
  return alongLast(x, (row) => {
    const { top, sum } = partition(row, temperature);
    return row.map((v) => v / temperature - top - Math.log(sum));
  });
}

/** g (x − μ) / √(v + eps) + b, with mean and variance of the last axis, D; g and b (D). */
export function layerNorm(x, g, b, eps = 1e-5) {
  return alongLast(x, (row) => {
    const mu = mean(row), root = Math.sqrt(mean(row.map((v) => (v - mu) ** 2)) + eps);
    return row.map((v, j) => (g.data[j] * (v - mu)) / root + b.data[j]);
  });
}

/** g x / √(mean of x² + eps), with the mean along the last axis, D; g (D). */
export function rmsNorm(x, g, eps = 1e-6) {
  return alongLast(x, (row) => {
    const root = Math.sqrt(mean(row.map((v) => v * v)) + eps);
    return row.map((v, j) => (g.data[j] * v) / root);
  });
}

/** Batch normalisation in use: x (C, ...) by the running mean and variance, g and b, all (C). */
export function batchNorm(x, runningMean, runningVar, g, b, eps = 1e-5) {
  const each = x.data.length / x.shape[0];
  return map(x, (v, i) => {
    const c = Math.floor(i / each), root = Math.sqrt(runningVar.data[c] + eps);
    return (g.data[c] * (v - runningMean.data[c])) / root + b.data[c];
  });
}

/**
 * softmax(Q Kᵀ / √d) V in heads side by side: Q (T, D), K (S, D), V (S, E), each cut along its
 * last axis into `heads` parts, d = D / heads; no projections.
 *
 * `mask` (T, S) is not 0 where a query may look; a query that may look nowhere has weights 0.
 * `causal` lets query t see the keys up to t + S − T: the last query sees all. The heads
 * listed in `off` add nothing to the output; their weights are there all the same.
 * Returns `{ out, weights }`: (T, E) and (heads, T, S).
 */
export function attention(Q, K, V, { heads = 1, causal = false, mask = null, off = [] } = {}) {
  const [T, D] = Q.shape, [S, E] = V.shape, d = D / heads, e = E / heads;
  const fits = K.shape[0] === S && K.shape[1] === D;
  demand(fits, "attention: K", `have the shape (${S}, ${D})`, `(${K.shape})`);
  const whole = Number.isInteger(d) && Number.isInteger(e);
  demand(whole, "attention: heads", `divide the widths ${D} and ${E}`, heads);
  const out = like(Q, [T, E]), weights = like(Q, [heads, T, S]), scores = new Float64Array(S);
  for (let a = 0; a < heads; a++) {
    for (let t = 0; t < T; t++) {
      for (let s = 0; s < S; s++) {
        const hidden = (causal && s > t + S - T) || (mask && !mask.data[t * S + s]);
        let product = hidden ? -Infinity : 0;
        for (let j = a * d; j < (a + 1) * d; j++) product += Q.data[t * D + j] * K.data[s * D + j];
        scores[s] = product / Math.sqrt(d);
      }
      if (Math.max(...scores) === -Infinity) continue;
      const row = softmax({ shape: [S], data: scores }).data;
      weights.data.set(row, (a * T + t) * S);
      if (off.includes(a)) continue;
      for (let j = a * e; j < (a + 1) * e; j++) {
        let sum = 0;
        for (let s = 0; s < S; s++) sum += row[s] * V.data[s * E + j];
        out.data[t * E + j] = sum;
      }
    }
  }
  return { out, weights };
}

/** The rows of W (number of tokens, D) that belong to a list of T token numbers; (T, D). */
export function embedding(tokens, W) {
  const [count, D] = W.shape, y = like(W, [tokens.length, D]);
  tokens.forEach((token, t) => {
    const known = Number.isInteger(token) && token >= 0 && token < count;
    demand(known, "embedding: tokens", `be whole numbers from 0 to ${count - 1}`, token);
    y.data.set(W.data.subarray(token * D, (token + 1) * D), t * D);
  });
  return y;
}

/** x + y; y has the shape of x, or only its last axes, and is then added to each part. */
export function add(x, y) {
  const last = x.shape.slice(x.shape.length - y.shape.length), fits = `${last}` === `${y.shape}`;
  demand(fits, "add: y", `have the last axes of (${x.shape})`, `shape (${y.shape})`);
  return map(x, (v, i) => v + y.data[i % y.data.length]);
}

/**
 * One step of the simple recurrent network, tanh(V x + U h + b), as in `dlcore` and PyTorch:
 * x (N, n), h (N, m), V (m, n), U (m, m), b (m), the sum of PyTorch's two biases; (N, m).
 */
export function rnnCell(x, h, { V, U, b }) {
  return tanh(add(dense(x, V, b), dense(h, U)));
}

/**
 * One step of an LSTM from the state [h, c] to the next, as in `dlcore` and PyTorch:
 * V (4m, n), U (4m, m), b (4m) have the blocks of rows i, f, candidate, o: input gate, forget
 * gate, candidate, output gate; b is the sum of PyTorch's two biases. x (N, n), h and c (N, m).
 */
export function lstmCell(x, [h, c], { V, U, b }) {
  const [i, f, candidate, o] = blocks(add(dense(x, V, b), dense(h, U)), 4);
  const next = add(times(sigmoid(f), c), times(sigmoid(i), tanh(candidate)));
  return [times(sigmoid(o), tanh(next)), next];
}

/**
 * One step of a GRU, reset after the product, as in PyTorch and in `dlcore` by default:
 * V (3m, n), U (3m, m), b (3m) have the blocks of rows r, u, candidate: reset gate, update
 * gate, candidate; h' = u h + (1 − u) tanh(V x + b + r (U h + d)) with the inner bias d (m) or
 * null. PyTorch's second biases are added to b for r and u, and are d for the candidate.
 * x (N, n), h (N, m); (N, m).
 */
export function gruCell(x, h, { V, U, b, d = null }) {
  const [inR, inU, inH] = blocks(dense(x, V, b), 3), [pastR, pastU, pastH] = blocks(dense(h, U), 3);
  const r = sigmoid(add(inR, pastR)), u = sigmoid(add(inU, pastU));
  const candidate = tanh(add(inH, times(r, d ? add(pastH, d) : pastH)));
  return add(times(u, h), times(map(u, (v) => 1 - v), candidate));
}

/** Places of the largest number along the last axis of x (..., D): a list, one for each row. */
export function argmax(x) {
  return rowsOf(x).map((row) => row.indexOf(Math.max(...row)));
}

/** Refuse an argument in the sentence that `dlcore` uses. */
export function demand(ok, what, must, got) {
  if (!ok) throw new RangeError(`${what} must ${must}; got ${got}.`);
}

function fromBase64(text) {
  return new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

function shapeOf(lists) {
  if (!Array.isArray(lists)) return [];
  const shapes = lists.map(shapeOf), even = shapes.every((s) => `${s}` === `${shapes[0]}`);
  demand(even, "decode: lists", "be as long as their neighbours", `(${shapes.join("), (")})`);
  return [lists.length, ...(shapes[0] ?? [])];
}

/** Zeros of a shape, in the precision of x. */
function like(x, shape) {
  return tensor(shape, new x.data.constructor(shape.reduce((product, n) => product * n, 1)));
}

function map(x, f) {
  return { shape: x.shape, data: x.data.map((v, i) => f(v, i)) };
}

function times(x, y) {
  return map(x, (v, i) => v * y.data[i]);
}

function mean(numbers) {
  return numbers.reduce((sum, v) => sum + v, 0) / numbers.length;
}

/** The rows along the last axis, as views. */
function rowsOf(x) {
  const D = x.shape.at(-1), count = x.data.length / D;
  return Array.from({ length: count }, (_, r) => x.data.subarray(r * D, (r + 1) * D));
}

/** Apply f to each row along the last axis, given in double precision. */
function alongLast(x, f) {
  const y = like(x, x.shape), D = x.shape.at(-1);
  rowsOf(x).forEach((row, r) => y.data.set(f(Float64Array.from(row)), r * D));
  return y;
}

/** The columns of x (N, count m) in parts (N, m). */
function blocks(x, count) {
  const [N, D] = x.shape, m = D / count;
  return Array.from({ length: count }, (_, k) => {
    const part = like(x, [N, m]);
    rowsOf(x).forEach((row, s) => part.data.set(row.subarray(k * m, (k + 1) * m), s * m));
    return part;
  });
}

/** x (C, H, W) between zeros, `width` on each side. */
function pad(x, width) {
  const [C, H, W] = x.shape, rows = H + 2 * width, columns = W + 2 * width;
  const y = like(x, [C, rows, columns]);
  rowsOf(x).forEach((row, r) => {
    const c = Math.floor(r / H), i = r % H;
    y.data.set(row, (c * rows + i + width) * columns + width);
  });
  return y;
}

function pool(x, size, f) {
  const [C, H, W] = x.shape, h = Math.floor(H / size), w = Math.floor(W / size);
  const y = like(x, [C, h, w]), numbers = new Float64Array(size * size);
  for (let c = 0; c < C; c++) {
    for (let i = 0; i < h; i++) {
      for (let j = 0; j < w; j++) {
        for (let k = 0; k < numbers.length; k++) {
          const row = i * size + Math.floor(k / size), column = j * size + (k % size);
          numbers[k] = x.data[(c * H + row) * W + column];
        }
        y.data[(c * h + i) * w + j] = f(numbers);
      }
    }
  }
  return y;
}

/** The largest of z = row / temperature, and the sum of e^(z − top), which does not overflow. */
function partition(row, temperature) {
  demand(temperature > 0, "softmax: temperature", "be positive", temperature);
  const z = row.map((v) => v / temperature), top = Math.max(...z);
  return { top, sum: z.reduce((sum, v) => sum + Math.exp(v - top), 0) };
}

function logistic(v) {
  return 1 / (1 + Math.exp(-v));
}

/** erf x = 2/√π e^−x² Σ 2ᵏ x²ᵏ⁺¹ / (1·3·5···(2k + 1)), in which no terms cancel. */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k++) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}
