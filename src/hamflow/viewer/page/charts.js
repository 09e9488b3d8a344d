// Small charts: the curves of a pixel, the map of distances around its match, and how the joint
// model converges.

import { element } from "./heads.js";

const WIDTH = 340; // of the drawing; it is scaled to the panel

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Round numbers that divide a range into about `count` parts. */
export function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

export const number = (value, digits = 2) =>
  Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–";

const path = (xs, ys, x, y) => xs.map((at, k) => `${k ? "L" : "M"}${x(at).toFixed(1)} ${y(ys[k]).toFixed(1)}`).join("");

/** The curves of one component: costs, slacks, and the choices. */
export class Curve {
  constructor(component) {
    this.component = component;
    this.height = 132;
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${this.height}`, role: "img", class: "curve" });
    this.reading = element("span", { className: "reading" });
    this.box = element("figure", { className: "chart" },
      element("figcaption", {},
        element("span", {}, "c", element("sup", {}, component)), this.reading),
      this.drawing);
    this.drawing.addEventListener("pointermove", (event) => this.#read(event));
    this.drawing.addEventListener("pointerleave", () => this.#rest());
  }

  show(curve, flow) {
    this.curve = curve;
    const { labels, cost, prior, wta, crf } = curve;
    // Only differences between slacks mean something: the least is drawn at 0.
    const least = curve.slack ? Math.min(...curve.slack) : 0;
    const slack = curve.slack?.map((value) => value - least) ?? null;
    this.slack = slack;
    const inner = { left: 26, right: WIDTH - 6, top: 6, bottom: this.height - 18 };
    const all = [0, ...cost, ...(slack ?? [])];
    const [low, high] = [Math.min(...all), Math.max(...all, 1)];
    const [first, last] = [labels[0], labels.at(-1)];
    const x = (label) => inner.left + ((label - first) / (last - first || 1)) * (inner.right - inner.left);
    const y = (value) => inner.bottom - ((value - low) / (high - low)) * (inner.bottom - inner.top);
    Object.assign(this, { x, inner });
    const parts = [];
    for (const tick of ticks(low, high, 4)) {
      parts.push(svg("line", { class: "grid", x1: inner.left, x2: inner.right, y1: y(tick), y2: y(tick) }));
      parts.push(text(inner.left - 4, y(tick) + 3.5, `${tick}`.replace("-", "−"), "end"));
    }
    const apart = ticks(first, last, 6).filter((tick) => Number.isInteger(tick));
    for (const tick of apart) {
      parts.push(text(x(tick), this.height - 5, `${tick}`.replace("-", "−"), "middle"));
    }
    if (first <= 0 && last >= 0) {
      parts.push(svg("line", { class: "grid", x1: x(0), x2: x(0), y1: inner.top, y2: inner.bottom }));
    }
    if (Number.isFinite(flow) && flow >= first && flow <= last) {
      parts.push(svg("line", { class: "flow-line", x1: x(flow), x2: x(flow), y1: inner.top, y2: inner.bottom }));
    }
    if (slack) {
      const area = `${path(labels, slack, x, y)}L${x(last)} ${y(low)}L${x(first)} ${y(low)}Z`;
      parts.push(svg("path", { class: "slack-area", d: area }));
      parts.push(svg("path", { class: "slack", d: path(labels, slack, x, y) }));
    }
    if (prior?.some((value) => value > 0)) {
      parts.push(svg("path", { class: "prior", d: path(labels, prior, x, y) }));
    }
    parts.push(svg("path", { class: "cost", d: path(labels, cost, x, y) }));
    const [wx, wy] = [x(labels[wta]), y(cost[wta])];
    parts.push(svg("path", { class: "wta", d: `M${wx} ${wy - 5}l5 5l-5 5l-5 -5Z` }));
    if (crf !== null && crf !== undefined) {
      const value = slack ? slack[crf] : cost[crf];
      parts.push(svg("circle", { class: "crf", cx: x(labels[crf]), cy: y(value), r: 4.5 }));
    }
    this.cursor = svg("line", { class: "cursor", y1: inner.top, y2: inner.bottom, x1: -9, x2: -9 });
    parts.push(this.cursor);
    this.drawing.replaceChildren(...parts);
    this.drawing.setAttribute("aria-label", `Costs of ${labels.length} labels from ${first} to ${last} pixels. ${this.#choices()}`);
    this.#rest();
  }

  #choices() {
    const { labels, cost, wta, crf } = this.curve;
    const { slack } = this;
    const chosen = crf === null || crf === undefined ? ""
      : ` · CRF ${number(labels[crf], 0)} px${slack ? ` (+${number(slack[crf], 1)})` : ""}`;
    return `WTA ${number(labels[wta], 0)} px (${number(cost[wta], 0)})${chosen}`;
  }

  #rest() {
    this.cursor?.setAttribute("visibility", "hidden");
    if (this.curve) this.reading.textContent = this.#choices();
  }

  #read(event) {
    if (!this.curve) return;
    const { labels, cost, prior } = this.curve;
    const { slack } = this;
    const area = this.drawing.getBoundingClientRect();
    const at = ((event.clientX - area.left) / area.width) * WIDTH;
    const share = (at - this.inner.left) / (this.inner.right - this.inner.left);
    const k = Math.min(labels.length - 1, Math.max(0, Math.round(share * (labels.length - 1))));
    for (const name of ["x1", "x2"]) this.cursor.setAttribute(name, this.x(labels[k]));
    this.cursor.setAttribute("visibility", "visible");
    this.reading.textContent = [
      `${this.component} = ${number(labels[k], 0)} px: ${number(cost[k], 0)} bits`,
      slack && `slack +${number(slack[k], 1)}`,
      prior?.[k] && `prior ${number(prior[k], 1)}`,
    ].filter(Boolean).join(", ");
  }
}

function text(x, y, words, anchor) {
  return svg("text", { x, y, "text-anchor": anchor }, words);
}

/** Hamming distances around the match as a heat map: dark is similar. */
export class HeatMap {
  constructor() {
    this.canvas = element("canvas", { role: "img", className: "heat" });
    this.reading = element("span", { className: "reading" });
    this.box = element("figure", { className: "lens", title: "Hamming distance to the targets around the match; dark is similar" },
      this.canvas, element("figcaption", {}, this.reading));
    this.canvas.addEventListener("pointermove", (event) => this.#read(event));
    this.canvas.addEventListener("pointerleave", () => this.#rest());
  }

  /** `marks` are [u, v, kind] in pixels of the images. */
  show(map, bits, flow, marks) {
    Object.assign(this, { map, bits });
    const side = map.cost.length;
    const cell = 12;
    const { canvas } = this;
    if (canvas.width !== 2 * cell * side) canvas.width = canvas.height = 2 * cell * side;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.setTransform(2, 0, 0, 2, 0, 0);
    const style = getComputedStyle(document.documentElement);
    map.cost.forEach((row, j) => row.forEach((cost, i) => {
      context.fillStyle = heat(cost / (bits / 2));
      context.fillRect(i * cell, j * cell, cell, cell);
    }));
    const step = map.labels_u[1] - map.labels_u[0] || 1;
    const place = (u, v) => [
      ((u - map.labels_u[0]) / step + 0.5) * cell, ((v - map.labels_v[0]) / step + 0.5) * cell,
    ];
    context.lineWidth = 1.5;
    for (const [u, v, kind] of marks) {
      const [x, y] = place(u, v);
      context.strokeStyle = context.fillStyle = style.getPropertyValue(`--${kind}`);
      context.beginPath();
      if (kind === "crf") context.arc(x, y, 4.5, 0, 2 * Math.PI);
      else for (const [dx, dy] of [[0, -5], [5, 0], [0, 5], [-5, 0], [0, -5]]) context.lineTo(x + dx, y + dy);
      context.lineWidth = 3.5;
      context.strokeStyle = "rgb(0 0 0 / 70%)";
      context.stroke();
      context.lineWidth = 1.75;
      context.strokeStyle = context.fillStyle;
      context.stroke();
    }
    const [fx, fy] = place(...flow);
    context.strokeStyle = "#fff";
    context.lineWidth = 1.25;
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [0, 1]]) {
      context.moveTo(fx - 4 * dx, fy - 4 * dy);
      context.lineTo(fx + 4 * dx, fy + 4 * dy);
    }
    context.stroke();
    canvas.setAttribute("aria-label", `Hamming distances of ${side} by ${side} targets around (${map.around.join(", ")}) pixels`);
    this.#rest();
  }

  #rest() {
    if (!this.map) return;
    const all = this.map.cost.flat();
    this.reading.textContent = `${number(Math.min(...all), 0)}–${number(Math.max(...all), 0)} of ${this.bits} bits`;
  }

  #read(event) {
    if (!this.map) return;
    const area = this.canvas.getBoundingClientRect();
    const side = this.map.cost.length;
    const index = (part, size) => Math.min(side - 1, Math.max(0, Math.floor((part / size) * side)));
    const i = index(event.clientX - area.left, area.width);
    const j = index(event.clientY - area.top, area.height);
    const { labels_u: u, labels_v: v, cost } = this.map;
    this.reading.textContent = `(${number(u[i], 0)}, ${number(v[j], 0)}): ${number(cost[j][i], 0)} bits`;
  }
}

// Dark violet for equal bits to pale yellow for chance, even in brightness.
const HEAT = [[28, 10, 60], [92, 30, 118], [172, 54, 108], [236, 106, 78], [252, 178, 110], [252, 240, 200]];

function heat(share) {
  const at = Math.min(1, Math.max(0, share)) * (HEAT.length - 1);
  const k = Math.min(HEAT.length - 2, Math.floor(at));
  const [r, g, b] = HEAT[k].map((start, c) => Math.round(start + (at - k) * (HEAT[k + 1][c] - start)));
  return `rgb(${r} ${g} ${b})`;
}

/** Steps by scale and direction: where the bound was after each pass, and the energy of labels. */
function searches(history, passes) {
  const groups = new Map();
  const of = ({ scale, direction }) => {
    const key = `${scale ?? ""} ${direction ?? ""}`;
    if (!groups.has(key)) groups.set(key, { scale, direction, bounds: [], energies: [] });
    return groups.get(key);
  };
  for (const step of passes.length ? passes : history) of(step).bounds.push([step.iteration, step.bound]);
  for (const step of history) {
    const { bounds, energies } = of(step);
    // Labels are found after the last pass of an iteration.
    const at = bounds.findLastIndex(([iteration]) => iteration <= step.iteration);
    energies.push([Math.max(0, at), step.energy]);
  }
  return [...groups.values()];
}

/**
 * Bound and energy as they converge, a group for each scale and direction: each in percent above
 * its last bound, so that groups of different sizes can be read on one axis.
 */
export function convergence(history, passes = []) {
  const height = 96;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", class: "curve" });
  const groups = searches(history, passes);
  const inner = { left: 34, right: WIDTH - 6, top: 8, bottom: height - 18 };
  for (const group of groups) {
    const last = group.bounds.at(-1)[1];
    const percent = (value) => (100 * (value - last)) / (Math.abs(last) || 1);
    group.rows = {
      bound: group.bounds.map(([, value], k) => [k, percent(value)]),
      energy: group.energies.map(([k, value]) => [k, percent(value)]),
    };
  }
  const values = groups.flatMap(({ rows }) => [...rows.bound, ...rows.energy].map(([, value]) => value));
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low + 1e-3);
  const y = (value) => inner.bottom - ((value - low) / (high - low)) * (inner.bottom - inner.top);
  for (const tick of ticks(low, high, 3)) {
    drawing.append(svg("line", { class: "grid", x1: inner.left, x2: inner.right, y1: y(tick), y2: y(tick) }));
    drawing.append(text(inner.left - 4, y(tick) + 3.5, `${Number(tick.toPrecision(3))}`.replace("-", "−"), "end"));
  }
  const slot = (inner.right - inner.left) / Math.max(groups.length, 1);
  groups.forEach((group, g) => {
    const count = group.bounds.length;
    const x = (k) => inner.left + slot * (g + 0.12 + 0.76 * (count > 1 ? k / (count - 1) : 0.5));
    for (const [name, rows] of Object.entries(group.rows)) {
      const xs = rows.map(([k]) => k);
      drawing.append(svg("path", { class: name, d: path(xs, rows.map(([, value]) => value), x, y) }));
      const dots = name === "energy" || count === 1 ? rows : rows.slice(-1);
      for (const [k, value] of dots) {
        drawing.append(svg("circle", { class: `${name}-dot`, cx: x(k), cy: y(value), r: 2.6 }));
      }
    }
    const words = [group.scale ? `1/${group.scale}` : "", group.direction ?? ""].join(" ").trim();
    drawing.append(text(inner.left + slot * (g + 0.5), height - 5, words || "matching scale", "middle"));
  });
  // The certificate of a result is that of its forward search.
  const last = history.findLast((step) => step.direction !== "backward");
  const gap = last && (last.energy - last.bound) / (Math.abs(last.bound) || 1);
  drawing.setAttribute("aria-label", last
    ? `Bound ${last.bound.toFixed(0)}, energy ${last.energy.toFixed(0)}, gap ${(100 * gap).toFixed(2)} percent`
    : "The bound of the joint model after each pass");
  const key = (name) => [element("i", { className: `key ${name}-key` }), `${name} `];
  return element("figure", { className: "chart" },
    element("figcaption", {},
      element("span", { title: "In percent above the last bound of each search" }, ...key("energy"), ...key("bound"), "(%)"),
      element("span", { className: "reading" }, last ? `gap ${number(100 * gap)} %` : "")),
    drawing);
}
