// From scores for the next token to a token, as dlcore.recurrence.decoding.
//
// Rules return scores again, −∞ where a token is cut, so that they can follow each other.

import { demand, softmax } from "./tensors.js";

/** Numbers of the tokens, the largest score first; of equals, the first. */
export function ranked(logits) {
  return [...logits.keys()].sort((a, b) => logits[b] - logits[a] || a - b);
}

/** Divide by a temperature: a low one sharpens, a high one flattens. */
export function tempered(logits, temperature) {
  demand(temperature > 0, "tempered: temperature", "be positive", temperature);
  return logits.map((v) => v / temperature);
}

/** Keep the k tokens with the largest scores. */
export function topK(logits, k) {
  return keep(logits, new Set(ranked(logits).slice(0, k)));
}

/** Keep the fewest most probable tokens that have the probability p together. */
export function nucleus(logits, p) {
  const order = ranked(logits), chances = probabilities(logits), kept = new Set([order[0]]);
  const rounding = 1 + logits.length * Number.EPSILON;
  let tail = 0;
  for (const token of order.toReversed()) {
    tail += chances[token];
    if (tail > (1 - p) * rounding) kept.add(token);
  }
  return keep(logits, kept);
}

/** Probabilities of scores, a list of numbers. */
export function probabilities(logits) {
  return softmax({ shape: [logits.length], data: Float64Array.from(logits) }).data;
}

/** Draw a token by a number from [0, 1). */
export function sample(logits, number) {
  const chances = probabilities(logits);
  let sum = 0, last = 0;
  for (let token = 0; token < chances.length; token++) {
    if (!(chances[token] > 0)) continue;
    sum += chances[token];
    last = token;
    if (number < sum) return token;
  }
  return last;
}

function keep(logits, kept) {
  return logits.map((v, token) => (kept.has(token) ? v : -Infinity));
}
