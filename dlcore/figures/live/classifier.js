// A convolutional classifier on its stored weights, as dlcore.convolution.cnn.classifier.

import { conv2d, decode, dense, maxPool, relu, tensor } from "./tensors.js";

/**
 * Convolutions, each with a ReLU and a maximum of 2 × 2 behind it, then dense layers with ReLUs
 * between them. `stored` has weights and biases by the names of PyTorch, such as "3.weight" and
 * "3.bias" for the layer 3, in any order.
 *
 * Returns a function from a picture (C, H, W) to `{ logits, maps }`: the scores, and what each
 * convolution gives behind its ReLU.
 */
export function classifier(stored) {
  const numbers = [...new Set(Object.keys(stored).map((name) => parseInt(name)))];
  const layers = numbers.sort((k, l) => k - l)
    .map((k) => ({ W: decode(stored[`${k}.weight`]), b: decode(stored[`${k}.bias`]) }));
  return (picture) => {
    const maps = [];
    let x = picture;
    layers.forEach(({ W, b }, l) => {
      if (W.shape.length === 4) {
        maps.push(relu(conv2d(x, W, b)));
        x = maxPool(maps.at(-1));
      } else {
        x = dense(tensor([1, x.data.length], x.data), W, b);
        if (l + 1 < layers.length) x = relu(x);
      }
    });
    return { logits: x, maps };
  };
}
