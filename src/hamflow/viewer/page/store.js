// Where the page gets its data from. Two stores have the same methods: this one asks the server
// of `hamflow serve`; the one in embedded.js reads them from the page that `hamflow view` wrote.
//
//   info()                     {version, presets, limits}
//   sources()                  what can be shown: pairs, sequences, results
//   runs()                     earlier estimates, [{source, label, results: {index: id}, ...}]
//   frame(source, k, width)    a frame as a bitmap; a small one if the width is given
//   result(id)                 numbers that describe a result
//   layer(id, name, pixels)    a PixelArray, given the number of pixels
//   warped(id)                 the second frame, warped to the first, as a bitmap
//   pixel(id, x, y)            what explains a pixel: costs, slacks, choices
//   track(id, x, y)            a point through the frames, {points}
//   downloads(id, name, view, others)   files to save, [{label, name, url() -> Promise}]
//
// Only the server can compute (`computes`): upload, remove, run, watch, cancel.

import { PixelArray } from "./arrays.js";

const EXACT_PIXELS = 2 ** 21;

/** An error whose message is one sentence for the user. */
export class StoreError extends Error {}

/** Decode a picture without any change of its numbers. */
export function bitmap(blob) {
  return createImageBitmap(blob, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
}

async function sentence(response) {
  try {
    return (await response.json()).detail;
  } catch {
    // Not from Hamflow, but from something in between.
    return `The server answered with the status ${response.status}.`;
  }
}

export class ServerStore {
  computes = true;

  async #fetch(path, options) {
    let response;
    try {
      response = await fetch(`api/${path}`, options);
    } catch {
      throw new StoreError("The server does not answer; is hamflow serve still running?");
    }
    if (!response.ok) throw new StoreError(await sentence(response));
    return response;
  }

  async #json(path, options) {
    return (await this.#fetch(path, options)).json();
  }

  #post(path, body) {
    return this.#json(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  info() { return this.#json("info"); }

  sources() { return this.#json("sources"); }

  async runs() {
    const jobs = await this.#json("jobs");
    return jobs.map((job) => ({ ...job, job }));
  }

  async frame(source, k, width) {
    const query = width ? `?width=${Math.round(width)}` : "";
    return bitmap(await (await this.#fetch(`sources/${source}/frames/${k}${query}`)).blob());
  }

  result(id) { return this.#json(`results/${id}`); }

  async layer(id, name, pixels) {
    // Flow in full precision, unless that would be large.
    const flow = ["flow", "backward", "truth"].includes(name);
    const query = flow && pixels <= EXACT_PIXELS ? "?type=float32" : "";
    const response = await this.#fetch(`results/${id}/layers/${name}${query}`);
    const shape = response.headers.get("X-Shape").split(",").map(Number);
    return PixelArray.fromBuffer(await response.arrayBuffer(), response.headers.get("X-Dtype"), shape);
  }

  async warped(id) {
    return bitmap(await (await this.#fetch(`results/${id}/warped`)).blob());
  }

  pixel(id, x, y) { return this.#json(`results/${id}/pixel?x=${x}&y=${y}`); }

  track(id, x, y) { return this.#json(`results/${id}/track?x=${x}&y=${y}`); }

  downloads(id, name, view, others) {
    const query = new URLSearchParams({ view: JSON.stringify(view) });
    for (const other of others.slice(0, 3)) query.append("also", other);
    const file = (format, label, ending, query = "") => ({
      label,
      name: `${name}${ending}`,
      url: async () => `api/results/${id}/download/${format}${query}`,
    });
    return [
      file("flo", "Flow (.flo)", ".flo"),
      file("kitti.png", "Flow (KITTI .png)", "-kitti.png"),
      file("npz", "Whole result (.npz)", ".npz"),
      file("png", "Colors (.png)", ".png"),
      file("html", "This view as a page (.html)", ".html", `?${query}`),
    ];
  }

  /** Send files; `progress` is told the share that has been sent. */
  upload(files, truth, progress) {
    const form = new FormData();
    for (const file of files) form.append("files", file, file.name);
    if (truth) form.append("truth", truth, truth.name);
    // fetch cannot tell how much has been sent.
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", `api/sources`);
      request.upload.onprogress = (event) => progress?.(event.loaded / event.total);
      request.onerror = () => reject(new StoreError("The upload was interrupted; try again."));
      request.onload = async () => {
        const response = new Response(request.response, { status: request.status });
        if (response.ok) resolve(await response.json());
        else reject(new StoreError(await sentence(response)));
      };
      request.send(form);
    });
  }

  remove(source) { return this.#fetch(`sources/${source}`, { method: "DELETE" }); }

  run(what) { return this.#post("jobs", what); }

  cancel(job) { return this.#fetch(`jobs/${job}`, { method: "DELETE" }); }

  /** Tell every change of a job until it ends. */
  watch(job, told) {
    const events = new EventSource(`api/jobs/${job}/events`);
    const over = (state) => ["done", "failed", "canceled"].includes(state);
    events.onmessage = (event) => {
      const news = JSON.parse(event.data);
      if (over(news.state)) events.close();
      told(news);
    };
    events.onerror = async () => {
      // The stream has ended or broken: ask once; the browser connects again by itself if needed.
      try {
        const news = await this.#json(`jobs/${job}`);
        if (over(news.state)) events.close();
        told(news);
      } catch (error) {
        events.close();
        told({ id: job, state: "failed", error: error.message, results: {} });
      }
    };
  }
}
