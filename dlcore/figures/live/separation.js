// The geometry of linear separation, and the perceptron, as dlcore.connectionism.perceptron.

const dot = (u, v) => u.reduce((sum, u_i, i) => sum + u_i * v[i], 0);
const mix = (weights, vectors) =>
  vectors[0].map((_, k) => weights.reduce((sum, t, i) => sum + t * vectors[i][k], 0));

/** The signed points y (x, 1): a unit is right where its product with them is positive. */
export function signedPoints(points) {
  return points.map(({ x, y, label }) => [label * x, label * y, label]);
}

/** Solve A u = c by elimination with pivots; A is small and square. */
export function solve(A, c) {
  const rows = A.map((row, i) => [...row, c[i]]), n = rows.length;
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++)
      if (Math.abs(rows[i][k]) > Math.abs(rows[pivot][k])) pivot = i;
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    for (let i = k + 1; i < n; i++) {
      const factor = rows[i][k] / rows[k][k];
      for (let j = k; j <= n; j++) rows[i][j] -= factor * rows[k][j];
    }
  }
  const u = new Array(n).fill(0);
  for (let k = n - 1; k >= 0; k--) {
    const known = u.reduce((sum, u_j, j) => (j > k ? sum + rows[k][j] * u_j : sum), 0);
    u[k] = (rows[k][n] - known) / rows[k][k];
  }
  return u;
}

/**
 * The point of the convex hull of `Z` that is closest to the origin (Wolfe 1976).
 *
 * Returns the point, and multipliers that mix it from Z: `{ p, weights }`. It grows a small
 * set of vectors whose mix is the best so far, and drops those that get a negative weight.
 */
export function closestPoint(Z) {
  const squares = Z.map((z) => dot(z, z)), scale = Math.max(...squares, 1e-300);
  const tiny = 1e-12 * scale;
  let used = [squares.indexOf(Math.min(...squares))], weights = [1], p = Z[used[0]];
  for (let round = 0; round < 1000; round++) {
    const heights = Z.map((z) => dot(z, p)), next = heights.indexOf(Math.min(...heights));
    if (dot(p, p) - heights[next] <= tiny || used.includes(next)) break;
    used.push(next);
    weights.push(0);
    for (;;) {
      const affine = closestInSpan(used.map((i) => Z[i]), scale);
      if (affine.every((a) => a > 1e-12)) {
        weights = affine;
        break;
      }
      const steps = affine.map((a, k) => (a > 1e-12 ? 1 : weights[k] / (weights[k] - a)));
      const t = Math.min(1, ...steps);
      weights = weights.map((v, k) => v + t * (affine[k] - v));
      const kept = weights.map((v) => v > 1e-12);
      if (kept.every(Boolean)) kept[steps.indexOf(Math.min(...steps))] = false;
      used = used.filter((_, k) => kept[k]);
      weights = weights.filter((_, k) => kept[k]);
    }
    p = mix(weights, used.map((i) => Z[i]));
  }
  const all = new Array(Z.length).fill(0);
  used.forEach((i, k) => { all[i] += weights[k]; });
  return { p, weights: all };
}

/** Weights, of sum one, of the point closest to the origin in the affine span of vectors. */
function closestInSpan(vectors, scale) {
  const n = vectors.length;
  const gram = vectors.map((u, i) =>
    [...vectors.map((v, j) => dot(u, v) / scale + (i === j ? 1e-13 : 0)), 1]);
  const sum = [...new Array(n).fill(1), 0];
  return solve([...gram, sum], [...new Array(n).fill(0), 1]).slice(0, n);
}

/**
 * Decide whether points can be separated by a line.
 *
 * If so, `{ w, b, bound }`: a line, and the most updates of the perceptron, R²/γ² measured
 * on the points (x, 1). If not, `{ meet }`: a point in the convex hulls of both classes.
 */
export function separate(points) {
  const Z = signedPoints(points), { p, weights } = closestPoint(Z);
  const R2 = Math.max(...Z.map((z) => dot(z, z))), gamma2 = dot(p, p);
  if (gamma2 > 1e-9 * R2) return { w: [p[0], p[1]], b: p[2], bound: R2 / gamma2 };
  const plus = weights.map((v, i) => (points[i].label > 0 ? v : 0));
  const total = plus.reduce((sum, v) => sum + v, 0);
  return { meet: mix(plus.map((v) => v / total), points.map(({ x, y }) => [x, y])) };
}

/** The corners of the convex hull of points, in order around it (Andrew 1979). */
export function hull(points) {
  const sorted = points.map(({ x, y }) => [x, y]).sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const turn = (p, q, r) => (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
  const half = (rows) => rows.reduce((kept, r) => {
    while (kept.length > 1 && turn(kept.at(-2), kept.at(-1), r) <= 0) kept.pop();
    kept.push(r);
    return kept;
  }, []);
  const around = [half(sorted), half([...sorted].reverse())].flatMap((side) => side.slice(0, -1));
  return around.length ? around : sorted.slice(0, 1);
}

/** The line with the largest margin, `{ w, b, margin }` with |w| = 1; null if there is none. */
export function maxMargin(points) {
  const plus = points.filter((q) => q.label > 0), minus = points.filter((q) => q.label < 0);
  if (!plus.length || !minus.length) return null;
  const differences = plus.flatMap((q) => minus.map((r) => [q.x - r.x, q.y - r.y]));
  const { p } = closestPoint(differences), length = Math.hypot(...p);
  if (!(length > 1e-9)) return null;
  const w = p.map((v) => v / length);
  const near = Math.min(...plus.map((q) => dot(w, [q.x, q.y])));
  const far = Math.max(...minus.map((q) => dot(w, [q.x, q.y])));
  return { w, b: -(near + far) / 2, margin: (near - far) / 2 };
}

/** The signed distances y (w·x + b) / |w| of points from a line. */
export function signedDistances(points, w, b) {
  const length = Math.hypot(...w);
  return points.map(({ x, y, label }) => (label * (dot(w, [x, y]) + b)) / length);
}

/** The perceptron: it goes through the points in turn, and adds those that it gets wrong. */
export class Perceptron {
  constructor(points) {
    Object.assign(this, { points, w: [0, 0], b: 0, at: 0, clean: 0, updates: 0, mistake: -1 });
  }

  get done() {
    return this.clean >= this.points.length;
  }

  /** Go on to the next mistake and correct it; false if there is none. */
  step() {
    while (!this.done) {
      const i = this.at, { x, y, label } = this.points[i];
      this.at = (i + 1) % this.points.length;
      this.clean += 1;
      if (label * (this.w[0] * x + this.w[1] * y + this.b) <= 0) {
        this.w = [this.w[0] + label * x, this.w[1] + label * y];
        this.b += label;
        this.updates += 1;
        this.mistake = i;
        this.clean = 0;
        return true;
      }
    }
    return false;
  }
}
