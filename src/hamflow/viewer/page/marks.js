// What is drawn over the pictures: arrows, the marked pixel and its match, tracks, grid, numbers.

import { flowColor, css } from "./colors.js";

const APART = 30; // CSS pixels from one arrow to the next, about
const REACH = 1.3; // length of the longest arrows, in steps, as in hamflow.draw_arrows

/** The pixels of the image that a pane shows. */
function visible(app, box, step = 1) {
  const [x0, y0] = app.view.toImage(box.x, box.y, box);
  const [x1, y1] = app.view.toImage(box.x + box.width, box.y + box.height, box);
  return {
    x0: Math.max(0, Math.floor(x0 / step) * step),
    y0: Math.max(0, Math.floor(y0 / step) * step),
    x1: Math.min(app.image.width, Math.ceil(x1)),
    y1: Math.min(app.image.height, Math.ceil(y1)),
  };
}

export function drawGrid(context, app, box) {
  const { x0, y0, x1, y1 } = visible(app, box);
  context.beginPath();
  for (let x = x0; x <= x1; x++) {
    const [px, top] = app.view.toPane(x, y0, box);
    context.moveTo(px, top);
    context.lineTo(px, app.view.toPane(x, y1, box)[1]);
  }
  for (let y = y0; y <= y1; y++) {
    const [left, py] = app.view.toPane(x0, y, box);
    context.moveTo(left, py);
    context.lineTo(app.view.toPane(x1, y, box)[0], py);
  }
  context.strokeStyle = "rgb(128 128 128 / 35%)";
  context.lineWidth = 1;
  context.stroke();
}

/** The numbers of each pixel, where they are large enough to hold them. */
export function drawValues(context, app, box, values) {
  const { x0, y0, x1, y1 } = visible(app, box);
  context.font = "500 11px ui-monospace, Menlo, Consolas, monospace";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.strokeStyle = "rgb(255 255 255 / 75%)";
  context.fillStyle = "#111";
  for (let y = y0; y < y1; y++) {
    for (let x = x0; x < x1; x++) {
      const [px, py] = app.view.toPane(x + 0.5, y + 0.5, box);
      for (let c = 0; c < values.channels; c++) {
        const text = values.at(x, y, c).toFixed(2);
        const row = py + (c - (values.channels - 1) / 2) * 14;
        context.strokeText(text, px, row);
        context.fillText(text, px, row);
      }
    }
  }
}

export function drawArrows(context, app, box, flow) {
  const full = app.fullColor;
  // A power of two, so that arrows stay where they are when the picture is moved or zoomed a bit.
  const step = Math.max(1, 2 ** Math.round(Math.log2(APART / app.view.scale)));
  const { x0, y0, x1, y1 } = visible(app, box, step);
  const screenStep = step * app.view.scale;
  context.lineJoin = "round";
  const offset = step >> 1;
  for (let y = y0 + offset; y < y1; y += step) {
    for (let x = x0 + offset; x < x1; x += step) {
      const [u, v] = flow.vector(x, y);
      const length = Math.hypot(u, v);
      if (!Number.isFinite(length)) continue;
      const [px, py] = app.view.toPane(x + 0.5, y + 0.5, box);
      const drawn = REACH * screenStep * Math.min(1, length / full);
      context.beginPath();
      if (drawn < (REACH * screenStep) / 20) {
        context.arc(px, py, 2, 0, 2 * Math.PI);
        context.fillStyle = "#fff";
      } else {
        outline(context, px, py, u / length, v / length, drawn, screenStep);
        context.fillStyle = css(flowColor(u / length, v / length, 1));
      }
      context.strokeStyle = "#202020";
      context.lineWidth = 1.4;
      context.stroke();
      context.fill();
    }
  }
}

function outline(context, px, py, dx, dy, length, step) {
  const head = Math.min(0.6 * length, 0.45 * step);
  const half = Math.min(Math.max(0.7, step / 20), 0.12 * length);
  const wing = 0.55 * head;
  const profile = [
    [0, half], [length - head, half], [length - head, wing], [length, 0],
    [length - head, -wing], [length - head, -half], [0, -half],
  ];
  profile.forEach(([along, across], k) => {
    const x = px + along * dx - across * dy;
    const y = py + along * dy + across * dx;
    if (k) context.lineTo(x, y);
    else context.moveTo(x, y);
  });
  context.closePath();
}

/** The marked pixel and the place where it is in the other frame. */
export function drawMarks(context, app, box, second, vector) {
  const { x, y } = app.pixel;
  const from = app.view.toPane(x + 0.5, y + 0.5, box);
  const side = Math.max(app.view.scale, 7);
  const known = vector && vector.every(Number.isFinite);
  const to = known && app.view.toPane(x + vector[0] + 0.5, y + vector[1] + 0.5, box);
  if (known) {
    double(context, () => {
      context.moveTo(...from);
      context.lineTo(...to);
    }, "rgb(255 255 255 / 90%)", 1.25);
  }
  const square = ([px, py]) => () => context.rect(px - side / 2, py - side / 2, side, side);
  const ring = ([px, py]) => () => context.arc(px, py, Math.max(7, side / 2), 0, 2 * Math.PI);
  const strong = app.pinned ? "#ffd21f" : "#fff";
  const weak = "rgb(255 255 255 / 55%)";
  double(context, square(from), second ? weak : strong, 1.75);
  if (known) {
    double(context, ring(to), second ? strong : weak, 1.75);
    if (second) double(context, square(to), strong, 1.25);
  }
}

/** A line with a dark rim, to be seen on any picture. */
function double(context, path, color, width) {
  for (const [style, thickness] of [["rgb(0 0 0 / 65%)", width + 2], [color, width]]) {
    context.beginPath();
    path();
    context.strokeStyle = style;
    context.lineWidth = thickness;
    context.stroke();
  }
}

/** The track of a point; `index` is the frame that the pane shows. */
export function drawTrack(context, app, box, index) {
  const places = app.track.map((point) => app.view.toPane(point.x + 0.5, point.y + 0.5, box));
  double(context, () => {
    places.forEach((place, k) => (k ? context.lineTo(...place) : context.moveTo(...place)));
  }, "#4cc2ff", 2);
  app.track.forEach((point, k) => {
    const here = point.index === index;
    double(context, () => context.arc(...places[k], here ? 5 : 2, 0, 2 * Math.PI), here ? "#ffd21f" : "#4cc2ff", 1.5);
  });
}
