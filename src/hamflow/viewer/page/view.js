// Where the panes look: one center and one scale for all of them.

const SMALLEST = 1 / 64;
const LARGEST = 128; // CSS pixels per pixel of the image

export class View {
  x = 0; // the point of the image in the middle of a pane; pixel k covers k to k + 1
  y = 0;
  scale = 1; // CSS pixels per pixel of the image

  /** Show all of an image in a pane. */
  fit(image, pane) {
    this.x = image.width / 2;
    this.y = image.height / 2;
    this.scale = Math.min(pane.width / image.width, pane.height / image.height) || 1;
    // Small images are enlarged by whole numbers, so that their pixels are of one size.
    if (this.scale > 2) this.scale = Math.floor(this.scale);
  }

  /** From a point of the pane, in CSS pixels, to the image. */
  toImage(px, py, pane) {
    return [
      this.x + (px - pane.x - pane.width / 2) / this.scale,
      this.y + (py - pane.y - pane.height / 2) / this.scale,
    ];
  }

  toPane(x, y, pane) {
    return [
      pane.x + pane.width / 2 + (x - this.x) * this.scale,
      pane.y + pane.height / 2 + (y - this.y) * this.scale,
    ];
  }

  /** Zoom by a factor so that the point under (px, py) stays where it is. */
  zoom(factor, px, py, pane) {
    const [x, y] = this.toImage(px, py, pane);
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.scale * factor));
    this.x = x - (px - pane.x - pane.width / 2) / scale;
    this.y = y - (py - pane.y - pane.height / 2) / scale;
    this.scale = scale;
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
  }

  /** Keep a part of the image in view. */
  hold(image) {
    this.x = Math.min(image.width, Math.max(0, this.x));
    this.y = Math.min(image.height, Math.max(0, this.y));
  }

  /** Move as little as it takes to have a point in a pane. */
  reveal(x, y, pane) {
    const [px, py] = this.toPane(x, y, pane);
    const margin = 24;
    const over = (p, from, to) => Math.min(0, p - from - margin) + Math.max(0, p - to + margin);
    this.pan(-over(px, pane.x, pane.x + pane.width), -over(py, pane.y, pane.y + pane.height));
  }
}
