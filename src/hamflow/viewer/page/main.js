// Puts the page together.

import { App } from "./app.js";
import { number } from "./charts.js";
import { Data } from "./data.js";
import { EmbeddedStore } from "./embedded.js";
import { Renderer } from "./gl.js";
import { element, Heads, options } from "./heads.js";
import { Inspector } from "./inspector.js";
import { Keys } from "./keys.js";
import { Legend } from "./legend.js";
import { megabytes, Runs } from "./run.js";
import { Stage } from "./stage.js";
import { ServerStore } from "./store.js";
import { Summary } from "./summary.js";
import { setUpTheme } from "./theme.js";
import { Timeline } from "./timeline.js";

const get = (id) => document.getElementById(id);

/** Show a sentence for a while; returns what removes it earlier. */
function say(sentence, { stays = false } = {}) {
  const words = element("span", {}, sentence);
  const box = element("p", {}, words);
  const close = () => box.remove();
  box.append(element("button", { type: "button", className: "quiet", ariaLabel: "Dismiss", onclick: close }, "✕"));
  get("messages").append(box);
  if (!stays) setTimeout(close, 12_000);
  close.text = (next) => words.replaceChildren(next);
  return close;
}

function makeStore() {
  const embedded = get("hamflow-data");
  return embedded ? new EmbeddedStore(JSON.parse(embedded.textContent)) : new ServerStore();
}

async function start() {
  // The token of the address has done its work when the page is there; it need not stay to be seen.
  if (location.search && !get("hamflow-data")) history.replaceState(null, "", location.pathname);
  const store = makeStore();
  document.body.classList.toggle("alone", !store.computes);
  const app = new App();
  // For the console of the browser, and for tests.
  globalThis.hamflow = { app, store };
  setUpTheme(get("theme"), () => app.tell("panes"));
  let renderer;
  try {
    renderer = new Renderer(get("picture"));
  } catch (error) {
    say(error.message, { stays: true });
    return;
  }
  get("picture").addEventListener("webglcontextlost", () => {
    say("The graphics card has lost the pictures; reload the page.", { stays: true });
  });
  const failed = new Set();
  app.data = new Data(store, renderer, () => {
    app.tell("panes");
    app.tell("pixel");
  }, (error) => {
    if (!failed.has(error.message)) say(error.message);
    failed.add(error.message);
  });
  const stage = new Stage(app, renderer, { stage: get("stage"), drawing: get("drawing"), divider: get("divider") });
  const heads = new Heads(app, stage, { heads: get("heads"), layers: get("layers"), modes: get("modes") });
  const legend = new Legend(app, {
    legend: get("legend"), wheel: get("wheel"), input: get("full"), slider: get("full-slider"),
    auto: get("full-auto"), controls: get("wheel-controls"), strip: get("scale-strip"),
  });
  const inspector = new Inspector(app, store, {
    facts: get("facts"), hint: get("hint"), where: get("where"), unpin: get("unpin"),
  });
  new Summary(app, store, { section: get("result"), name: get("result-name"), box: get("summary"), downloads: get("downloads"), menu: get("download-menu"), stage, say });
  const timeline = new Timeline(app, store, get("timeline"));
  const runs = store.computes ? new Runs(app, store, say, {
    form: get("run-form"), preset: get("preset"), windowInput: get("window"), stretch: get("stretch"),
    which: get("which"), button: get("start"), presetText: get("preset-text"), jobs: get("jobs"),
  }) : null;
  new Keys({ app, stage, heads, legend, timeline, runs, computes: store.computes }, {
    sheet: get("sheet"), help: get("help"), theme: get("theme"), files: get("files"),
  });
  get("zoom-in").addEventListener("click", () => stage.zoom(1.5));
  get("zoom-out").addEventListener("click", () => stage.zoom(1 / 1.5));
  get("zoom-fit").addEventListener("click", () => stage.toggleFit());
  setUpSources(app, store, runs);
  if (runs) setUpLoading(app, store);
  setUpReading(app);
  setUpTracks(app, store);
  Object.assign(globalThis.hamflow, { inspector, stage, renderer });
  await load(app, store, runs);
}

function setUpSources(app, store, runs) {
  const select = get("source");
  const update = () => {
    options(select, app.sources.map((source) => [source.id, title(source)]), app.source?.id ?? "");
    select.disabled = app.sources.length < 2;
    get("empty").hidden = app.sources.length > 0;
    select.hidden = !app.sources.length;
    get("remove").disabled = !app.source;
  };
  app.on("sources", update);
  select.addEventListener("change", () => app.show(app.sources.find((source) => source.id === select.value)));
  if (!runs) return;
  const files = get("files");
  for (const id of ["open", "choose"]) get(id).addEventListener("click", () => files.click());
  files.addEventListener("change", () => {
    runs.open(files.files);
    files.value = "";
  });
  get("remove").addEventListener("click", async () => {
    try {
      await store.remove(app.source.id);
      app.runs = app.runs.filter((run) => run.source !== app.source.id);
      app.sources = await store.sources();
      app.show(app.sources[0] ?? null);
    } catch (error) {
      say(error.message);
    }
  });
  const drop = get("drop");
  addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.hidden = !event.dataTransfer.types.includes("Files");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.hidden = true;
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.hidden = true;
    runs.open(event.dataTransfer.files);
  });
}

/** A video is shown while it is being decoded; its later frames arrive by and by. */
function setUpLoading(app, store) {
  let timer = null;
  const noted = new Set();
  app.on("sources", () => {
    for (const { id, note } of app.sources) {
      if (note && !noted.has(id)) say(note);
      if (note) noted.add(id);
    }
    if (timer || !app.sources.some((source) => source.loading)) return;
    timer = setTimeout(async () => {
      timer = null;
      try {
        app.sources = await store.sources();
        app.source = app.sources.find((source) => source.id === app.source?.id) ?? app.source;
        app.tell("sources");
      } catch (error) {
        say(error.message);
      }
    }, 500);
  });
}

function title(source) {
  const size = `${source.width}×${source.height}`;
  return source.frames > 2 ? `${source.name} · ${size} · ${source.frames} frames` : `${source.name} · ${size}`;
}

/** The line at the lower edge of the stage: pixel, flow and zoom. */
function setUpReading(app) {
  const reading = get("reading");
  app.on("pixel view panes", () => {
    const parts = [];
    if (app.pixel) {
      const { x, y } = app.pixel;
      parts.push(`(${x}, ${y})`);
      const flow = app.result && app.data.array(app.result, "flow");
      if (flow) parts.push(`→ ${flow.vector(x, y).map((value) => number(value)).join(", ")} px`);
    }
    if (app.source) parts.push(`${number(100 * app.view.scale, 0)} %`);
    reading.textContent = parts.join("  ");
  });
}

/** The pinned pixel of a sequence gets its track, which grows as results arrive. */
function setUpTracks(app, store) {
  let busy = false;
  const ask = async () => {
    const run = app.panes[app.active].run;
    const known = app.track && app.track.run === run && app.track.size === run.results.size;
    if (busy || known || !app.pinned || !app.result || !(app.source.frames > 2)) return;
    busy = true;
    const { result, pixel } = app;
    const size = run.results.size;
    try {
      const { points } = await store.track(result, pixel.x, pixel.y);
      if (app.pinned && app.result === result && app.pixel.x === pixel.x && app.pixel.y === pixel.y) {
        app.track = Object.assign(points, { run, size });
        app.tell("view");
      }
      busy = false;
      ask();
    } catch (error) {
      busy = false;
      say(error.message);
    }
  };
  app.on("pixel runs", ask);
}

async function load(app, store, runs) {
  try {
    const [info, sources, earlier] = await Promise.all([store.info(), store.sources(), store.runs()]);
    app.sources = sources;
    if (runs) {
      runs.setUp(info);
      sources.forEach((source) => runs.addGiven(source));
      earlier.forEach((run) => runs.follow(run.job));
      const { upload_bytes: bytes, upload_files: files, pixels } = info.limits;
      get("limits").textContent = `Up to ${files} files, ${megabytes(bytes)} together, ${number(pixels / 1e6, 0)} million pixels each. They are removed when the server ends.`;
    } else {
      app.runs = earlier.map((run) => ({
        ...run,
        results: new Map(Object.entries(run.results).map(([index, id]) => [Number(index), id])),
        cuts: new Set(run.cuts),
      }));
    }
    showNotes(info.notes);
    app.show(sources[0] ?? null);
    app.useView(store.data?.view);
  } catch (error) {
    say(error.message, { stays: true });
  }
}

function showNotes(notes) {
  if (!notes?.length) return;
  get("notes").hidden = false;
  get("notes").append(element("h2", {}, "About this page"), ...notes.map((note) => element("p", { className: "soft" }, note)));
}

start();
