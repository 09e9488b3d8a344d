// The state of the page, and who is told when it changes.

import { available, layerOf } from "./layers.js";
import { View } from "./view.js";

/** How many panes a mode shows. */
export const PANES = { one: 1, side: 2, grid: 4, swipe: 2, blink: 2 };

const FIRST_LAYERS = ["flow", "frame1", "occlusion", "confidence"];

/** As numpy's, which interpolates; 0 of nothing. */
export function percentile(values, share) {
  if (!values.length) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

export class App extends EventTarget {
  sources = [];
  runs = []; // {key, source, label, results: Map from index to id, cuts: Set, traces: Map}
  source = null;
  index = 0; // of the first frame of the shown pair
  mode = "one";
  active = 0; // the pane that the layer buttons and keys are for
  panes = FIRST_LAYERS.map((layer) => ({ layer, run: null }));
  swipe = 0.5; // share of the width that belongs to the first pane
  blink = 0; // which of the two panes is to be seen
  full = null; // pixels in full color; null for what the result says
  view = new View();
  pixel = null; // {x, y}, of the first frame
  pinned = false;
  track = null; // points of the track of the pinned pixel
  data = null;

  /** Tell that a part of the state has changed: "view", "panes", "pixel", "runs", "sources". */
  tell(what) { this.dispatchEvent(new Event(what)); }

  on(names, listener) {
    for (const name of names.split(" ")) this.addEventListener(name, listener);
  }

  get shownPanes() { return this.panes.slice(0, PANES[this.mode]); }

  get image() { return this.source && { width: this.source.width, height: this.source.height }; }

  runsOf(source) { return this.runs.filter((run) => run.source === source?.id); }

  /** The id of the result that a pane shows, or null. */
  resultOf(pane) { return pane?.run?.results.get(this.index) ?? null; }

  get result() { return this.resultOf(this.panes[this.active]); }

  metaOf(pane) { return this.data.meta(this.resultOf(pane)); }

  /** Pixels in full color: as chosen, or one for all shown results, so that they compare. */
  get fullColor() {
    if (this.full !== null) return this.full;
    const lengths = this.shownPanes.map((pane) => this.#commonLength(pane.run));
    // The smallest: a result full of wild vectors must not make the others pale.
    const known = lengths.filter((length) => length > 0);
    return known.length ? Math.min(...known) : 1;
  }

  /** One scale for all frames, so that colors do not flicker: hamflow.visualize.common_length. */
  #commonLength(run) {
    if (!run) return 0;
    const lengths = [...run.results.values()].map((id) => this.data.meta(id)?.full_color);
    return percentile(lengths.filter((length) => length > 0), 0.95);
  }

  /** What a pane shows: its layer, or the nearest that is there. */
  layerOf(pane) {
    const there = available(this.source, this.metaOf(pane)).map((layer) => layer.name);
    if (there.includes(pane.layer)) return pane.layer;
    return there.includes("frame1") ? "frame1" : (there[0] ?? null);
  }

  show(source) {
    this.source = source;
    this.index = 0;
    this.pixel = null;
    this.pinned = false;
    this.track = null;
    const runs = this.runsOf(source);
    this.panes.forEach((pane, k) => {
      pane.run = (k === 1 && this.mode !== "grid" ? runs[1] : null) ?? runs[0] ?? null;
    });
    this.tell("sources");
    this.tell("panes");
    this.tell("fit");
    this.tell("pixel");
  }

  setLayer(name, pane = this.panes[this.active]) {
    if (!layerOf(name)) return;
    pane.layer = name;
    this.tell("panes");
  }

  setMode(mode) {
    const two = this.mode === "one" && PANES[mode] === 2;
    this.mode = mode;
    this.active = Math.min(this.active, PANES[mode] - 1);
    this.blink = 0;
    const runs = this.runsOf(this.source);
    // Two results are compared in the same layer; one is compared with its first frame.
    if (two && runs.length > 1 && this.panes[1].run === this.panes[0].run) {
      this.panes[1].run = runs.find((run) => run !== this.panes[0].run);
    }
    if (two && this.panes[1].run !== this.panes[0].run) this.panes[1].layer = this.panes[0].layer;
    this.tell("panes");
    this.tell("fit");
  }

  setIndex(index) {
    const last = Math.max(0, (this.source?.frames ?? 1) - 2);
    const next = Math.min(last, Math.max(0, index));
    if (next === this.index) return;
    this.index = next;
    // A pinned point is followed.
    const point = this.pinned && this.track?.find((each) => each.index === next);
    if (point) this.pixel = { x: Math.round(point.x), y: Math.round(point.y) };
    else this.track = null;
    this.tell("panes");
    this.tell("pixel");
  }

  setPixel(pixel, pinned = this.pinned) {
    const inside = pixel && this.image && pixel.x >= 0 && pixel.y >= 0
      && pixel.x < this.image.width && pixel.y < this.image.height;
    this.pixel = inside ? pixel : null;
    this.pinned = Boolean(inside && pinned);
    this.track = null;
    this.tell("pixel");
  }

  /** A view that a page can be opened with, for the download of the page. */
  asView() {
    return {
      mode: this.mode,
      active: this.active,
      layers: this.panes.map((pane) => pane.layer),
      runs: this.panes.map((pane) => pane.run?.label ?? null),
      full: this.full,
      view: { x: this.view.x, y: this.view.y, scale: this.view.scale },
      pixel: this.pinned ? this.pixel : null,
    };
  }

  /** Show what `asView` has written down. */
  useView(view) {
    if (!view) return;
    if (view.mode in PANES) this.setMode(view.mode);
    const runs = this.runsOf(this.source);
    this.panes.forEach((pane, k) => {
      if (layerOf(view.layers?.[k])) pane.layer = view.layers[k];
      pane.run = runs.find((run) => run.label === view.runs?.[k]) ?? pane.run;
    });
    if (view.active in this.shownPanes) this.active = view.active;
    if (view.full > 0) this.full = view.full;
    const { x, y, scale } = view.view ?? {};
    if ([x, y, scale].every(Number.isFinite) && scale > 0) {
      Object.assign(this.view, { x, y, scale });
      this.tell("placed");
    }
    this.tell("panes");
    if (view.pixel) this.setPixel(view.pixel, true);
  }
}
