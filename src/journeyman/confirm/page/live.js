// Follows changes of the service. A lost connection is restored, with growing pauses. After each
// connection, `again` is called to load what happened before.

import { follow, received } from "./service.js";

const PAUSES_MS = [500, 1000, 2000, 5000, 10000];

export class Live {
  constructor({ changed, state, again }) {
    this.handlers = { changed, state, again };
    this.stream = null;
    this.timer = 0;
    this.failures = 0;
    this.lost = false;
  }

  open(path) {
    this.close();
    this.path = path;
    const ending = new AbortController();
    this.stream = ending;
    this.handlers.state(this.lost ? "reconnecting" : "connecting");
    this.read(path, ending).catch(() => {}).then(() => this.retry(ending));
  }

  async read(path, ending) {
    const reader = await follow(path, ending.signal);
    if (ending !== this.stream) return;
    this.failures = 0;
    this.handlers.state("live");
    this.lost = false;
    this.handlers.again();
    let rest = "";
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const events = (rest + piece.value).split("\n\n");
      rest = events.pop();
      for (const event of events) if (ending === this.stream) this.take(event);
    }
  }

  // An event has a line with its name and one with its data; a line that begins with a colon is a
  // heartbeat.
  take(event) {
    const data = event.split("\n").find((line) => line.startsWith("data: "));
    if (data) this.handlers.changed(received(JSON.parse(data.slice(6))));
  }

  retry(stream) {
    if (stream !== this.stream) return;
    this.lost = true;
    this.handlers.state("reconnecting");
    const pause = PAUSES_MS[Math.min(this.failures, PAUSES_MS.length - 1)];
    this.failures += 1;
    this.timer = setTimeout(() => this.open(this.path), pause);
  }

  close() {
    clearTimeout(this.timer);
    const stream = this.stream;
    this.stream = null;
    stream?.abort();
  }
}
