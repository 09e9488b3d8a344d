// Layers of a result: numbers per pixel, kept as they came.

/** The number that 16 bits of a half-precision float stand for. */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const TYPES = { uint8: Uint8Array, float16: Uint16Array, float32: Float32Array };

/** An array of height × width × channels: `dtype` is uint8, float16 or float32. */
export class PixelArray {
  constructor(data, dtype, shape) {
    this.data = data;
    this.dtype = dtype;
    [this.height, this.width, this.channels = 1] = shape;
    if (data.length !== this.height * this.width * this.channels) {
      throw new Error(`A layer of ${shape.join("×")} values has ${data.length} of them.`);
    }
  }

  static fromBuffer(buffer, dtype, shape) {
    return new PixelArray(new TYPES[dtype](buffer), dtype, shape);
  }

  /** The value of a channel at a pixel; NaN outside. */
  at(x, y, channel = 0) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return NaN;
    const value = this.data[(y * this.width + x) * this.channels + channel];
    return this.dtype === "float16" ? half(value) : value;
  }

  /** Both components of a flow at a pixel. */
  vector(x, y) {
    return [this.at(x, y, 0), this.at(x, y, 1)];
  }

  get bytes() {
    return this.data.byteLength;
  }
}

/** Warp the second frame to the first as hamflow.warp: bilinear, black where it is unknown. */
export function warp(image, flow) {
  const { width, height } = image;
  const from = new Uint32Array(image.data.buffer, image.data.byteOffset, width * height);
  const out = new ImageData(width, height);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += 4) {
      out.data[at + 3] = 255;
      const px = x + flow.at(x, y, 0);
      const py = y + flow.at(x, y, 1);
      if (!(px >= 0 && px <= width - 1 && py >= 0 && py <= height - 1)) continue;
      const left = Math.floor(px);
      const top = Math.floor(py);
      const sx = px - left;
      const sy = py - top;
      const right = Math.min(left + 1, width - 1);
      const below = Math.min(top + 1, height - 1);
      const corners = [
        [from[top * width + left], (1 - sx) * (1 - sy)],
        [from[top * width + right], sx * (1 - sy)],
        [from[below * width + left], (1 - sx) * sy],
        [from[below * width + right], sx * sy],
      ];
      for (let c = 0; c < 3; c++) {
        let sum = 0;
        for (const [pixel, weight] of corners) sum += ((pixel >>> (8 * c)) & 255) * weight;
        out.data[at + c] = Math.round(sum);
      }
    }
  }
  return out;
}
