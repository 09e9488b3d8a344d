// Keyboard shortcuts, and the sheet that lists them.

import { element } from "./heads.js";

const SHEET = [
  ["Look", [
    ["1 … 9, 0", "show the layer with this number"],
    ["c  g", "two pictures side by side, four pictures"],
    ["s  b", "swipe, blink; the same key again: one picture"],
    ["x", "exchange the two pictures"],
    ["Tab", "next pane (while the pictures have the focus)"],
    ["wheel, + −", "zoom, down to single pixels and their numbers"],
    ["f", "fit the image; again: one to one"],
    ["[  ]", "less, more pixels in full color"],
    ["a", "full color as the result says"],
  ]],
  ["Understand", [
    ["click", "keep the pixel; again: release it"],
    ["← ↑ → ↓", "move the marked pixel, with Shift by 10"],
    ["Esc", "release the pixel"],
  ]],
  ["Frames of a video", [
    [",  .", "one frame back, one frame on"],
    ["space", "play, stop"],
  ]],
  ["Page", [
    ["o", "open files", true],
    ["Enter", "estimate the flow", true],
    ["t", "light or dark"],
    ["?", "this sheet"],
  ]],
];

export class Keys {
  constructor({ app, stage, heads, legend, timeline, runs, computes }, elements) {
    Object.assign(this, { app, stage, heads, legend, timeline, runs, ...elements });
    this.#fillSheet(computes);
    this.help.addEventListener("click", () => this.sheet.showModal());
    this.sheet.addEventListener("click", (event) => {
      if (event.target === this.sheet) this.sheet.close();
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || this.sheet.open) return;
      if (event.target.closest("input, select, textarea, dialog")) return;
      const onButton = event.target.closest("button, summary, a");
      if (onButton && ["Enter", " "].includes(event.key)) return;
      if (this.#press(event.key, event)) event.preventDefault();
    });
  }

  #press(key, event) {
    const { app, stage, heads, legend, timeline, runs } = this;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (/^[0-9]$/.test(key)) {
      heads.choose(Number(key) || 10);
      return true;
    }
    if (key in arrows) return this.#step(arrows[key], event.shiftKey ? 10 : 1);
    const mode = { c: "side", g: "grid", s: "swipe", b: "blink" }[key];
    if (mode) {
      app.setMode(app.mode === mode ? "one" : mode);
      return true;
    }
    const actions = {
      "+": () => stage.zoom(1.5),
      "=": () => stage.zoom(1.5),
      "-": () => stage.zoom(1 / 1.5),
      f: () => stage.toggleFit(),
      a: () => legend.automatic(),
      "[": () => this.#full(1 / 1.25),
      "]": () => this.#full(1.25),
      x: () => {
        [app.panes[0], app.panes[1]] = [app.panes[1], app.panes[0]];
        heads.exchange();
        app.tell("panes");
      },
      ",": () => app.setIndex(app.index - 1),
      ".": () => app.setIndex(app.index + 1),
      " ": () => timeline.toggle(),
      t: () => this.theme.click(),
      "?": () => this.sheet.showModal(),
      Escape: () => app.setPixel(null, false),
      o: () => runs && this.files.click(),
      Enter: () => runs?.start(),
    };
    if (key === "Tab" && event.target === stage.stage && app.shownPanes.length > 1) {
      const next = app.active + (event.shiftKey ? -1 : 1);
      // At the ends the focus goes on, so that the keyboard is never caught.
      if (next < 0 || next >= app.shownPanes.length) return false;
      app.active = next;
      app.tell("panes");
      return true;
    }
    actions[key]?.();
    return key in actions;
  }

  #full(factor) {
    this.app.full = Number((this.app.fullColor * factor).toPrecision(3));
    this.app.tell("panes");
  }

  #step([dx, dy], by) {
    const { app, stage } = this;
    if (!app.image) return false;
    const start = app.pixel ?? { x: Math.floor(app.image.width / 2), y: Math.floor(app.image.height / 2) };
    const inside = (value, size) => Math.min(size - 1, Math.max(0, value));
    const pixel = app.pixel
      ? { x: inside(start.x + by * dx, app.image.width), y: inside(start.y + by * dy, app.image.height) }
      : start;
    app.view.reveal(pixel.x + 0.5, pixel.y + 0.5, stage.boxes()[0].box);
    app.setPixel(pixel, true);
    return true;
  }

  #fillSheet(computes) {
    const groups = SHEET.map(([title, rows]) => element("section", {},
      element("h3", {}, title),
      element("dl", {}, ...rows.filter(([, , server]) => computes || !server).map(([keys, text]) =>
        element("div", {}, element("dt", {}, ...keys.split(/ {2}/).map((key) => element("kbd", {}, key))), element("dd", {}, text))))));
    const close = element("button", { type: "button", className: "quiet", onclick: () => this.sheet.close() }, "Close");
    this.sheet.append(element("header", {}, element("h2", {}, "Keyboard shortcuts"), close), element("div", { className: "columns" }, ...groups));
  }
}
