// The frames of a sequence: scrub, play, and see how much moves and how sure that is.

import { number } from "./charts.js";
import { element } from "./heads.js";

const PICTURES = 40; // CSS pixels of height of the small pictures
const BARS = 26;

export class Timeline {
  #queued = false;

  #small = new Map(); // small pictures by "source frame"

  constructor(app, store, box) {
    Object.assign(this, { app, store, box });
    this.play = element("button", {
      type: "button", className: "quiet", title: "Play (space)", ariaLabel: "Play", onclick: () => this.toggle(),
    }, "▶");
    this.canvas = element("canvas", {
      tabIndex: 0, role: "slider", ariaLabel: "Frame", title: "Drag to scrub; bars: mean length of the flow, bright: confident",
    });
    this.words = element("output", { className: "soft" });
    box.append(this.play, this.canvas, this.words);
    const move = (event) => {
      const area = this.canvas.getBoundingClientRect();
      const pairs = app.source.frames - 1;
      app.setIndex(Math.floor(((event.clientX - area.left) / area.width) * pairs));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.stop();
      move(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.canvas.hasPointerCapture(event.pointerId)) move(event);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const last = app.source.frames - 2;
      const to = { ArrowLeft: app.index - 1, ArrowRight: app.index + 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      app.setIndex(to);
    });
    app.on("sources panes runs", () => this.redraw());
    app.on("sources", () => {
      if (this.shown !== app.source?.id) this.stop();
      this.shown = app.source?.id;
    });
    new ResizeObserver(() => this.redraw()).observe(box);
  }

  toggle() {
    if (this.timer) return this.stop();
    const { app } = this;
    if (!(app.source?.frames > 2)) return undefined;
    const times = app.source.times;
    const seconds = times?.length > 1 ? (times.at(-1) - times[0]) / (times.length - 1) : 1 / 12;
    this.play.textContent = "❚❚";
    this.timer = setInterval(() => {
      app.setIndex(app.index + 1 > app.source.frames - 2 ? 0 : app.index + 1);
    }, Math.max(40, 1000 * seconds));
    return undefined;
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶";
  }

  redraw() {
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      this.#draw();
    });
  }

  #draw() {
    const { app, canvas } = this;
    const { source } = app;
    this.box.hidden = !(source?.frames > 2);
    if (this.box.hidden) return;
    const ratio = globalThis.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = PICTURES + BARS;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const pairs = source.frames - 1;
    const step = width / pairs;
    this.#pictures(context, source, width);
    const run = app.panes[app.active].run;
    const metas = [...(run?.results ?? [])].map(([index, id]) => [index, app.data.meta(id)]);
    const longest = Math.max(1e-6, ...metas.map(([, meta]) => meta?.summary?.mean_length ?? 0));
    for (const [index, meta] of metas) {
      const share = (meta?.summary?.mean_length ?? 0) / longest;
      const certain = meta?.confidence ?? 0.5;
      context.fillStyle = style.getPropertyValue("--accent");
      context.globalAlpha = 0.2 + 0.8 * certain;
      const bar = Math.max(2, share * (BARS - 6));
      context.fillRect(index * step, height - bar, Math.max(1, step - (step > 3 ? 1 : 0)), bar);
    }
    context.globalAlpha = 1;
    for (const index of run?.cuts ?? []) {
      context.fillStyle = style.getPropertyValue("--bad");
      context.fillRect((index + 0.5) * step - 1, 0, 2, height);
    }
    context.strokeStyle = style.getPropertyValue("--ink");
    context.lineWidth = 2;
    context.strokeRect(app.index * step + 1, 1, Math.max(3, step - 2), height - 2);
    const time = source.times ? ` · ${number(source.times[app.index])} s` : "";
    const cut = run?.cuts.has(app.index) ? " · cut" : "";
    this.words.textContent = `${app.index + 1}–${app.index + 2} of ${source.frames}${time}${cut}`;
    for (const [name, value] of [["min", 1], ["max", pairs], ["now", app.index + 1]]) {
      canvas.setAttribute(`aria-value${name}`, value);
    }
    canvas.setAttribute("aria-valuetext", this.words.textContent);
  }

  #pictures(context, source, width) {
    const each = Math.max(24, (PICTURES * source.width) / source.height);
    const count = Math.max(1, Math.min(source.frames, Math.floor(width / each)));
    for (let k = 0; k < count; k++) {
      const frame = Math.floor((k / count) * source.frames);
      const picture = this.#picture(source, frame);
      if (picture) context.drawImage(picture, (k * width) / count, 0, width / count, PICTURES);
    }
  }

  #picture(source, frame) {
    const key = `${source.id} ${frame}`;
    if (!this.#small.has(key)) {
      this.#small.set(key, null);
      this.store.frame(source.id, frame, 120).then((picture) => {
        this.#small.set(key, picture);
        this.redraw();
      }, () => {});
    }
    return this.#small.get(key);
  }
}
