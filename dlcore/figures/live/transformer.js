// A transformer that writes, on its stored weights, as dlcore.transformers.gpt.GPT.

import { add, attention, decode, dense, embedding, gelu, layerNorm } from "./tensors.js";
import { logSoftmax } from "./tensors.js";

/** The model with the weights `stored`, named as those of `dlcore`, and so many heads a layer. */
export function gpt(stored, heads) {
  const p = Object.fromEntries(Object.entries(stored).map(([name, W]) => [name, decode(W)]));
  const E = p["embed.E"], P = p["places.E"];
  const layers = Object.keys(p).filter((name) => name.endsWith("attention.W_Q.weight")).length;
  const linear = (x, name) => dense(x, p[`${name}.weight`], p[`${name}.bias`]);
  const norm = (x, name) => layerNorm(x, p[`${name}.weight`], p[`${name}.bias`]);

  /**
   * Read T tokens. `mask: false` lets each look at all of them, `places: false` leaves out where
   * they stand, and `off` lists heads that add nothing, `"layer.head"`, counted from 0.
   *
   * Returns `{ logs, weights }`: log probabilities of the token behind each (T, C), and the
   * weights of attention of each layer (heads, T, T).
   */
  const read = (tokens, { mask = true, places = true, off = [] } = {}) => {
    const weights = [];
    let x = embedding(tokens, E);
    if (places) x = add(x, embedding([...tokens.keys()], P));
    for (let l = 0; l < layers; l++) {
      const at = `stack.blocks.${l}`, z = norm(x, `${at}.norms.0`);
      const [Q, K, V] = ["Q", "K", "V"].map((name) => linear(z, `${at}.attention.W_${name}`));
      const silent = [...Array(heads).keys()].filter((a) => off.includes(`${l}.${a}`));
      const seen = attention(Q, K, V, { heads, causal: mask, off: silent });
      weights.push(seen.weights);
      x = add(x, linear(seen.out, `${at}.attention.W_O`));
      const hidden = gelu(linear(norm(x, `${at}.norms.1`), `${at}.feed_forward.0`));
      x = add(x, linear(hidden, `${at}.feed_forward.2`));
    }
    return { logs: logSoftmax(dense(norm(x, "stack.norm"), E)), weights };
  };
  return { context: P.shape[0], tokens: E.shape[0], layers, heads, read };
}

/** How many of the last tokens of n are read: when the context is full, its younger half. */
export function inSight(n, context) {
  const half = Math.floor(context / 2);
  return n <= context ? n : half + ((n - context - 1) % (context - half + 1));
}

/** The mean loss of log probabilities (T, C) on the tokens 2 to T, of which each is the next. */
export function meanLoss({ shape: [T, C], data }, tokens) {
  let sum = 0;
  for (let t = 0; t + 1 < T; t++) sum -= data[t * C + tokens[t + 1]];
  return sum / (T - 1);
}
