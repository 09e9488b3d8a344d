// The legend on the stage: the color wheel with its maximum, or the key of another layer.

import { css, drawWheel, ERROR_COLORS, ERROR_LIMITS } from "./colors.js";
import { element } from "./heads.js";
import { usesWheel } from "./layers.js";

export class Legend {
  constructor(app, elements) {
    Object.assign(this, { app, ...elements });
    drawWheel(this.wheel);
    this.input.addEventListener("input", () => this.#set(Number(this.input.value)));
    this.slider.addEventListener("input", () => this.#set(Number((2 ** Number(this.slider.value)).toPrecision(3))));
    this.auto.addEventListener("click", () => this.automatic());
    app.on("panes sources runs", () => this.update());
  }

  #set(value) {
    if (!(value > 0)) return;
    this.app.full = value;
    this.app.tell("panes");
  }

  automatic() {
    this.app.full = null;
    this.app.tell("panes");
  }

  update() {
    const { app } = this;
    const shown = app.source ? app.shownPanes.map((pane) => app.layerOf(pane)) : [];
    const active = app.source ? app.layerOf(app.panes[app.active]) : null;
    const wheel = shown.some(usesWheel) && !["error", "confidence"].includes(active);
    const strip = ["error", "confidence", "occlusion"].includes(active) && active;
    this.legend.hidden = !wheel && !strip;
    this.wheel.hidden = this.controls.hidden = !wheel;
    this.strip.hidden = wheel || !strip;
    if (wheel) {
      const full = app.fullColor;
      // Not while it is being typed.
      if (document.activeElement !== this.input) this.input.value = Number(full.toPrecision(3));
      if (document.activeElement !== this.slider) this.slider.value = Math.log2(full);
      this.slider.min = -3;
      this.slider.max = Math.ceil(Math.log2(Math.hypot(app.source.width, app.source.height)));
      this.auto.disabled = app.full === null;
    } else if (strip && this.strip.dataset.shown !== strip) {
      this.strip.dataset.shown = strip;
      this.strip.replaceChildren(...keys(strip));
    }
  }
}

function keys(layer) {
  const swatch = (color, words) => element("div", { className: "swatch" }, colored(color), words);
  if (layer === "occlusion") {
    return [swatch("rgb(255 115 26)", "hidden in frame 2"), swatch("rgb(120 120 120)", "visible")];
  }
  if (layer === "confidence") {
    const rows = [[1, "certain"], [0.9, "about 0.1 px off"], [0.5, "1 px"], [0.25, "3 px"], [0.05, "19 px and more"]];
    return rows.map(([c, words]) => swatch(css(Array(3).fill(Math.round(255 * c))), words));
  }
  return ERROR_COLORS.map((color, k) =>
    swatch(css(color), k < ERROR_LIMITS.length ? `< ${Number(ERROR_LIMITS[k].toPrecision(2))}${k ? "" : " px"}` : `≥ ${ERROR_LIMITS.at(-1)}`));
}

function colored(color) {
  const box = element("i", {});
  box.style.background = color;
  return box;
}
