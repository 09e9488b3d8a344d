// How standalone.py writes arrays into a page, read backward.

/** The bytes that a text in base64 stands for. */
export function decoded(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Whole numbers of 16 bits: low bytes, then high bytes, of differences to the left neighbor. */
export function undelta(bytes, width, channels) {
  const count = bytes.length / 2;
  const values = new Int16Array(count);
  const row = width * channels;
  for (let i = 0; i < count; i++) {
    const difference = bytes[i] | (bytes[count + i] << 8);
    values[i] = i % row < channels ? difference : values[i - channels] + difference;
  }
  return values;
}
