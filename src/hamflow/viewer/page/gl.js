// Pictures by WebGL 2: raw numbers become colors on the graphics card, so that the scale of the
// colors, zoom and pan never wait for anything else.

import { ERROR_COLORS, ERROR_LIMITS, WHEEL } from "./colors.js";

const MODES = {
  image: 0, flow: 1, overlay: 2, gray: 3, mask: 4, error: 5, faded: 6, warped: 7,
};

const VERTEX = `#version 300 es
layout(location = 0) in vec2 corner;  // 0 or 1
uniform vec4 tile;              // x, y, width, height in pixels of the image
uniform vec4 view;              // center of the view in the image; clip units per pixel
out vec2 place;
void main() {
  place = tile.xy + corner * tile.zw;
  vec2 position = (place - view.xy) * view.zw;
  gl_Position = vec4(position.x, -position.y, 0.0, 1.0);
}`;

const floats = (values) => values.map((value) => value.toFixed(6)).join(", ");

// A program for each mode: some machines compute all branches of one that has them all.
const fragment = (mode) => `#version 300 es
#define MODE ${mode}
precision highp float;
precision highp int;
precision highp sampler2D;
uniform sampler2D first;
uniform sampler2D second;
uniform vec4 tile;
uniform float full;             // pixels in full color
uniform int samples;            // per side, where the image is reduced
uniform float reach;            // pixels of the image in one of the screen
in vec2 place;
out vec4 result;
uniform sampler2D palette;      // the wheel, and below it the colors of errors
const float limits[${ERROR_LIMITS.length}] = float[](${floats(ERROR_LIMITS)});

// By its bits, because compilers may take x != x as false.
bool unknown(float x) { return (floatBitsToUint(x) & 0x7fffffffu) >= 0x7f800000u; }

vec3 flowColor(vec2 flow) {
  if (unknown(flow.x) || unknown(flow.y)) return vec3(0.0);
  vec2 w = flow / (full + 1e-5);
  float radius = min(length(w), 1.0);
  // The arctangent of 0 is not the same everywhere; right is where the wheel begins.
  float angle = w.y != 0.0 ? atan(-w.y, -w.x) : (w.x < 0.0 ? 0.0 : -3.14159265358979);
  float position = clamp((angle / 3.14159265358979 + 1.0) / 2.0, 0.0, 1.0) * float(${WHEEL.length - 1});
  int before = int(floor(position));
  int after = (before + 1) % ${WHEEL.length};
  vec3 hue = mix(
    texelFetch(palette, ivec2(before, 0), 0).rgb, texelFetch(palette, ivec2(after, 0), 0).rgb,
    position - float(before));
  // Rounded down to 8 bits as by Python; the small term is for what floats lose.
  return floor(255.0 * (1.0 - radius * (1.0 - hue)) + 1e-3) / 255.0;
}

vec3 errorColor(float error) {
  if (unknown(error)) return vec3(0.0);
  int step = 0;
  for (int i = 0; i < ${ERROR_LIMITS.length}; i++) step += error >= limits[i] ? 1 : 0;
  return texelFetch(palette, ivec2(step, 1), 0).rgb;
}

// As hamflow.warp: bilinear, and black where the flow is unknown or leaves the image.
vec3 warpedColor(vec2 at) {
  ivec2 last = textureSize(second, 0) - 1;
  if (unknown(at.x) || unknown(at.y)) return vec3(0.0);
  if (any(lessThan(at, vec2(0.0))) || any(greaterThan(at, vec2(last)))) return vec3(0.0);
  ivec2 a = ivec2(floor(at));
  ivec2 b = min(a + 1, last);
  vec2 share = at - vec2(a);
  vec3 above = mix(texelFetch(second, a, 0).rgb, texelFetch(second, ivec2(b.x, a.y), 0).rgb, share.x);
  vec3 below = mix(texelFetch(second, ivec2(a.x, b.y), 0).rgb, texelFetch(second, b, 0).rgb, share.x);
  return mix(above, below, share.y);
}

float gray(vec3 c) { return dot(c, vec3(0.299, 0.587, 0.114)); }

vec3 colorAt(vec2 at) {
  ivec2 pixel = ivec2(clamp(floor(at - tile.xy), vec2(0.0), tile.zw - 1.0));
  vec4 a = texelFetch(first, pixel, 0);
#if MODE == ${MODES.flow}
  return flowColor(a.xy);
#elif MODE == ${MODES.gray}
  return vec3(a.x);
#elif MODE == ${MODES.error}
  return errorColor(a.x);
#elif MODE == ${MODES.faded}
  return mix(a.rgb, vec3(1.0), 0.45);
#elif MODE == ${MODES.overlay}
  return flowColor(a.xy) * (0.4 + 0.6 * gray(texelFetch(second, pixel, 0).rgb));
#elif MODE == ${MODES.warped}
  return warpedColor(vec2(pixel) + a.xy);
#elif MODE == ${MODES.mask}
  float light = gray(texelFetch(second, pixel, 0).rgb);
  return a.x > 0.0 ? mix(vec3(1.0, 0.45, 0.1), vec3(light), 0.35) : vec3(0.15 + 0.5 * light);
#else
  return a.rgb;
#endif
}

void main() {
  vec3 sum = vec3(0.0);
  for (int j = 0; j < samples; j++) {
    for (int i = 0; i < samples; i++) {
      vec2 offset = (vec2(float(i), float(j)) + 0.5) / float(samples) - 0.5;
      sum += colorAt(place + (samples > 1 ? offset * reach : vec2(0.0)));
    }
  }
  result = vec4(sum / float(samples * samples), 1.0);
}`;

const FORMATS = {
  // dtype and channels to internal format, format and type of WebGL.
  "uint8 1": ["R8", "RED", "UNSIGNED_BYTE"],
  "float16 1": ["R16F", "RED", "HALF_FLOAT"],
  "float16 2": ["RG16F", "RG", "HALF_FLOAT"],
  "float32 1": ["R32F", "RED", "FLOAT"],
  "float32 2": ["RG32F", "RG", "FLOAT"],
};

export class Renderer {
  #programs = new Map();

  /** `tileSide` limits the sides of textures; images that are larger are cut into tiles. */
  constructor(canvas, tileSide = Infinity) {
    this.canvas = canvas;
    const gl = canvas.getContext("webgl2", { antialias: false });
    if (!gl) throw new Error("This browser has no WebGL 2, which the page draws with.");
    this.gl = gl;
    this.tileSide = Math.min(tileSide, gl.getParameter(gl.MAX_TEXTURE_SIZE));
    const corners = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, corners);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.enable(gl.SCISSOR_TEST);
    this.#uploadPalette();
  }

  /** Use the program of a mode; returns where its parameters are. */
  #use(mode) {
    const { gl } = this;
    if (!this.#programs.has(mode)) {
      const program = this.#link(mode);
      const names = ["tile", "view", "first", "second", "palette", "full", "samples", "reach"];
      const uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(program, name)]));
      gl.useProgram(program);
      ["first", "second", "palette"].forEach((name, unit) => gl.uniform1i(uniforms[name], unit));
      this.#programs.set(mode, { program, uniforms });
    }
    const { program, uniforms } = this.#programs.get(mode);
    gl.useProgram(program);
    return uniforms;
  }

  #link(mode) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [type, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, fragment(MODES[mode])]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) {
        throw new Error(gl.getShaderInfoLog(shader));
      }
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    return program;
  }

  /** Colors that the shader looks up: a texture is faster than an array in its program. */
  #uploadPalette() {
    const { gl } = this;
    const width = WHEEL.length;
    const pixels = new Uint8Array(8 * width);
    WHEEL.forEach((color, k) => pixels.set(color, 4 * k));
    ERROR_COLORS.forEach((color, k) => pixels.set(color, 4 * (width + k)));
    gl.activeTexture(gl.TEXTURE2);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, 2, 0, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.activeTexture(gl.TEXTURE0);
  }

  /** Put a PixelArray, or a bitmap or ImageData, on the graphics card. */
  upload(source) {
    const { gl } = this;
    const { width, height } = source;
    const tiles = [];
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    for (let y = 0; y < height; y += this.tileSide) {
      for (let x = 0; x < width; x += this.tileSide) {
        const w = Math.min(this.tileSide, width - x);
        const h = Math.min(this.tileSide, height - y);
        const texture = gl.createTexture();
        gl.bindTexture(gl.TEXTURE_2D, texture);
        for (const name of ["TEXTURE_MIN_FILTER", "TEXTURE_MAG_FILTER"]) {
          gl.texParameteri(gl.TEXTURE_2D, gl[name], gl.NEAREST);
        }
        for (const name of ["TEXTURE_WRAP_S", "TEXTURE_WRAP_T"]) {
          gl.texParameteri(gl.TEXTURE_2D, gl[name], gl.CLAMP_TO_EDGE);
        }
        gl.pixelStorei(gl.UNPACK_ROW_LENGTH, width);
        gl.pixelStorei(gl.UNPACK_SKIP_PIXELS, x);
        gl.pixelStorei(gl.UNPACK_SKIP_ROWS, y);
        const [internal, format, type] = source.dtype
          ? FORMATS[`${source.dtype} ${source.channels}`]
          : ["RGBA8", "RGBA", "UNSIGNED_BYTE"];
        gl.texImage2D(
          gl.TEXTURE_2D, 0, gl[internal], w, h, 0, gl[format], gl[type], source.data ?? source,
        );
        tiles.push({ texture, x, y, w, h });
      }
    }
    for (const name of ["ROW_LENGTH", "SKIP_PIXELS", "SKIP_ROWS"]) {
      gl.pixelStorei(gl[`UNPACK_${name}`], 0);
    }
    const pixelBytes = source.dtype ? source.bytes / (width * height) : 4;
    return { width, height, tiles, bytes: width * height * pixelBytes };
  }

  free(texture) {
    for (const tile of texture.tiles) this.gl.deleteTexture(tile.texture);
  }

  /** Fit the canvas to its size on the page; returns device pixels per CSS pixel. */
  resize() {
    const ratio = globalThis.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    return ratio;
  }

  clear([r, g, b]) {
    const { gl } = this;
    gl.scissor(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(r / 255, g / 255, b / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  /**
   * Draw a layer.
   * @param {object} what mode, full, first and second texture
   * @param {object} box x, y, width, height of the pane in device pixels, from the top left
   * @param {object} view x, y of the image in the middle of the pane; scale in device pixels
   * @param {object} clip as box: the part of the pane to draw in
   * @param {number} most samples per pixel of the screen and direction, where the image is reduced
   */
  draw(what, box, view, clip = box, most = 4) {
    const { gl } = this;
    const uniforms = this.#use(what.mode);
    const flip = (area) => this.canvas.height - area.y - area.height;
    gl.viewport(box.x, flip(box), box.width, box.height);
    gl.scissor(clip.x, flip(clip), clip.width, clip.height);
    gl.uniform4f(
      uniforms.view, view.x, view.y, (2 * view.scale) / box.width, (2 * view.scale) / box.height,
    );
    gl.uniform1f(uniforms.full, what.full ?? 1);
    gl.uniform1f(uniforms.reach, 1 / view.scale);
    gl.uniform1i(uniforms.samples, Math.min(most, Math.max(1, Math.ceil(1 / view.scale - 0.01))));
    what.first.tiles.forEach((tile, k) => {
      gl.activeTexture(gl.TEXTURE0);
      gl.bindTexture(gl.TEXTURE_2D, tile.texture);
      gl.activeTexture(gl.TEXTURE1);
      gl.bindTexture(gl.TEXTURE_2D, (what.second ?? what.first).tiles[k].texture);
      gl.uniform4f(uniforms.tile, tile.x, tile.y, tile.w, tile.h);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    });
    gl.activeTexture(gl.TEXTURE0);
  }
}
