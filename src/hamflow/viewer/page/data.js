// What has been loaded: arrays for reading values, textures for drawing. The most recently used
// stay, up to a limit, so that a long video can be scrubbed.

const LIMIT = 768 * 2 ** 20; // bytes of textures
const ARRAY_LIMIT = 512 * 2 ** 20;

class Cache {
  #entries = new Map(); // in the order of use

  constructor(limit, size, drop = () => {}) {
    Object.assign(this, { limit, size, drop, used: 0, loading: 0 });
  }

  /** The value, or null while it is being made; `changed` is called when it is there. */
  get(key, make, changed, failed) {
    let entry = this.#entries.get(key);
    if (entry) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      return entry.value;
    }
    entry = { value: null };
    this.#entries.set(key, entry);
    this.loading++;
    make().finally(() => this.loading--).then(
      (value) => {
        if (this.#entries.get(key) !== entry) return this.drop(value);
        entry.value = value;
        this.used += this.size(value);
        this.#shrink(key);
        return changed();
      },
      (error) => failed(error),
    );
    return null;
  }

  #shrink(newest) {
    for (const [key, entry] of this.#entries) {
      if (this.used <= this.limit) return;
      if (key === newest || !entry.value) continue;
      this.#entries.delete(key);
      this.used -= this.size(entry.value);
      this.drop(entry.value);
    }
  }
}

export class Data {
  constructor(store, renderer, changed, failed) {
    Object.assign(this, { store, renderer, changed, failed });
    const freed = (texture) => {
      texture.freed = true;
      renderer.free(texture);
    };
    this.textures = new Cache(LIMIT, (texture) => texture.bytes, freed);
    this.arrays = new Cache(ARRAY_LIMIT, (array) => array.bytes);
    this.metas = new Cache(Infinity, () => 0);
    this.bitmaps = new Cache(ARRAY_LIMIT, (picture) => 4 * picture.width * picture.height);
  }

  /** How many things are being loaded. */
  get loading() {
    return [this.textures, this.arrays, this.metas, this.bitmaps].reduce((sum, each) => sum + each.loading, 0);
  }

  #get(cache, key, make) { return cache.get(key, make, this.changed, this.failed); }

  meta(result) {
    return result ? this.#get(this.metas, result, () => this.store.result(result)) : null;
  }

  array(result, name) {
    const meta = this.meta(result);
    if (!meta) return null;
    const pixels = meta.width * meta.height;
    return this.#get(this.arrays, `${result} ${name}`, () => this.store.layer(result, name, pixels));
  }

  bitmap(source, k) {
    return this.#get(this.bitmaps, `${source} ${k}`, () => this.store.frame(source, k));
  }

  frame(source, k) {
    const picture = this.bitmap(source, k);
    if (!picture) return null;
    return this.#get(this.textures, `${source} ${k}`, async () => this.renderer.upload(picture));
  }

  layer(result, name) {
    const array = this.array(result, name);
    if (!array) return null;
    return this.#get(this.textures, `${result} ${name}`, async () => this.renderer.upload(array));
  }

  warped(result) {
    return this.#get(this.textures, `${result} warped`, async () =>
      this.renderer.upload(await this.store.warped(result)),
    );
  }
}
