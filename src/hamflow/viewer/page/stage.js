// The panes: draws them when something has changed, and turns pointer and wheel into zoom, pan and
// the marked pixel.

import { layerOf, picture } from "./layers.js";
import { drawArrows, drawGrid, drawMarks, drawTrack, drawValues } from "./marks.js";

const GAP = 2; // CSS pixels between panes
const BLINK = 700; // milliseconds
const REST = 150; // milliseconds without a change until the picture is drawn as well as it can be

export class Stage {
  #queued = false;
  #pictures = false; // whether the pictures are to be drawn, too
  #rest = 0;
  #pointers = new Map(); // pointers that are down, for pan and pinch
  #moved = 0;
  #fitted = true;

  constructor(app, renderer, elements) {
    Object.assign(this, { app, renderer, ...elements });
    app.on("view panes sources", () => this.redraw());
    app.on("pixel", () => this.redraw({ pictures: false }));
    app.on("fit", () => this.fit());
    app.on("placed", () => {
      this.#fitted = false;
      this.redraw();
    });
    new ResizeObserver(() => {
      if (this.#fitted) this.fit();
      app.tell("panes");
    }).observe(this.stage);
    setInterval(() => {
      if (app.mode !== "blink") return;
      app.blink = 1 - app.blink;
      app.tell("blink");
      this.redraw();
    }, BLINK);
    this.#listen();
    this.#listenToDivider();
  }

  /** The panes with their boxes in CSS pixels of the stage; `clip` is the part to be seen. */
  boxes() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const whole = { x: 0, y: 0, width, height };
    const { app } = this;
    const [a, b, c, d] = app.panes;
    const half = { width: (width - GAP) / 2, height: (height - GAP) / 2 };
    const right = half.width + GAP;
    switch (app.mode) {
      case "side": {
        // One above the other where there is more room for that.
        const image = app.image ?? { width: 4, height: 3 };
        const scale = (w, h) => Math.min(w / image.width, h / image.height);
        if (scale(width, half.height) > scale(half.width, height)) {
          const box = { x: 0, width, height: half.height };
          return [{ pane: a, box: { ...box, y: 0 } }, { pane: b, box: { ...box, y: half.height + GAP } }];
        }
        return [
          { pane: a, box: { x: 0, y: 0, width: half.width, height } },
          { pane: b, box: { x: right, y: 0, width: half.width, height } },
        ];
      }
      case "grid":
        return [a, b, c, d].map((pane, k) => ({
          pane,
          box: { x: (k % 2) * right, y: (k >> 1) * (half.height + GAP), ...half },
        }));
      case "swipe": {
        const edge = Math.round(app.swipe * width);
        return [
          { pane: a, box: whole, clip: { ...whole, width: edge } },
          { pane: b, box: whole, clip: { ...whole, x: edge, width: width - edge } },
        ];
      }
      case "blink": return [{ pane: app.panes[app.blink], box: whole }];
      default: return [{ pane: a, box: whole }];
    }
  }

  /** The pane under a point. */
  paneAt(px, py) {
    const inside = ({ x, y, width, height }) => px >= x && py >= y && px < x + width && py < y + height;
    const boxes = this.boxes();
    return boxes.find(({ box, clip }) => inside(clip ?? box)) ?? boxes[0];
  }

  fit() {
    const { app } = this;
    this.#fitted = true;
    if (app.image) app.view.fit(app.image, this.boxes()[0].box);
    app.tell("view");
  }

  /** Fit, or one to one if it is fitted already. */
  toggleFit() {
    if (!this.#fitted) return this.fit();
    const { box } = this.boxes()[0];
    return this.zoom(1 / this.app.view.scale, box.x + box.width / 2, box.y + box.height / 2);
  }

  zoom(factor, px, py) {
    const { app } = this;
    if (!app.image) return;
    const { box } = px === undefined ? this.boxes()[0] : this.paneAt(px, py);
    app.view.zoom(factor, px ?? box.x + box.width / 2, py ?? box.y + box.height / 2, box);
    app.view.hold(app.image);
    this.#fitted = false;
    app.tell("view");
  }

  /** Draw soon: everything, or what is drawn over the pictures alone. */
  redraw({ pictures = true } = {}) {
    this.#pictures ||= pictures;
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      this.draw({ quick: true, pictures: this.#pictures });
      if (!this.#pictures) return;
      this.#pictures = false;
      clearTimeout(this.#rest);
      // A reduced image is smoothed when it rests: that would take too long for every step of a
      // motion where there is no graphics card.
      if (this.app.view.scale * (globalThis.devicePixelRatio || 1) < 0.99) {
        this.#rest = setTimeout(() => this.draw(), REST);
      }
    });
  }

  draw({ quick = false, pictures = true } = {}) {
    const { app, renderer } = this;
    const ratio = renderer.resize();
    if (pictures) renderer.clear(this.background());
    const context = this.drawing.getContext("2d");
    const { width, height } = renderer.canvas;
    if (this.drawing.width !== width || this.drawing.height !== height) {
      this.drawing.width = width;
      this.drawing.height = height;
    } else {
      context.clearRect(0, 0, width, height);
    }
    if (!app.source) return;
    for (const { pane, box, clip = box } of this.boxes()) {
      const layer = app.layerOf(pane);
      if (pictures) this.#drawPicture(pane, layer, { box, clip, ratio, most: quick ? 1 : 4 });
      context.save();
      context.scale(ratio, ratio);
      context.beginPath();
      context.rect(clip.x, clip.y, clip.width, clip.height);
      context.clip();
      this.#drawOver(context, box, layer, app.resultOf(pane));
      context.restore();
    }
    app.tell("drawn");
  }

  #drawPicture(pane, layer, { box, clip, ratio, most }) {
    const { app, renderer } = this;
    const device = ({ x, y, width, height }) => ({
      x: Math.round(x * ratio),
      y: Math.round(y * ratio),
      width: Math.round((x + width) * ratio) - Math.round(x * ratio),
      height: Math.round((y + height) * ratio) - Math.round(y * ratio),
    });
    const result = app.resultOf(pane);
    const what = layer && picture(layer, app.data, app.source, app.index, result, app.fullColor);
    if (what) pane.last = what;
    if (layerOf(layer)?.second) this.#backward(pane); // to be there when it is pointed at
    // While the next frame is being loaded, the one before stays.
    const shown = what ?? (pane.last?.first.freed || pane.last?.second?.freed ? null : pane.last);
    if (shown?.first.width !== app.source.width || shown.first.height !== app.source.height) return;
    const view = { x: app.view.x, y: app.view.y, scale: app.view.scale * ratio };
    renderer.draw(shown, device(box), view, device(clip), most);
  }

  #drawOver(context, box, layer, result) {
    const { app } = this;
    const numbers = { arrows: "flow", overlay: "flow", flow: "flow", truth: "truth", backward: "backward", error: "error" }[layer];
    const values = result && numbers && app.view.scale >= 56 && app.data.array(result, numbers);
    if (app.view.scale >= 12) drawGrid(context, app, box);
    if (values) drawValues(context, app, box, values);
    const flow = result && layer === "arrows" && app.data.array(result, "flow");
    if (flow) drawArrows(context, app, box, flow);
    if (app.track) drawTrack(context, app, box, layerOf(layer)?.second ? app.index + 1 : app.index);
    if (app.pixel) drawMarks(context, app, box, Boolean(layerOf(layer)?.second), this.#vector());
  }

  /** The flow at the marked pixel, in the result of the active pane. */
  #vector() {
    const { app } = this;
    const flow = app.result && app.data.array(app.result, "flow");
    return flow ? flow.vector(app.pixel.x, app.pixel.y) : null;
  }

  #place(event) {
    const area = this.stage.getBoundingClientRect();
    return [event.clientX - area.left, event.clientY - area.top];
  }

  /** The pixel of the first frame that a point of the stage shows, or null. */
  pixelAt(px, py) {
    const { app } = this;
    if (!app.image) return null;
    const { pane, box } = this.paneAt(px, py);
    let [x, y] = app.view.toImage(px, py, box).map(Math.floor);
    if (x < 0 || y < 0 || x >= app.image.width || y >= app.image.height) return null;
    if (layerOf(app.layerOf(pane))?.second) {
      // The second frame: the backward flow says which pixel is seen there.
      const backward = this.#backward(pane);
      if (!backward) return null;
      const [u, v] = backward.vector(x, y);
      [x, y] = [Math.round(x + u), Math.round(y + v)];
    }
    return { x, y };
  }

  #backward(pane) {
    const { app } = this;
    const there = app.metaOf(pane)?.layers.includes("backward");
    return there ? app.data.array(app.resultOf(pane), "backward") : null;
  }

  activate(pane) {
    const { app } = this;
    const k = app.panes.indexOf(pane);
    if (k === app.active) return;
    app.active = k;
    app.tell("panes");
  }

  #listen() {
    const { app, stage, drawing } = this;
    drawing.addEventListener("wheel", (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      const [px, py] = this.#place(event);
      this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), px, py);
    }, { passive: false });
    drawing.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      drawing.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, this.#place(event));
      this.#moved = 0;
      stage.focus({ preventScroll: true });
    });
    drawing.addEventListener("pointermove", (event) => this.#move(event));
    const up = (event) => {
      if (!this.#pointers.delete(event.pointerId)) return;
      if (event.type === "pointerup" && this.#moved < 4 && !this.#pointers.size) this.#click(event);
      stage.classList.remove("dragging");
    };
    drawing.addEventListener("pointerup", up);
    drawing.addEventListener("pointercancel", up);
    drawing.addEventListener("pointerleave", () => {
      if (!app.pinned && !this.#pointers.size) app.setPixel(null);
    });
    drawing.addEventListener("dblclick", (event) => this.zoom(2, ...this.#place(event)));
  }

  #move(event) {
    const { app, stage } = this;
    const [px, py] = this.#place(event);
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse" && !app.pinned) {
        this.activate(this.paneAt(px, py).pane);
        const pixel = this.pixelAt(px, py);
        if (pixel?.x !== app.pixel?.x || pixel?.y !== app.pixel?.y) app.setPixel(pixel, false);
      }
      return;
    }
    this.#moved += Math.hypot(px - before[0], py - before[1]);
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId);
    this.#pointers.set(event.pointerId, [px, py]);
    if (this.#moved < 4) return;
    stage.classList.add("dragging");
    this.#fitted = false;
    if (others.length) {
      // Pinch: the other finger stays.
      const [ox, oy] = others[0][1];
      const distance = (x, y) => Math.hypot(x - ox, y - oy) || 1;
      app.view.zoom(distance(px, py) / distance(...before), ox, oy, this.paneAt(ox, oy).box);
    } else {
      app.view.pan(px - before[0], py - before[1]);
    }
    app.view.hold(app.image ?? { width: 0, height: 0 });
    app.tell("view");
  }

  #click(event) {
    const { app } = this;
    const place = this.#place(event);
    this.activate(this.paneAt(...place).pane);
    const pixel = this.pixelAt(...place);
    const same = app.pinned && pixel && pixel.x === app.pixel.x && pixel.y === app.pixel.y;
    app.setPixel(pixel, !same);
  }

  #listenToDivider() {
    const { app, divider, stage } = this;
    const place = () => {
      divider.hidden = app.mode !== "swipe";
      divider.style.left = `${100 * app.swipe}%`;
      divider.setAttribute("aria-valuenow", Math.round(100 * app.swipe));
    };
    const move = (share) => {
      app.swipe = Math.min(1, Math.max(0, share));
      place();
      app.tell("panes");
    };
    divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
    divider.addEventListener("pointermove", (event) => {
      if (divider.hasPointerCapture(event.pointerId)) move(this.#place(event)[0] / stage.clientWidth);
    });
    divider.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      move(app.swipe + step);
    });
    app.on("panes", place);
    place();
  }

  background() {
    const color = getComputedStyle(this.stage).backgroundColor;
    return color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }
}
