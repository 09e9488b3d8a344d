// The colors of hamflow.visualize: the Middlebury wheel and the steps of error maps.
// A test compares them with Python's, pixel by pixel.

const STEPS = [15, 6, 4, 11, 13, 6];
const HUES = [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [1, 0, 0]];

/** The 55 colors of the wheel, 0 to 255; the last is the first, which closes the circle. */
export const WHEEL = (() => {
  const wheel = [];
  STEPS.forEach((steps, k) => {
    for (let i = 0; i < steps; i++) {
      const ramp = Math.floor((255 * i) / steps);
      wheel.push(HUES[k].map((start, c) => 255 * start + ramp * (HUES[k + 1][c] - start)));
    }
  });
  wheel[wheel.length - 1] = wheel[0];
  return wheel;
})();

/** The color of a vector, as hamflow.flow_to_color: `full` pixels and more have full color. */
export function flowColor(u, v, full) {
  if (!(Number.isFinite(u) && Number.isFinite(v))) return [0, 0, 0];
  const scale = full + 1e-5;
  const radius = Math.min(Math.hypot(u, v) / scale, 1);
  const position = ((Math.atan2(-v, -u) / Math.PI + 1) / 2) * (WHEEL.length - 1);
  const before = Math.floor(position);
  const after = (before + 1) % WHEEL.length;
  const share = position - before;
  return [0, 1, 2].map((c) => {
    const hue = ((1 - share) * WHEEL[before][c] + share * WHEEL[after][c]) / 255;
    return Math.floor(255 * (1 - radius * (1 - hue)));
  });
}

/** Limits in pixels between the colors of an error map; 3 px is where blue ends. */
export const ERROR_LIMITS = [0.1875, 0.375, 0.75, 1.5, 3, 6, 12, 24, 48];
export const ERROR_COLORS = [
  [49, 54, 149], [69, 117, 180], [116, 173, 209], [171, 217, 233], [224, 243, 248],
  [254, 224, 144], [253, 174, 97], [244, 109, 67], [215, 48, 39], [165, 0, 38],
];
/** Where the true flow is unknown; the estimated flow always is known. */
const ERROR_UNKNOWN = [0, 0, 0];

export function errorColor(error) {
  if (!Number.isFinite(error)) return ERROR_UNKNOWN;
  return ERROR_COLORS[ERROR_LIMITS.filter((limit) => error >= limit).length];
}

export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

/** Draw the wheel as a disk that fills a square canvas: full color is its rim. */
export function drawWheel(canvas) {
  const side = canvas.width;
  const context = canvas.getContext("2d");
  const picture = context.createImageData(side, side);
  const radius = side / 2;
  for (let y = 0, at = 0; y < side; y++) {
    for (let x = 0; x < side; x++, at += 4) {
      const u = (x + 0.5 - radius) / radius;
      const v = (y + 0.5 - radius) / radius;
      picture.data.set(flowColor(u, v, 1), at);
      // The edge fades over one pixel, so that it is smooth.
      picture.data[at + 3] = 255 * Math.min(1, Math.max(0, (1 - Math.hypot(u, v)) * radius + 0.5));
    }
  }
  context.putImageData(picture, 0, 0);
}
