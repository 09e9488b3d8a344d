// Why a pixel got its match, computed from embedded descriptors and slacks: the same numbers as
// hamflow.pipeline.explain, except that slacks are rounded to 64 steps for each pixel.

import { undelta } from "./coding.js";

const RADIUS = 8; // labels of the map of distances to each side

function ones(word) {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return (((n + (n >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

/** Round to whole numbers as Python does: halves to the even one. */
function roundEven(value) {
  const near = Math.round(value);
  return near - value === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** Index of the smallest cost; ties go to the smallest displacement, then to the negative one. */
export function best(costs, first) {
  let found = 0;
  for (let k = 1; k < costs.length; k++) {
    const [a, b] = [k + first, found + first];
    const nearer = Math.abs(a) < Math.abs(b) || (Math.abs(a) === Math.abs(b) && a < b);
    if (costs[k] < costs[found] || (costs[k] === costs[found] && nearer)) found = k;
  }
  return found;
}

export class Explanation {
  /** `stored` is what standalone.py wrote; `read` returns the bytes of a blob. */
  static async load(stored, read) {
    const made = new Explanation();
    Object.assign(made, stored);
    const words = async (blob) => new Uint32Array((await read(blob)).buffer);
    const numbers = async (blob, channels) => undelta(await read(blob), stored.width, channels);
    [made.bits0, made.bits1] = await Promise.all(stored.bitsBlobs.map(words));
    made.labels = await numbers(stored.labelsBlob, 2);
    if (stored.slack) {
      const [u, v, range] = await Promise.all(stored.slack.map(read));
      made.slack = { u, v, range: new Float32Array(range.buffer) };
    }
    if (stored.prior) {
      made.priorFlow = await numbers(stored.prior.flowBlob, 2);
      made.priorWeight = new Float32Array((await read(stored.prior.weightBlob)).buffer);
    }
    return made;
  }

  /** Hamming distances of a pixel to the targets of a window [u0, du, v0, dv], row by row. */
  distances(column, row, [u0, du, v0, dv]) {
    const { width, height, bits0, bits1, outside } = this;
    const words = this.bits / 32;
    const own = (row * width + column) * words;
    const found = new Float32Array(du * dv).fill(outside);
    for (let j = 0; j < dv; j++) {
      const y = row + v0 + j;
      if (y < 0 || y >= height) continue;
      for (let i = 0; i < du; i++) {
        const x = column + u0 + i;
        if (x < 0 || x >= width) continue;
        const other = (y * width + x) * words;
        let count = 0;
        for (let w = 0; w < words; w++) count += ones(bits0[own + w] ^ bits1[other + w]);
        found[j * du + i] = count;
      }
    }
    return found;
  }

  /** The slacks of a pixel in bits, or null. */
  #slack(plane, at, count) {
    if (!this.slack) return null;
    const offset = plane === "u" ? 0 : 2;
    const [least, step] = this.slack.range.subarray(4 * at + offset, 4 * at + offset + 2);
    const rounded = this.slack[plane].subarray(at * count, (at + 1) * count);
    return Array.from(rounded, (value) => least + step * value);
  }

  #prior(at, component, first, count) {
    if (!this.prior) return null;
    const expected = this.priorFlow[2 * at + component] * this.prior.step;
    const { slope, free } = this.prior;
    return Array.from({ length: count }, (_, k) => {
      const away = Math.abs(first + k - expected);
      return 0.5 * Math.floor(Math.min(this.priorWeight[at], slope * Math.max(0, away - free)));
    });
  }

  pixel(x, y, [flowU, flowV]) {
    const { scale, width, height, window } = this;
    const column = Math.min(Math.floor(x / scale), width - 1);
    const row = Math.min(Math.floor(y / scale), height - 1);
    const [u0, du, v0, dv] = window;
    const costs = this.distances(column, row, window);
    const cost = { u: new Float32Array(du).fill(Infinity), v: new Float32Array(dv).fill(Infinity) };
    for (let j = 0; j < dv; j++) {
      for (let i = 0; i < du; i++) {
        const value = costs[j * du + i];
        if (value < cost.u[i]) cost.u[i] = value;
        if (value < cost.v[j]) cost.v[j] = value;
      }
    }
    const wtaV = best(cost.v, v0);
    const wta = { u: best(costs.subarray(wtaV * du, (wtaV + 1) * du), u0), v: wtaV };
    const at = row * width + column;
    const labels = (first, count) => Array.from({ length: count }, (_, k) => scale * (first + k));
    const curve = (plane, component, first, count) => ({
      labels: labels(first, count),
      cost: Array.from(cost[plane]),
      slack: this.#slack(plane, at, count),
      prior: this.#prior(at, component, first, count),
      wta: wta[plane],
      crf: this.slack ? this.labels[2 * at + component] : null,
    });
    const around = [roundEven(flowU / scale), roundEven(flowV / scale)];
    const side = 2 * RADIUS + 1;
    const near = this.distances(column, row, [around[0] - RADIUS, side, around[1] - RADIUS, side]);
    return {
      cell: [column, row], scale, bits: this.bits,
      u: curve("u", 0, u0, du),
      v: curve("v", 1, v0, dv),
      hamming: {
        labels_u: labels(around[0] - RADIUS, side),
        labels_v: labels(around[1] - RADIUS, side),
        cost: Array.from({ length: side }, (_, j) => Array.from(near.subarray(j * side, (j + 1) * side))),
        around: around.map((displacement) => displacement * scale),
      },
    };
  }
}
