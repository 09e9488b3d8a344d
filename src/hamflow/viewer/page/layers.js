// What a pane can show, and which textures that takes.

/** In the order of the keys 1 to 9 and 0. `second` layers have the pixels of the second frame. */
export const LAYERS = [
  { name: "frame1", label: "Frame 1", text: "the first frame" },
  { name: "frame2", label: "Frame 2", text: "the second frame", second: true },
  { name: "warped", label: "Warped", text: "the second frame, warped to the first by the flow" },
  { name: "flow", label: "Flow", text: "the flow in the colors of the wheel" },
  { name: "overlay", label: "Overlay", text: "the flow over the first frame" },
  { name: "arrows", label: "Arrows", text: "the flow as arrows" },
  { name: "occlusion", label: "Occlusion", text: "pixels that are hidden in the second frame" },
  { name: "confidence", label: "Confidence", text: "white: certain, black: not to be trusted" },
  { name: "error", label: "Error", text: "distance to the true flow" },
  { name: "truth", label: "Truth", text: "the true flow in the colors of the wheel" },
  { name: "backward", label: "Backward", text: "the flow from the second frame to the first", second: true },
];

export const layerOf = (name) => LAYERS.find((layer) => layer.name === name);

/** The names of the layers that can be shown of a source and, if there is one, a result. */
export function available(source, meta) {
  const found = [];
  const pictures = source && source.frames > 0;
  if (pictures) found.push("frame1");
  if (pictures && source.frames > 1) found.push("frame2");
  if (meta) {
    const has = (name) => meta.layers.includes(name);
    if (pictures && source.frames > 1) found.push("warped");
    found.push("flow");
    if (pictures) found.push("overlay");
    found.push("arrows");
    for (const name of ["occlusion", "confidence"]) if (has(name)) found.push(name);
    if (has("truth")) found.push("error", "truth");
    if (has("backward")) found.push("backward");
  }
  return LAYERS.filter((layer) => found.includes(layer.name));
}

/** What the renderer is to draw for a layer, or null while it is being loaded. */
export function picture(name, data, source, index, result, full) {
  const frame = (k) => (source.frames > 0 ? data.frame(source.id, k) : null);
  const one = (mode, first) => first && { mode, first, full };
  const two = (mode, first, second) => first && second && { mode, first, second, full };
  switch (name) {
    case "frame1": return one("image", frame(index));
    case "frame2": return one("image", frame(index + 1));
    case "warped": {
      const flow = result && data.layer(result, "flow");
      // A vector may lead from one tile to another, so an image in tiles is warped beforehand.
      if (flow?.tiles.length > 1) return one("image", data.warped(result));
      return two("warped", flow, frame(index + 1));
    }
    case "flow":
    case "truth":
    case "backward": return result && one("flow", data.layer(result, name));
    case "overlay": return result && two("overlay", data.layer(result, "flow"), frame(index));
    case "arrows":
      if (source.frames > 0) return one("faded", frame(index));
      return result && one("flow", data.layer(result, "flow"));
    case "occlusion":
      if (!result) return null;
      if (source.frames > 0) return two("mask", data.layer(result, name), frame(index));
      return one("gray", data.layer(result, name));
    case "confidence": return result && one("gray", data.layer(result, name));
    case "error": return result && one("error", data.layer(result, name));
    default: return null;
  }
}

/** Whether the colors of a layer depend on the maximum of the legend. */
export const usesWheel = (name) => ["flow", "overlay", "arrows", "truth", "backward"].includes(name);
