// What is known of a result as a whole, and the files that can be saved of it.

import { convergence, number } from "./charts.js";
import { element } from "./heads.js";

const percent = (share) => `${number(100 * share, 1)} %`;

export class Summary {
  constructor(app, store, elements) {
    Object.assign(this, { app, store, ...elements });
    app.on("panes runs", () => this.update());
    this.menu.addEventListener("toggle", () => this.menu.open && this.#offer());
    document.addEventListener("click", (event) => {
      if (!this.menu.contains(event.target)) this.menu.open = false;
    });
  }

  update() {
    const { app } = this;
    const meta = app.source && app.metaOf(app.panes[app.active]);
    this.section.hidden = !meta;
    this.menu.hidden = !app.source;
    if (!meta || this.shown === meta) return;
    this.shown = meta;
    this.name.textContent = app.panes[app.active].run.label;
    const [u0, du, v0, dv] = meta.window ?? [];
    const seconds = Object.values(meta.timings ?? {}).reduce((sum, value) => sum + value, 0);
    const rows = [
      meta.cut && ["Cut", "the frames show different scenes"],
      meta.error && ["Mean error", `${number(meta.error.epe)} px`],
      meta.occluded !== null && meta.occluded !== undefined && ["Occluded", percent(meta.occluded)],
      Number.isFinite(meta.confidence) && ["Confidence", `${number(meta.confidence)} on average`],
      meta.summary && ["Flow", `${number(meta.summary.mean_length)} px on average, up to ${number(meta.summary.longest, 1)}`],
      meta.window && ["Window", `${number(u0, 0)} to ${number(u0 + du - 1, 0)}, ${number(v0, 0)} to ${number(v0 + dv - 1, 0)} px`],
      meta.scale && ["Matched at", meta.scale === 1 ? "full size" : `1/${meta.scale} of the size`],
      Number.isFinite(meta.gap) && meta.gap !== null && ["Duality gap", `${number(100 * meta.gap)} %`],
      seconds > 0 && ["Time", `${number(seconds)} s`],
    ].filter(Boolean);
    const table = element("dl", { className: "numbers" }, ...rows.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    const parts = [table];
    const trace = app.panes[app.active].run.traces?.get(app.index);
    if (trace) parts.push(convergence(trace.history, trace.passes));
    else if (meta.history?.length) parts.push(convergence(meta.history));
    if (seconds > 0) parts.push(stages(meta.timings, seconds));
    this.box.replaceChildren(...parts);
  }

  #offer() {
    const { app } = this;
    const { result, source } = app;
    const base = source.name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+/, "") || "flow";
    const others = new Set(app.shownPanes.map((pane) => app.resultOf(pane)).filter(Boolean));
    others.delete(result);
    const files = result ? this.store.downloads(result, base, app.asView(), [...others]) : [];
    files.push({ label: "This view (.png)", name: `${base}-view.png`, url: () => this.#snapshot() });
    this.downloads.replaceChildren(...files.map((file) => element("button", {
      type: "button", onclick: () => this.#save(file),
    }, file.label)));
  }

  async #save({ url, name }) {
    this.menu.open = false;
    try {
      const link = element("a", { href: await url(), download: name });
      document.body.append(link);
      link.click();
      link.remove();
    } catch (error) {
      this.say(error.message);
    }
  }

  /** The stage as it is: pictures, and what is drawn over them. */
  async #snapshot() {
    this.stage.draw();
    const { canvas } = this.stage.renderer;
    const sheet = new OffscreenCanvas(canvas.width, canvas.height);
    const context = sheet.getContext("2d");
    context.drawImage(canvas, 0, 0);
    context.drawImage(this.stage.drawing, 0, 0);
    return URL.createObjectURL(await sheet.convertToBlob());
  }
}

/** Where the time went, as one bar. */
function stages(timings, seconds) {
  const parts = Object.entries(timings).filter(([, value]) => value > 0);
  const bar = element("div", { className: "times" }, ...parts.map(([name, value], k) => {
    const part = element("i", { title: `${name}: ${number(value)} s`, className: `t${k % 6}` });
    part.style.flexGrow = value / seconds;
    return part;
  }));
  const keys = element("p", { className: "keys soft" }, ...parts
    .map(([name, value], k) => [name, value, k])
    .sort((a, b) => b[1] - a[1])
    .slice(0, 6)
    .map(([name, value, k]) => element("span", {}, element("i", { className: `key t${k % 6}` }), `${name} ${number(value)} s`)));
  return element("div", {}, bar, keys);
}
