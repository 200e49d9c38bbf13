// Journeyman in opencode: sessions start with what earlier ones learned, risky calls wait for a
// person, and finished turns are imported. Written by `journeyman hosts install opencode`;
// `journeyman hosts remove opencode` removes it. It stores nothing in opencode's own files.
//
// It is one file because opencode loads each file of its folder as a plugin.
//
// Openings fail silent: whatever goes wrong, the session goes on without one. The gate fails closed:
// a call that nobody could be asked about is blocked.

import { spawn } from "node:child_process";
import {
  appendFileSync, existsSync, lstatSync, readFileSync, readdirSync, statSync,
} from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

const JOURNEYMAN = __JOURNEYMAN__;

// In a run of Journeyman's own, the process that started it answers, while it is there.
const RUN = process.env.JOURNEYMAN_RUN ?? "";
const RUN_SOCKET = `/tmp/journeyman-${process.getuid()}/run-${RUN}.sock`;
const SOCKET = /^[0-9a-f]+$/.test(RUN) && existsSync(RUN_SOCKET) ? RUN_SOCKET : JOURNEYMAN.socket;

const HOST = "opencode";
const PARTS = new Set(JOURNEYMAN.parts ?? ["opening", "gate", "import"]);
const LIMITS_MS = {
  // The first request of a session waits this long for its opening.
  opening: 4_000,
  // What the resident process only has to take note of.
  notice: 1_000,
  // One operation in a child process, where there is no resident process.
  gateInChild: 15_000,
  // opencode waits this long for reports in progress when it exits.
  exit: 1_500,
  // A mark that nobody collected is forgotten after this time.
  compaction: 5_000,
  ...JOURNEYMAN.limits_ms,
};

// A gate that waits for a person answers after this many seconds that it still does, and is asked
// again. The first time is short, so that a process that hangs is noticed soon.
const FIRST_WAIT_S = 2;
const WAIT_S = 25;
const GRACE_MS = 5_000;

const LARGEST_ANSWER = 16 * 1024 * 1024;
const LARGEST_LOG = 1_000_000;

// Tools that change nothing on this machine, or whose own calls pass the gate. The gate is asked
// about them only where the settings list them; about any other tool it is always asked.
const OBSERVERS = new Set([
  "codesearch", "glob", "grep", "invalid", "list", "list_mcp_resource_templates",
  "list_mcp_resources", "lsp", "plan_enter", "plan_exit", "question", "read", "read_mcp_resource",
  "skill", "StructuredOutput", "task", "todoread", "todowrite", "webfetch", "websearch",
]);

// Agents of opencode that work on a conversation, not in it. Their requests stay as they are.
const INTERNAL_AGENTS = new Set(["compaction", "summary", "title"]);

// opencode's database is imported after these events.
const IMPORT_EVENTS = new Set(["session.compacted", "session.error", "session.idle"]);

const UNAVAILABLE =
  "Blocked by Journeyman: no confirmation could be requested, because Journeyman did not answer. " +
  "Do not try to achieve the same in another way. A person can start it with `journeyman serve`, " +
  "or remove the plugin with `journeyman hosts remove opencode` or, where that command is gone, by " +
  `deleting ${JOURNEYMAN.file}.`;

class Unanswered extends Error {
  // `reached`: the resident process took the request, and may have acted on it.
  constructor(reason, reached = false) {
    super(reason);
    this.reached = reached;
  }
}

// Sends a request, ends the sending side, and passes on what comes back. Returns what closes the
// connection. Under Bun, which opencode is built with, `node:net` would close both sides.
function transmit(request, { onSent, onData, onClose, onError }) {
  if (typeof Bun === "undefined") {
    const socket = connect({ path: SOCKET, allowHalfOpen: true });
    socket.on("connect", () => {
      onSent();
      socket.end(request);
    });
    socket.on("data", onData).on("close", onClose).on("error", onError);
    return () => socket.destroy();
  }
  let connection;
  let isClosed = false;
  let rest = Buffer.from(request);
  const write = (socket) => {
    rest = rest.subarray(Math.max(socket.write(rest), 0));
    if (!rest.length) socket.shutdown();
  };
  const open = (socket) => {
    connection = socket;
    if (isClosed) return socket.terminate();
    onSent();
    write(socket);
  };
  const socket = {
    open,
    drain: (one) => rest.length && write(one),
    data: (_socket, chunk) => onData(Buffer.from(chunk)),
    close: onClose,
    error: (_socket, error) => onError(error),
    connectError: (_socket, error) => onError(error),
  };
  Bun.connect({ unix: SOCKET, socket }).catch(onError);
  return () => {
    isClosed = true;
    connection?.terminate();
  };
}

// One exchange with the resident process.
function exchange(operation, body, ms, signal) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    let size = 0;
    let sent = false;
    let close = () => {};
    const finish = (settle, value) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      settle(value);
      close();
    };
    const fail = (reason) => finish(reject, new Unanswered(reason, sent));
    const timer = setTimeout(() => fail(`no answer within ${Math.round(ms)} ms`), ms);
    const onAbort = () => fail("the session ended");
    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort);
    try {
      if (!isTrusted(SOCKET)) return fail("the socket's folder is another user's");
    } catch (error) {
      return fail(String(error?.message ?? error));
    }
    const request = `1 ${operation} ${HOST} ${Math.round(ms)}\n${JSON.stringify(body)}`;
    close = transmit(request, {
      onSent: () => {
        sent = true;
      },
      onData: (chunk) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size > LARGEST_ANSWER) fail("the answer is too long");
      },
      onError: (error) => fail(String(error?.message ?? error)),
      onClose: () => {
        try {
          finish(resolve, parseAnswer(Buffer.concat(chunks).toString("utf8")));
        } catch (error) {
          fail(error.message);
        }
      },
    });
  });
}

function parseAnswer(text) {
  const at = text.indexOf("\n");
  const status = at < 0 ? "" : text.slice(0, at);
  const content = text.slice(at + 1);
  if (status === "error") throw new Error(content);
  if (status !== "ok") throw new Error("no answer of Journeyman's protocol");
  return parseObject(content);
}

function parseObject(text) {
  const value = JSON.parse(text.trim() || "{}");
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Error("the answer is not an object");
  }
  return value;
}

// Settings of Journeyman in the variables of one project must not reach a process that serves all.
function childEnviron() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(JOURNEYMAN_|CONFIRMATION_|PYTHON)/.test(name),
  );
  return Object.fromEntries(kept);
}

// Whether no other user can have put a socket here: one outside the home is in a folder whose parent
// is open to everyone.
function isTrusted(path) {
  const folder = dirname(path);
  return !folder.startsWith("/tmp/journeyman-") || lstatSync(folder).uid === process.getuid();
}

// One operation in a child process. `-E`, `-P` and its folder keep modules of the project out of it;
// what comes too late is not recorded as given.
function runOnce(operation, body, ms, { detached = false } = {}) {
  return new Promise((resolve, reject) => {
    const words = ["-E", "-P", "-m", "journeyman", "--home", JOURNEYMAN.home, "hook", operation, HOST];
    if (!detached) words.push("--until", ((Date.now() + ms) / 1_000).toFixed(3));
    const child = spawn(JOURNEYMAN.python, words, {
      cwd: "/",
      env: childEnviron(),
      detached,
      stdio: ["pipe", detached ? "ignore" : "pipe", "ignore"],
    });
    const chunks = [];
    const fail = (reason) => {
      clearTimeout(timer);
      reject(new Unanswered(reason));
    };
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      fail(`no answer within ${Math.round(ms)} ms`);
    }, ms);
    child.on("error", (error) => fail(String(error?.message ?? error)));
    child.stdin.on("error", () => {}); // the child's exit code says more
    child.stdin.end(JSON.stringify(body));
    if (detached) {
      child.unref();
      child.on("spawn", () => {
        clearTimeout(timer);
        resolve({});
      });
      return;
    }
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.on("close", (code) => {
      if (code !== 0) return fail(`journeyman hook exited with ${code}`);
      clearTimeout(timer);
      try {
        resolve(parseAnswer(Buffer.concat(chunks).toString("utf8")));
      } catch (error) {
        fail(error.message);
      }
    });
  });
}

// One operation by the resident process or, where there is none, in a child process, both within
// the same deadline.
async function ask(operation, body, ms) {
  const ends = performance.now() + ms;
  try {
    return await exchange(operation, body, ms);
  } catch (error) {
    if (error.reached) throw error;
  }
  return await runOnce(operation, body, Math.max(ends - performance.now(), 50));
}

// The value of a promise, or an error if it takes longer.
function within(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Unanswered(`${what}: not within ${Math.round(ms)} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Reports a failure, to the resident process or to the file that it reads. Never throws.
async function noteFailure(session, event, reason) {
  try {
    await exchange("failure", { session, event, reason }, LIMITS_MS.notice);
    return;
  } catch {
    // There is the file.
  }
  try {
    const path = join(JOURNEYMAN.home, "hook-failures.log");
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < LARGEST_LOG) {
      const words = String(reason).split(/\s+/).join(" ").slice(0, 200);
      const seconds = Math.round(Date.now() / 1_000);
      appendFileSync(path, `${seconds} ${HOST} ${event} ${words}\n`, { mode: 0o600 });
    }
  } catch {
    // Nowhere to report it.
  }
}

// opencode's database: its name depends on how opencode was built, so the one last written counts.
function databasePath() {
  const data = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode");
  const chosen = process.env.OPENCODE_DB;
  if (chosen) return chosen === ":memory:" ? "" : isAbsolute(chosen) ? chosen : join(data, chosen);
  const written = (name) =>
    Math.max(
      ...[name, `${name}-wal`].map(
        (one) => statSync(join(data, one), { throwIfNoEntry: false })?.mtimeMs ?? 0,
      ),
    );
  const names = readdirSync(data).filter((name) => /^opencode(-[\w.-]+)?\.db$/.test(name));
  names.sort((one, other) => written(other) - written(one));
  return names.length ? join(data, names[0]) : "";
}

// The tools that the settings list for the gate, as the installer recorded them.
function recordedGateTools() {
  try {
    const record = JSON.parse(readFileSync(join(JOURNEYMAN.home, "hosts", `${HOST}.json`), "utf8"));
    return Array.isArray(record.gate_tools) ? record.gate_tools : [];
  } catch {
    return [];
  }
}

function matches(pattern, name) {
  const escaped = String(pattern).replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`).test(name);
}

// The text of the first prompt. `opencode run` adds quotes around a prompt of several words.
function taskOf(messages) {
  const prompt = messages.find((message) => message.info.role === "user");
  const texts = (prompt?.parts ?? [])
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text);
  const text = texts.join("\n").trim();
  return /^"[^"]*"$/.test(text) ? text.slice(1, -1) : text;
}

// opencode's list of tools as definitions; null where it has none.
function toolDefinitions(tools) {
  return Array.isArray(tools)
    ? tools
        .filter((tool) => tool.id !== "invalid")
        .map(({ id, description, parameters }) => ({ name: id, description, parameters }))
    : null;
}

// An opening's examples (in Anthropic's form) as messages of opencode: a call and its result are one
// part of the assistant's message.
function exampleMessages(examples, session, model) {
  const messages = [];
  const calls = new Map();
  const time = { created: 0, completed: 0 };
  const add = (role, parts) => {
    const id = `msg_journeyman${String(messages.length).padStart(4, "0")}`;
    const info =
      role === "user"
        ? { agent: "build", model }
        : {
            parentID: messages.at(-1)?.info.id ?? id,
            mode: "build",
            agent: "build",
            path: { cwd: "/", root: "/" },
            cost: 0,
            tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
            finish: parts[0].type === "tool" ? "tool-calls" : "stop",
            ...model,
          };
    messages.push({
      info: { id, sessionID: session, role, time, ...info },
      parts: parts.map((part, number) => ({
        id: `prt_journeyman${String(messages.length).padStart(4, "0")}${number}`,
        sessionID: session,
        messageID: id,
        ...part,
      })),
    });
  };
  for (const { role, content } of examples) {
    if (typeof content === "string") {
      add(role, [{ type: "text", text: content }]);
    } else if (role === "assistant") {
      const parts = content.map((block) =>
        block.type === "text"
          ? { type: "text", text: block.text }
          : { type: "tool", tool: block.name, callID: block.id, state: { input: block.input } },
      );
      add(role, parts);
      for (const part of messages.at(-1).parts) {
        if (part.type === "tool") calls.set(part.callID, part.state);
      }
    } else {
      for (const block of content) {
        Object.assign(
          calls.get(block.tool_use_id),
          block.is_error
            ? { status: "error", error: block.content }
            : { status: "completed", output: block.content, title: "", metadata: {} },
          { time: { start: 0, end: 0 } },
        );
      }
    }
  }
  if ([...calls.values()].some((state) => !state.status)) throw new Error("a call has no result");
  return messages;
}

export const Journeyman = async ({ client, directory }) => {
  const openings = new Map(); // by session: a promise of its opening, or of nothing
  const decided = new Map(); // by session: what its promise held
  const compacting = new Map(); // by session: when opencode began to summarise it
  const waiting = new Map(); // by session: what ends the calls that wait for a person
  const reports = new Set(); // in progress
  let internalPrompts = [];
  let gateTools;
  let subagents = false;

  const later = (promise) => {
    const report = promise.catch(() => {}).finally(() => reports.delete(report));
    reports.add(report);
  };

  // What the settings say about hosts. Where no resident process answers, a child is asked once,
  // which starts one if the settings allow it: the first request comes a moment later.
  const readStatus = async () => {
    const isFirst = gateTools === undefined;
    const status = await (isFirst ? ask : exchange)("status", {}, LIMITS_MS.opening);
    gateTools = Array.isArray(status.gate_tools) ? status.gate_tools : [];
    subagents = status.subagents === true;
  };

  const data = async (request) => (await request).data;

  // The session that a fork was made from: opencode does not record it. A fork has a title derived
  // from the other's, and copies of its messages with their times.
  const originOf = async (session, messages) => {
    const first = messages[0].info.time.created;
    const match = /^(.+) \(fork #(\d+)\)$/s.exec(session.title ?? "");
    if (!match || !(first < session.time.created)) return "";
    const title = Number(match[2]) > 1 ? `${match[1]} (fork #${Number(match[2]) - 1})` : match[1];
    for (const other of await data(client.session.list())) {
      if (other.title !== title || other.time.created >= session.time.created) continue;
      const found = await data(client.session.messages({ path: { id: other.id } }));
      if (found.some((message) => message.info.time.created === first)) return other.id;
    }
    return "";
  };

  const requestOpening = async (id, messages) => {
    const ends = performance.now() + LIMITS_MS.opening;
    const model = messages.findLast((message) => message.info.role === "user").info.model;
    const query = { provider: model.providerID, model: model.modelID };
    const [session, agents, tools] = await Promise.all([
      data(client.session.get({ path: { id } })),
      data(client.app.agents()),
      data(client.tool.list({ query })).catch(() => null),
    ]);
    if (session.parentID && !subagents) return null;
    const prompts = agents.filter((agent) => INTERNAL_AGENTS.has(agent.name) && agent.prompt);
    internalPrompts = prompts.map((agent) => agent.prompt);
    const fresh = !messages.some((message) => message.info.role === "assistant");
    const body = {
      session: id,
      task: taskOf(messages),
      cwd: session.directory || directory,
      tools: toolDefinitions(tools),
      model: model.modelID,
      form: "anthropic",
      fresh,
      parent: fresh || session.parentID ? "" : await originOf(session, messages),
    };
    const answer = await ask("opening", body, Math.max(ends - performance.now(), 50));
    if (answer.state !== "warm") return null;
    const opening = { system: String(answer.system ?? ""), examples: answer.messages ?? [] };
    exampleMessages(opening.examples, id, model); // an opening that cannot be shown counts as absent
    return opening;
  };

  // The opening of a session: decided at its first request, and never again in this process.
  const openingOf = (id, messages) => {
    if (!openings.has(id)) {
      const promise = within(requestOpening(id, messages), LIMITS_MS.opening, "opening")
        .catch((error) => {
          later(noteFailure(id, "opening", error?.message ?? error));
          return null;
        })
        .then((opening) => {
          decided.set(id, opening);
          return opening;
        });
      openings.set(id, promise);
    }
    return openings.get(id);
  };

  const reportLog = async (session) => {
    const path = databasePath();
    if (!path) return;
    try {
      await exchange("import", { session, path }, LIMITS_MS.notice);
    } catch {
      // Importing twice changes nothing.
      await runOnce("import", { session, path }, LIMITS_MS.notice, { detached: true });
    }
  };

  const isGated = (tool) =>
    !OBSERVERS.has(tool) ||
    (gateTools ?? recordedGateTools()).some((pattern) => matches(pattern, tool));

  const endWaiting = (session) => {
    for (const controller of waiting.get(session) ?? []) controller.abort();
  };

  // The decision on a call. The resident process may be restarted while it waits: asked again about
  // the same call, it goes on with the same confirmation.
  const decisionOn = async (call, signal) => {
    for (let wait = FIRST_WAIT_S; ; wait = WAIT_S) {
      let answer;
      try {
        answer = await exchange("gate", { ...call, wait_s: wait }, wait * 1_000 + GRACE_MS, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        const inChild = { ...call, wait_s: FIRST_WAIT_S };
        answer = await runOnce("gate", inChild, LIMITS_MS.gateInChild);
      }
      if (answer.decision !== "wait") return answer;
      if (signal.aborted) throw new Unanswered("the session ended");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };

  const hooks = {
    dispose: async () => {
      for (const session of waiting.keys()) endWaiting(session);
      await within(Promise.all(reports), LIMITS_MS.exit, "exit").catch(() => {});
    },

    event: async ({ event }) => {
      const session = event.properties?.sessionID;
      if (!session) return;
      if (event.type === "session.idle") endWaiting(session); // the person stopped it
      if (PARTS.has("import") && IMPORT_EVENTS.has(event.type)) {
        later(reportLog(session).catch((error) => noteFailure(session, "import", error.message)));
      }
      if (event.type === "session.deleted") {
        for (const kept of [openings, decided, compacting]) kept.delete(session);
      }
    },

    "chat.message": async () => later(readStatus()),
  };
  const opening = {
    "experimental.session.compacting": async ({ sessionID }) => {
      compacting.set(sessionID, performance.now());
    },

    "experimental.chat.messages.transform": async (_input, output) => {
      let session = "";
      try {
        session = output.messages.at(-1)?.info.sessionID ?? "";
        const began = compacting.get(session);
        compacting.delete(session);
        if (!session || performance.now() - began < LIMITS_MS.compaction) return;
        const opening = await openingOf(session, output.messages);
        if (!opening) return;
        const { model } = output.messages.findLast((one) => one.info.role === "user").info;
        output.messages.unshift(...exampleMessages(opening.examples, session, model));
      } catch (error) {
        later(noteFailure(session, "opening", error?.message ?? error));
      }
    },

    "experimental.chat.system.transform": async ({ sessionID, model }, output) => {
      try {
        const text = decided.get(sessionID)?.system;
        const first = output.system[0] ?? "";
        if (!text || internalPrompts.some((prompt) => first.startsWith(prompt))) return;
        // Servers of other models may take only one system message; where opencode marks what is to
        // be cached, its own text stays a message of its own.
        if (model?.api?.npm === "@ai-sdk/openai-compatible" && output.system.length) {
          output.system.push(`${output.system.pop()}\n\n${text}`);
        } else {
          output.system.push(text);
        }
      } catch (error) {
        later(noteFailure(sessionID, "opening", error?.message ?? error));
      }
    },
  };
  const gate = {
    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      if (!isGated(tool)) return;
      const controller = new AbortController();
      const others = waiting.get(sessionID) ?? new Set();
      waiting.set(sessionID, others.add(controller));
      let answer;
      try {
        const call = { session: sessionID, tool, call_id: callID, cwd: directory };
        answer = await decisionOn({ ...call, arguments: output.args ?? {} }, controller.signal);
      } catch (error) {
        if (!controller.signal.aborted) {
          later(noteFailure(sessionID, "gate", error?.message ?? error));
        }
        throw new Error(UNAVAILABLE);
      } finally {
        others.delete(controller);
        if (!others.size) waiting.delete(sessionID);
      }
      if (answer.decision !== "allow") throw new Error(answer.reason || UNAVAILABLE);
      if (answer.arguments) {
        // opencode keeps this object, and not the one in `output`.
        for (const name of Object.keys(output.args)) delete output.args[name];
        Object.assign(output.args, answer.arguments);
      }
    },
  };
  if (PARTS.has("opening")) Object.assign(hooks, opening);
  if (PARTS.has("gate")) Object.assign(hooks, gate);
  return hooks;
};
