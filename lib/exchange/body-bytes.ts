/**
 * Collects the bytes of a body in one buffer that doubles. A list of chunks would cost 200 bytes for each, and a server may
 * send chunks of one byte.
 */
export class BodyBytes {
  length = 0;
  #held: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    // Most bodies are one chunk, which is not copied, nor written into: it is full.
    if (this.length === 0) this.#held = chunk;
    else {
      if (length > this.#held.length) this.#grow(length);
      chunk.copy(this.#held, this.length);
    }
    this.length = length;
  }

  whole(): Buffer {
    return this.#held.subarray(0, this.length);
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafe(2 * length);
    this.#held.copy(grown, 0, 0, this.length);
    this.#held = grown;
  }
}
