// The panel of the marked pixel: where it goes, how sure that is, and why.

import { Curve, HeatMap, number } from "./charts.js";
import { element } from "./heads.js";

const LENS = 17; // pixels of the image to a side of a magnifier

export class Inspector {
  #asked = null; // the key of the running question
  #waiting = null; // the newest one behind it

  constructor(app, store, elements) {
    Object.assign(this, { app, store, ...elements });
    this.lenses = ["frame 1", "frame 2"].map((label) => {
      const canvas = element("canvas", { width: 2 * 150, height: 2 * 150, role: "img", ariaLabel: `Magnified: the pixel in ${label}` });
      return { canvas, box: element("figure", { className: "lens" }, canvas, element("figcaption", {}, label)) };
    });
    this.table = element("dl", { className: "numbers" });
    this.others = element("div", { className: "others" });
    this.curves = { u: new Curve("u"), v: new Curve("v") };
    this.heat = new HeatMap();
    const key = (kind, name, words) => element("span", {}, element("i", { className: `${kind} ${name}-key` }), words);
    this.key = element("p", { className: "keys soft", title: "Costs, slacks and the prior are in bits; the least slack is drawn at 0" },
      key("key", "cost", "cost"), key("key", "slack", "slack"), key("key", "prior", "prior"),
      key("mark", "wta", "WTA"), key("mark", "crf", "CRF"), key("key", "flow", "flow"));
    this.why = element("div", { className: "why" }, this.key, this.curves.u.box, this.curves.v.box);
    this.whyNot = element("p", { className: "soft" });
    this.facts.append(element("div", { className: "lenses" }, ...this.lenses.map((lens) => lens.box), this.heat.box), this.table, this.others, this.why, this.whyNot);
    this.facts.hidden = true;
    this.unpin.addEventListener("click", () => app.setPixel(app.pixel, false));
    app.on("pixel panes", () => this.update());
  }

  /** What was said about the marked pixel, or null while it is asked for. */
  get answer() { return this.explained?.answer ?? null; }

  update() {
    const { app } = this;
    const { pixel } = app;
    this.hint.hidden = Boolean(pixel);
    this.facts.hidden = !pixel;
    this.unpin.hidden = !app.pinned;
    this.where.textContent = pixel ? `(${pixel.x}, ${pixel.y})` : "";
    if (!pixel) {
      this.explained = null;
      return;
    }
    const { result } = app;
    const flow = result && app.data.array(result, "flow");
    const vector = flow ? flow.vector(pixel.x, pixel.y) : null;
    this.#lenses(pixel, vector);
    const key = `${result} ${pixel.x} ${pixel.y}`;
    if (this.explained?.key !== key) this.#quick(vector);
    this.#compare();
    if (result && this.explained?.key !== key) this.#ask(key, result, pixel);
  }

  /** What is known without asking: shown at once. */
  #quick(vector) {
    if (!vector) {
      this.table.replaceChildren(row("Flow", "not estimated yet"));
      this.#hideWhy("");
      return;
    }
    this.#numbers({ flow: vector, match: [this.app.pixel.x + vector[0], this.app.pixel.y + vector[1]] });
  }

  /** Ask for the explanation; while one question is open, only the newest waits. */
  async #ask(key, result, pixel) {
    if (this.#asked) {
      if (this.#asked !== key) this.#waiting = [key, result, pixel];
      return;
    }
    this.#asked = key;
    try {
      const answer = await this.store.pixel(result, pixel.x, pixel.y);
      this.#asked = null;
      const { app } = this;
      if (key === `${app.result} ${app.pixel?.x} ${app.pixel?.y}`) this.#explain(key, answer);
    } catch (error) {
      this.#asked = null;
      this.explained = { key };
      this.#hideWhy(error.message);
    }
    const next = this.#waiting;
    this.#waiting = null;
    if (next && next[0] !== key) this.#ask(...next);
  }

  #explain(key, answer) {
    this.explained = { key, answer };
    this.#numbers(answer);
    const { u, v, hamming } = answer;
    if (!u) {
      this.#hideWhy("Costs and slacks are not kept with this result, so there are no curves.");
    } else {
      this.why.hidden = this.heat.box.hidden = false;
      this.whyNot.textContent = "";
      this.curves.u.show(u, answer.flow[0]);
      this.curves.v.show(v, answer.flow[1]);
      const marks = [[u.labels[u.wta], v.labels[v.wta], "wta"]];
      if (u.crf !== null && v.crf !== null) marks.push([u.labels[u.crf], v.labels[v.crf], "crf"]);
      this.heat.show(hamming, answer.bits, answer.flow, marks);
      const slack = Boolean(u.slack);
      this.key.classList.toggle("no-slack", !slack);
    }
    this.app.tell("explained");
  }

  #hideWhy(sentence) {
    this.why.hidden = this.heat.box.hidden = true;
    this.whyNot.textContent = sentence;
  }

  #numbers(answer) {
    const [u, v] = answer.flow;
    const rows = [
      row("Flow", `${number(u)}, ${number(v)}`, "px", `${number(Math.hypot(u, v))} px, ${number((Math.atan2(v, u) * 180) / Math.PI, 0)}°`),
      row("Match", `${number(answer.match[0], 1)}, ${number(answer.match[1], 1)}`, "px"),
    ];
    if (Number.isFinite(answer.confidence) && answer.confidence !== null) {
      const expected = answer.expected_error ?? 1 / answer.confidence - 1;
      rows.push(row("Confidence", number(answer.confidence), "", Number.isFinite(expected) ? `about ${number(expected)} px off` : "not to be trusted"));
    }
    if (answer.occluded !== undefined && answer.occluded !== null) {
      const trip = answer.round_trip ?? NaN;
      rows.push(row("In frame 2", answer.occluded ? "occluded" : "visible", "", Number.isFinite(trip) ? `there and back ${number(trip)} px` : ""));
    }
    if (answer.truth) {
      const error = Math.hypot(u - answer.truth[0], v - answer.truth[1]);
      rows.push(row("Truth", `${number(answer.truth[0])}, ${number(answer.truth[1])}`, "px", `error ${number(error)} px`));
    }
    this.table.replaceChildren(...rows);
  }

  /** The other results that are on the stage, at the same pixel. */
  #compare() {
    const { app } = this;
    const seen = new Set([app.result]);
    const lines = [];
    for (const pane of app.shownPanes) {
      const result = app.resultOf(pane);
      if (!result || seen.has(result)) continue;
      seen.add(result);
      const flow = app.data.array(result, "flow");
      const mine = app.result && app.data.array(app.result, "flow");
      if (!flow || !mine) continue;
      const [u, v] = flow.vector(app.pixel.x, app.pixel.y);
      const [a, b] = mine.vector(app.pixel.x, app.pixel.y);
      lines.push(element("p", {}, element("b", { title: pane.run.label }, pane.run.label),
        element("span", {}, `${number(u)}, ${number(v)}`, element("small", {}, " px "),
          element("span", { className: "soft" }, `${number(Math.hypot(u - a, v - b))} px apart`))));
    }
    this.others.replaceChildren(...lines);
  }

  #lenses({ x, y }, vector) {
    const { app } = this;
    const places = [[x, y], vector && [x + vector[0], y + vector[1]]];
    const loaded = [0, 1].map((k) => app.source.frames > app.index + k && Boolean(app.data.bitmap(app.source.id, app.index + k)));
    const key = JSON.stringify([app.source.id, app.index, places, loaded, app.pinned]);
    if (key === this.lensKey) return;
    this.lensKey = key;
    this.lenses.forEach(({ canvas, box }, k) => {
      const place = places[k];
      const there = app.source.frames > app.index + k && place && place.every(Number.isFinite);
      const picture = there ? app.data.bitmap(app.source.id, app.index + k) : null;
      box.hidden = app.source.frames < 2;
      // Small ones are drawn faster without the graphics card.
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.imageSmoothingEnabled = false;
      context.clearRect(0, 0, canvas.width, canvas.height);
      if (!picture) return;
      const size = canvas.width / LENS;
      // The pixel, or the place between pixels, is in the middle; only what is seen is drawn.
      const left = place[0] - (LENS - 1) / 2;
      const top = place[1] - (LENS - 1) / 2;
      const [x0, y0] = [Math.max(0, Math.floor(left)), Math.max(0, Math.floor(top))];
      const x1 = Math.min(picture.width, Math.ceil(left + LENS));
      const y1 = Math.min(picture.height, Math.ceil(top + LENS));
      if (x1 <= x0 || y1 <= y0) return;
      context.drawImage(
        picture, x0, y0, x1 - x0, y1 - y0,
        (x0 - left) * size, (y0 - top) * size, (x1 - x0) * size, (y1 - y0) * size,
      );
      const middle = (canvas.width - size) / 2;
      for (const [color, width] of [["rgb(0 0 0 / 70%)", 5], [app.pinned ? "#ffd21f" : "#fff", 2]]) {
        context.strokeStyle = color;
        context.lineWidth = width;
        context.strokeRect(middle, middle, size, size);
      }
    });
  }
}

function row(name, value, unit = "", more = "") {
  return element("div", {}, element("dt", {}, name),
    element("dd", {}, value, unit && element("small", {}, ` ${unit}`), more && element("span", { className: "soft" }, ` ${more}`)));
}
