// The headings of the panes, the layer buttons, and the buttons for modes and zoom.

import { PANES } from "./app.js";
import { available, layerOf } from "./layers.js";

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Fill a select only if its options have changed, so that an open one stays open. */
export function options(select, rows, value) {
  const key = JSON.stringify(rows);
  if (select.dataset.rows !== key) {
    select.dataset.rows = key;
    select.replaceChildren(...rows.map(([id, label]) => new Option(label, id)));
  }
  select.value = value;
}

export class Heads {
  constructor(app, stage, { heads, layers, modes }) {
    Object.assign(this, { app, stage, layers });
    this.heads = app.panes.map((pane, k) => {
      const head = { pane };
      const run = element("select", {
        ariaLabel: `Result in pane ${k + 1}`, className: "run-choice",
        onchange: () => {
          head.pane.run = app.runs.find((each) => each.key === run.value) ?? null;
          app.tell("panes");
          app.tell("pixel");
        },
      });
      const layer = element("select", {
        ariaLabel: `Layer in pane ${k + 1}`,
        onchange: () => app.setLayer(layer.value, head.pane),
      });
      const box = element("div", { className: "head" }, element("b", {}, "ABCD"[k]), layer, run);
      box.addEventListener("pointerdown", () => stage.activate(head.pane));
      heads.append(box);
      return Object.assign(head, { box, run, layer });
    });
    this.buttons = [...modes.querySelectorAll("button")];
    for (const button of this.buttons) {
      button.setAttribute("role", "radio");
      button.addEventListener("click", () => app.setMode(button.dataset.mode));
    }
    app.on("panes sources runs blink", () => this.update());
  }

  update() {
    const { app } = this;
    for (const button of this.buttons) {
      button.setAttribute("aria-checked", button.dataset.mode === app.mode);
    }
    this.#chips();
    const boxes = new Map(this.stage.boxes().map((each) => [each.pane, each.clip ?? each.box]));
    const runs = app.runsOf(app.source);
    this.heads.forEach(({ box, run, layer, pane }, k) => {
      const area = boxes.get(pane);
      box.hidden = !area || !app.source || k >= PANES[app.mode];
      if (box.hidden) return;
      const right = app.mode === "swipe" && k === 1;
      box.style.left = right ? "" : `${area.x}px`;
      box.style.right = right ? "0" : "";
      box.style.top = `${area.y}px`;
      box.style.maxWidth = `${Math.max(90, area.width)}px`;
      box.classList.toggle("active", k === app.active && PANES[app.mode] > 1);
      box.firstChild.hidden = PANES[app.mode] === 1;
      const there = available(app.source, app.metaOf(pane));
      options(layer, there.map((each) => [each.name, each.label]), app.layerOf(pane));
      layer.hidden = PANES[app.mode] === 1;
      options(run, runs.map((each) => [each.key, each.label]), pane.run?.key ?? "");
      run.hidden = runs.length === 0 || (PANES[app.mode] === 1 && runs.length < 2);
      if (layer.hidden && run.hidden) box.hidden = true;
    });
  }

  #chips() {
    const { app, layers } = this;
    const pane = app.panes[app.active];
    const there = available(app.source, app.source && app.metaOf(pane));
    const shown = app.source ? app.layerOf(pane) : null;
    const key = there.map((layer) => layer.name).join();
    if (layers.dataset.key !== key) {
      layers.dataset.key = key;
      layers.replaceChildren(...there.map((layer, k) => element("button", {
        type: "button", role: "radio", "data-layer": layer.name, title: `${layer.text} (${(k + 1) % 10})`,
        onclick: () => app.setLayer(layer.name),
      }, layer.label)));
    }
    for (const chip of layers.children) {
      chip.setAttribute("aria-checked", chip.dataset.layer === shown);
    }
  }

  /** After the panes have been exchanged: each heading belongs to the pane at its place. */
  exchange() {
    this.heads.forEach((head, k) => { head.pane = this.app.panes[k]; });
  }

  /** Choose the layer with this number on its button, from 1. */
  choose(number) {
    const name = this.layers.children[number - 1]?.dataset.layer;
    if (layerOf(name)) this.app.setLayer(name);
  }
}
