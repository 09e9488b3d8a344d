// Bringing images and estimating their flow: only with a server.

import { convergence, number } from "./charts.js";
import { element, options } from "./heads.js";

const OVER = ["done", "failed", "canceled"];
const FLOWS = /\.(flo|pfm|flo5|npy|kitti\.png)$/i;

/** What a run is called: its preset, and its window if it was given. */
function runLabel({ preset, window }) {
  return window === "auto" || window === undefined || window === null ? preset : `${preset}, D = ${window}`;
}

export class Runs {
  constructor(app, store, say, elements) {
    Object.assign(this, { app, store, say, ...elements });
    this.cards = new Map();
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    this.preset.addEventListener("change", () => this.#describe());
    app.on("sources", () => {
      this.stretch.hidden = !(app.source?.frames > 2);
      this.button.disabled = !(app.source?.frames > 1);
    });
  }

  setUp(info) {
    this.info = info;
    options(this.preset, info.presets.map((preset) => [preset.name, preset.name]), "balanced");
    if (!this.preset.value) this.preset.selectedIndex = 0;
    this.#describe();
  }

  #describe() {
    const chosen = this.info.presets.find((preset) => preset.name === this.preset.value);
    this.presetText.textContent = chosen?.text ?? "";
  }

  async start() {
    const { app } = this;
    if (!(app.source?.frames > 1)) return;
    const text = this.windowInput.value.trim() || "auto";
    const window = text === "auto" ? "auto" : Number(text);
    if (window !== "auto" && !(Number.isInteger(window) && window > 0)) {
      this.say("The window must be auto or a whole number of pixels, such as 128.");
      this.windowInput.focus();
      return;
    }
    const all = !this.stretch.hidden && this.which.value === "all";
    const what = { source: app.source.id, preset: this.preset.value, window };
    if (all) Object.assign(what, { first: 0, last: app.source.frames - 1 });
    else what.index = app.index;
    try {
      this.follow(await this.store.run(what), true);
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Show a job and what comes of it. */
  follow(job, show = false) {
    this.show(job, show);
    if (!OVER.includes(job.state)) this.store.watch(job.id, (news) => this.show(news, show));
  }

  show(job, show) {
    this.#results(job, show);
    this.#card(job);
  }

  #results(job, show) {
    const { app } = this;
    const ready = Object.entries(job.results ?? {});
    if (!ready.length) return;
    const key = `${job.source} ${runLabel(job)}`;
    let run = app.runs.find((each) => each.key === key);
    const created = !run;
    if (!run) {
      run = { key, source: job.source, label: runLabel(job), results: new Map(), cuts: new Set(), traces: new Map() };
      app.runs.push(run);
    }
    let news = created;
    for (const [index, id] of ready) {
      news ||= run.results.get(Number(index)) !== id;
      run.results.set(Number(index), id);
    }
    for (const index of job.cuts ?? []) run.cuts.add(index);
    const newest = trace(job);
    if (newest.passes.length) run.traces.set(newest.index, newest);
    if (!news) return;
    if (show && created && app.source?.id === job.source) {
      // The new result takes the marked pane; the other pane keeps what it is compared with.
      const comparing = app.mode !== "one";
      app.panes.forEach((pane, k) => {
        if (!pane.run || app.mode === "grid" || (comparing ? k === app.active : k === 0)) pane.run = run;
      });
    } else {
      for (const pane of app.panes) if (!pane.run && app.source?.id === job.source) pane.run = run;
    }
    app.tell("runs");
    app.tell("panes");
  }

  #card(job) {
    let card = this.cards.get(job.id);
    if (!card) {
      // What is over has been seen when the next one begins.
      for (const old of [...this.jobs.children]) if (OVER.includes(old.dataset.state)) old.remove();
      const bar = element("progress", { max: 1, ariaLabel: "Progress of the estimate" });
      const words = element("span", { className: "state" });
      const cancel = element("button", {
        type: "button", className: "quiet", title: "Cancel this estimate", onclick: () => this.#cancel(job.id),
      }, "Cancel");
      const chart = element("div", {});
      const box = element("article", { className: "job" },
        element("header", {}, element("b", {}, runLabel(job)), words, cancel), bar, chart);
      card = { box, bar, words, cancel, chart, steps: 0 };
      this.cards.set(job.id, card);
      this.jobs.prepend(box);
    }
    card.box.dataset.state = job.state;
    card.bar.value = job.share ?? 0;
    card.bar.hidden = card.cancel.hidden = OVER.includes(job.state);
    card.words.textContent = stateText(job);
    // What has converged is shown with the result.
    const { history, passes } = trace(job);
    const steps = job.state === "running" ? history.length + passes.length : 0;
    if (steps !== card.steps) {
      card.steps = steps;
      card.chart.replaceChildren(...(steps ? [convergence(history, passes)] : []));
    }
    if (job.state === "failed" && !card.told) {
      card.told = true;
      this.say(job.error);
    }
  }

  async #cancel(id) {
    try {
      await this.store.cancel(id);
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Send files that were dropped or chosen, and show them. */
  async open(files) {
    const all = [...files];
    // A flow file beside images is their true flow.
    const truth = all.length > 1 ? all.find((file) => FLOWS.test(file.name)) : null;
    const rest = all.filter((file) => file !== truth)
      .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    if (!rest.length) return;
    const bytes = all.reduce((sum, file) => sum + file.size, 0);
    const limit = this.info?.limits?.upload_bytes;  // the server refuses, too
    if (limit && bytes > limit) {
      this.say(`The files have ${megabytes(bytes)}; at most ${megabytes(limit)} can be sent. Use smaller images, or name them on the command line of hamflow serve.`);
      return;
    }
    const close = this.say("Sending…", { stays: true });
    try {
      const source = await this.store.upload(rest, truth, (share) => close.text(`Sending… ${number(100 * share, 0)} %`));
      close();
      this.app.sources = await this.store.sources();
      const shown = this.app.sources.find((each) => each.id === source.id) ?? source;
      this.addGiven(shown);
      this.app.show(shown);
    } catch (error) {
      close();
      this.say(error.message);
    }
  }

  /** A saved result is a run of its own. */
  addGiven(source) {
    if (!source.result || this.app.runs.some((run) => run.key === source.result)) return;
    this.app.runs.push({
      key: source.result, source: source.id, label: "saved", results: new Map([[0, source.result]]), cuts: new Set(), traces: new Map(),
    });
  }
}

/** How the pair that is being solved, or was the last one, has converged. */
function trace({ history = [], passes = [] }) {
  const index = (passes.at(-1) ?? history.at(-1))?.index;
  const here = (step) => step.index === index;
  return { index, history: history.filter(here), passes: passes.filter(here) };
}

function stateText(job) {
  switch (job.state) {
    case "queued": return job.position > 0 ? `waiting, ${job.position} before it` : "waiting";
    case "running": return `${job.stage || "starting"} · ${number(100 * (job.share ?? 0), 0)} %`;
    case "failed": return job.error ?? "failed";
    case "canceled": return "canceled";
    default: return "done";
  }
}

export const megabytes = (bytes) => `${number(bytes / 2 ** 20, bytes < 10 * 2 ** 20 ? 1 : 0)} MB`;
