// Labels for states, times and durations, shared by all views.

export const STATUS = {
  pending: "waiting",
  approved: "approved",
  denied: "denied",
  expired: "expired",
  cancelled: "cancelled",
  auto_approved: "approved without asking",
  redeemed: "approved and used",
};

export const OUTCOME = {
  approved: "Approved",
  denied: "Denied",
  expired: "Expired: no one decided in time, which means no",
  cancelled: "Cancelled",
  auto_approved: "Approved without asking: covered by a rule or a whitelist entry",
  redeemed: "Approved, and used once",
};

// What the page says of each tier, the colour of its label, and whether approving it takes more care.
export const TIER = {
  routine: { words: "No decision is needed.", tone: "plain" },
  ask: { words: "", tone: "ask" },
  critical: {
    words: "A person always decides; the whitelist cannot skip this.", tone: "no", strict: true,
  },
  forbidden: { words: "Never allowed.", tone: "no" },
};

export function many(count, one, more = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
}

export function left(deadline, now = Date.now()) {
  const seconds = Math.max(0, Math.ceil((deadline - now) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
}

export function share(rest, whole) {
  return `${Math.max(0, Math.min(100, (100 * rest) / whole))}%`;
}

export function time(text) {
  if (!text) return "";
  const at = new Date(typeof text === "number" ? 1000 * text : text);
  if (Number.isNaN(at.getTime())) return String(text);
  const clock = at.toLocaleTimeString("en-GB");
  if (at.toDateString() === new Date().toDateString()) return clock;
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
  return `${day}, ${clock}`;
}
