// The store of a page that holds all its data: what standalone.py has written into it.

import { PixelArray, warp } from "./arrays.js";
import { flowColor } from "./colors.js";
import { decoded, inflated, undelta } from "./coding.js";
import { Explanation } from "./explain.js";
import { bitmap, StoreError } from "./store.js";

const UNKNOWN = -32768;

export class EmbeddedStore {
  computes = false;

  #arrays = new Map();

  constructor(data) {
    this.data = data;
    this.results = new Map(data.results.map((result) => [result.id, result]));
  }

  async info() {
    return { version: this.data.version, presets: [], limits: {}, notes: this.data.notes };
  }

  async sources() { return this.data.sources; }

  async runs() { return this.data.runs; }

  #blob(number) { return decoded(document.getElementById(`blob-${number}`).textContent); }

  async frame(source, k) {
    const { frames } = this.data.sources.find((known) => known.id === source);
    const stored = this.data.frames[source]?.[k];
    if (!stored) throw new StoreError(`The page holds no frame ${k + 1} of ${frames}.`);
    return bitmap(new Blob([this.#blob(stored.blob)], { type: stored.type }));
  }

  async result(id) {
    const { layers, explanation, ...meta } = this.results.get(id);
    return { ...meta, layers: Object.keys(layers), explained: Boolean(explanation) };
  }

  layer(id, name) {
    const key = `${id} ${name}`;
    if (!this.#arrays.has(key)) this.#arrays.set(key, this.#layer(id, name));
    return this.#arrays.get(key);
  }

  async #layer(id, name) {
    const { layers } = this.results.get(id);
    if (name === "error" && !layers.error) return this.#error(id);
    const stored = layers[name];
    if (!stored) throw new StoreError(`The page does not hold the layer ${name}.`);
    const bytes = await inflated(this.#blob(stored.blob));
    if (stored.codec === "bytes") return new PixelArray(bytes, "uint8", stored.shape);
    const [, width, channels = 1] = stored.shape;
    const values = Float32Array.from(undelta(bytes, width, channels), (value) =>
      value === UNKNOWN ? NaN : value * stored.step,
    );
    return new PixelArray(values, "float32", stored.shape);
  }

  async #error(id) {
    const [flow, truth] = await Promise.all([this.layer(id, "flow"), this.layer(id, "truth")]);
    const error = new Float32Array(flow.width * flow.height);
    for (let i = 0; i < error.length; i++) {
      error[i] = Math.hypot(
        flow.data[2 * i] - truth.data[2 * i], flow.data[2 * i + 1] - truth.data[2 * i + 1],
      );
    }
    return new PixelArray(error, "float32", [flow.height, flow.width]);
  }

  async warped(id) {
    const { source, index } = this.results.get(id);
    const second = await this.frame(source, index + 1);
    const canvas = new OffscreenCanvas(second.width, second.height);
    const context = canvas.getContext("2d");
    context.drawImage(second, 0, 0);
    const pixels = context.getImageData(0, 0, second.width, second.height);
    return warp(pixels, await this.layer(id, "flow"));
  }

  async #explanation(id) {
    const key = `${id} explanation`;
    if (!this.#arrays.has(key)) {
      const { explanation } = this.results.get(id);
      const read = async (number) => inflated(this.#blob(number));
      this.#arrays.set(key, explanation ? Explanation.load(explanation, read) : null);
    }
    return this.#arrays.get(key);
  }

  /** As the server's answer, from the layers and the embedded bits and slacks. */
  async pixel(id, x, y) {
    const { layers } = this.results.get(id);
    const has = async (name) => (layers[name] ? this.layer(id, name) : null);
    const [flow, backward, occlusion, confidence, truth, explanation] = await Promise.all([
      this.layer(id, "flow"), has("backward"), has("occlusion"), has("confidence"), has("truth"),
      this.#explanation(id),
    ]);
    const [u, v] = flow.vector(x, y);
    const match = [x + u, y + v];
    const back = backward && [
      ...backward.vector(Math.round(match[0]), Math.round(match[1])),
    ];
    const certain = confidence ? confidence.at(x, y) / 255 : null;
    return {
      x, y, flow: [u, v], match,
      backward: back && Number.isFinite(back[0]) ? back : null,
      round_trip: back && Number.isFinite(back[0]) ? Math.hypot(u + back[0], v + back[1]) : null,
      occluded: occlusion ? occlusion.at(x, y) > 0 : null,
      confidence: certain,
      expected_error: certain ? 1 / certain - 1 : null,
      truth: truth && Number.isFinite(truth.at(x, y)) ? truth.vector(x, y) : null,
      ...(explanation ? explanation.pixel(x, y, [u, v]) : {}),
    };
  }

  /** Follow a point from its frame through the later and earlier results of the same run. */
  async track(id, x, y) {
    const { source, index } = this.results.get(id);
    const run = this.data.runs.find((each) => Object.values(each.results).includes(id));
    const points = [{ index, x, y, visible: true }];
    for (const [step, name] of [[1, "flow"], [-1, "backward"]]) {
      let [at, px, py] = [index, x, y];
      for (;;) {
        const next = run.results[step > 0 ? at : at - 1];
        if (next === undefined || this.results.get(next).source !== source) break;
        if (!this.results.get(next).layers[name] || this.results.get(next).cut) break;
        const flow = await this.layer(next, name);
        const [u, v] = flow.vector(Math.round(px), Math.round(py));
        if (!Number.isFinite(u)) break;
        const hidden = step > 0 && this.results.get(next).layers.occlusion
          ? (await this.layer(next, "occlusion")).at(Math.round(px), Math.round(py)) > 0
          : false;
        if (hidden) break;
        [at, px, py] = [at + step, px + u, py + v];
        points.push({ index: at, x: px, y: py, visible: true });
      }
    }
    return { points: points.sort((a, b) => a.index - b.index) };
  }

  downloads(id, name, view) {
    const { layers, full_color: usual } = this.results.get(id);
    const stored = layers.flow;
    return [
      {
        label: "Colors (.png)",
        name: `${name}.png`,
        url: async () => URL.createObjectURL(await this.#colors(id, view.full ?? usual)),
      },
      {
        label: `Flow (.flo, rounded to ${stored.step} px)`,
        name: `${name}.flo`,
        url: async () => URL.createObjectURL(new Blob([await this.#flo(id)])),
      },
    ];
  }

  async #colors(id, full) {
    const flow = await this.layer(id, "flow");
    const picture = new ImageData(flow.width, flow.height);
    for (let i = 0; i < flow.width * flow.height; i++) {
      picture.data.set([...flowColor(flow.data[2 * i], flow.data[2 * i + 1], full), 255], 4 * i);
    }
    const canvas = new OffscreenCanvas(flow.width, flow.height);
    canvas.getContext("2d").putImageData(picture, 0, 0);
    return canvas.convertToBlob();
  }

  async #flo(id) {
    const flow = await this.layer(id, "flow");
    const head = new ArrayBuffer(12);
    const view = new DataView(head);
    view.setUint32(0, 0x48454950, true); // "PIEH"
    view.setInt32(4, flow.width, true);
    view.setInt32(8, flow.height, true);
    const values = flow.data.map((value) => (Number.isNaN(value) ? 1e10 : value));
    return new Blob([head, values]);
  }
}
