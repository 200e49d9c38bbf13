// Follows the service's changes. A lost connection is taken up again, with growing pauses. Whoever
// listens is told to look at what happened before the connection was there.

import { follow, received } from "./service.js";

const PAUSES_MS = [500, 1000, 2000, 5000, 10000];

export class Live {
  constructor({ changed, state, again }) {
    this.tell = { changed, state, again };
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
    this.tell.state(this.lost ? "reconnecting" : "connecting");
    this.read(path, ending).catch(() => {}).then(() => this.retry(ending));
  }

  async read(path, ending) {
    const reader = await follow(path, ending.signal);
    if (ending !== this.stream) return;
    this.failures = 0;
    this.tell.state("live");
    this.lost = false;
    this.tell.again();
    let rest = "";
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const events = (rest + piece.value).split("\n\n");
      rest = events.pop();
      for (const event of events) if (ending === this.stream) this.take(event);
    }
  }

  // An event has a line with its name and one with its data; a line that begins with a colon only
  // says that the connection is there.
  take(event) {
    const data = event.split("\n").find((line) => line.startsWith("data: "));
    if (data) this.tell.changed(received(JSON.parse(data.slice(6))));
  }

  retry(stream) {
    if (stream !== this.stream) return;
    this.lost = true;
    this.tell.state("reconnecting");
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
