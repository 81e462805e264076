/* Answerback's chat on a page: one file, no build step. docs/web.md says how to put it there.

   A message that somebody writes is kept under its request_id until its turn has ended. What a
   page shows of it comes from the server's rows or from what is kept, never from a guess. Of all
   tabs one acts: it holds the stream and sends; the others hear from it, and act themselves when
   it falls silent. Two that act at once cost a request more and do no harm. */
(() => {
"use strict";
const TEXTS = { en: {} }; // The server puts the texts of all languages here.
const given = window.answerback || {};
if (given.signOut) return;
const script = document.currentScript || document.querySelector("script[src*='/web/answerback.js']"); // a module has no current one
const option = (name) => given[name] ?? script?.dataset[name] ?? "";
const api = new URL("v1/", given.server || script.src).href;

const SILENCE = 25000; // ms: the server comments every 10 s; two missed, and the stream is dead.
const LIMIT = 20000; // ms for a request.
const TAB_ANSWERS = 3000; // ms in which the acting tab answers another.
const SLOWEST = 8000; // ms between two tries.
const PAGE = 50;
const A_DAY = 86400000; // ms

const locale = (option("lang") || document.documentElement.lang || navigator.language || "en").toLowerCase();
const language = [locale, locale.split("-")[0]].find((tag) => TEXTS[tag]) || Object.keys(TEXTS)[0]; // the operator's own comes first
const words = { ...TEXTS.en, ...TEXTS[language] };
const say = (key, count) => (words[key] || "").replace("{count}", count);
const hex = (bytes) => Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, "0")).join("");

// ---- What is kept. Where the browser refuses, this page's memory stands in.

const prefix = `answerback:${api}:`;
const memory = new Map();
const kept = {
  get(key) {
    if (memory.has(key)) return memory.get(key);
    try { return JSON.parse(localStorage.getItem(prefix + key)) ?? undefined; } catch { return undefined; }
  },
  set(key, value) {
    memory.delete(key);
    try { localStorage.setItem(prefix + key, JSON.stringify(value)); } catch { memory.set(key, value); }
  },
  drop(key) {
    memory.delete(key);
    try { localStorage.removeItem(prefix + key); } catch { /* It was never there. */ }
  },
  keys(start) {
    const found = new Set([...memory.keys()].filter((key) => key.startsWith(start)));
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith(prefix + start)) found.add(key.slice(prefix.length));
      }
    } catch { /* Blocked: there is only memory. */ }
    return [...found];
  },
};

// Files of messages that are not sent yet, by request_id: too large for localStorage.
const picked = new Map();
const cabinet = (mode, act) => new Promise((done, failed) => {
  const opening = indexedDB.open("answerback", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("files");
  opening.onerror = () => failed(opening.error);
  opening.onsuccess = () => {
    const work = opening.result.transaction("files", mode);
    const asked = act(work.objectStore("files"));
    work.oncomplete = () => { opening.result.close(); done(asked.result); };
    work.onabort = () => failed(work.error);
  };
}).catch(() => undefined); // A file that could not be kept is asked for again.
const filesOf = async (id) => picked.get(id) || (await cabinet("readonly", (all) => all.get(prefix + id)));

// ---- What is known of the chat.

let session = kept.get("session");
let since = session?.since || 0; // ms, when it began or ended: the newest counts in all tabs
let items = new Map(); // n -> a message of the history
let turns = new Map(); // request_id -> its phase
let last = 0; // the number of the last event
let heardTo; // the number up to which a screen reader was told what was said
let seen = 0;
let more = false; // older history
let link = { live: false, down: 0, halted: "" }; // of the acting tab
const written = new Map(); // request_id -> a message of this browser that is not in the history yet
const fresh = new Set(); // never sent; for all others the server is asked before anything is sent

const EVENTS = { accepted: "RECEIVED", working: "WORKING", still_working: "STILL_WORKING", withdrawn: "STOPPED" };
const OVER = { completed: "ANSWERED", withdrawn: "STOPPED", interrupted: "FAILED" };
const isOver = (id) => Object.values(OVER).includes(turns.get(id));

const works = (id) => /WORKING/.test(turns.get(id));

const voiced = new Set(); // what a screen reader was told of turns

function mark(id, phase) {
  if (/WORKING/.test(phase) && !voiced.has(id + phase)) announce(say(phase));
  voiced.add(id + phase);
  turns.set(id, phase);
}

/** A status as an answer to a question tells it: it may be older than an event that came before. */
function learn(id, { status, queued }) {
  const known = turns.get(id);
  if (OVER[status]) mark(id, OVER[status]);
  else if (known === undefined || (known === "RECEIVED" && queued === false)) mark(id, queued === false ? "WORKING" : "RECEIVED");
}

/** Of a turn whose answer is there nothing more is said until it has ended. It is the only one that
    is worked on, with all messages that it answers. */
function answered({ by, request_id }) {
  if (by === "agent" && works(request_id)) for (const id of turns.keys()) if (works(id)) turns.set(id, "");
}

/** Tell a screen reader what was said to the person, once. */
function voice({ n, kind, text }) {
  if (n <= heardTo) return;
  heardTo = n;
  if (kind !== "accepted") announce(markdown(text || "").map((block) => block.textContent).join("\n"));
}

function put(item) {
  if (item.kind === "accepted") {
    written.delete(item.request_id);
    // What is tried again is accepted once more, and stays one message, where it was first.
    const other = [...items.values()].find((of) => of.kind === "accepted" && of.request_id === item.request_id);
    if (other?.n < item.n) return;
    if (other) items.delete(other.n);
    if (item.status) learn(item.request_id, item);
  }
  items.set(item.n, item);
}

function forget() {
  items = new Map();
  turns = new Map();
  last = seen = 0;
  heardTo = undefined;
  more = false;
}

/** One event of the stream, from the server or from the acting tab. False: some were missed. */
function apply(kind, data) {
  const id = data.request_id;
  if (kind === "resync") forget();
  else if (kind === "snapshot") {
    data.messages.forEach(put);
    for (const turn of data.turns) {
      learn(turn.request_id, turn);
      if (turn.answering) turns.set(turn.request_id, "");
    }
    last = heardTo = data.n;
    const ours = data.messages.filter((item) => item.kind !== "accepted");
    seen = Math.max(seen, ours[ours.length - data.unread - 1]?.n || 0);
    more = data.more;
  } else {
    if (data.n <= last) return true;
    if (data.n > last + 1) return false;
    last = data.n;
    if (kind === "accepted" || kind === "message" || kind === "notice") {
      put({ ...data, kind });
      answered(data);
      voice({ ...data, kind });
    }
    if (EVENTS[kind] && !(kind === "accepted" && works(id))) mark(id, EVENTS[kind]);
    if (kind === "ended") mark(id, OVER[data.status] || "ANSWERED");
  }
  return true;
}

// ---- Talking to the server.

class Later extends Error { constructor(seconds) { super("later"); this.after = Number(seconds) * 1000 || 0; } }
class Halt extends Error {}

function halt(key) {
  link = { ...link, live: false, halted: key };
  tell("beat", link);
  draw();
  throw new Halt(key);
}

async function request(path, { method = "GET", body, headers, signal, token = session?.token, again = true } = {}) {
  const text = body && JSON.stringify(body);
  const asking = session;
  const answer = await fetch(api + path, {
    method, signal, body: text, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    keepalive: method !== "GET" && (text || "").length < 20000, // It leaves even if the tab is closed now; a browser refuses 64 KiB.
    headers: { ...headers, ...(body && { "Content-Type": "application/json" }), ...(token && { Authorization: `Bearer ${token}` }) },
  });
  if (answer.status === 401 && path !== "session") {
    if (again) await renew(token);
    if (!again || !session || session.token === token) halt("SIGN_IN");
    if (asking?.signed_in && session.chat !== asking.chat) throw new Later(); // It is somebody else's by now.
    return request(path, { method, body, headers, signal, again: false });
  }
  if (answer.status === 403) halt("NOT_HERE");
  if ([408, 429].includes(answer.status) || answer.status >= 500) throw new Later(answer.headers.get("Retry-After"));
  return answer;
}

async function call(path, options = {}) {
  const abort = new AbortController();
  const limit = setTimeout(() => abort.abort(), LIMIT);
  try {
    const answer = await request(path, { ...options, signal: abort.signal });
    const json = answer.status === 204 ? {} : await answer.json();
    return { ...json, code: answer.status };
  } finally {
    clearTimeout(limit);
  }
}

// ---- Who it is: a guest, or whom the page signs in.

let identity = option("identity");
let unsure = !!identity && !!session?.signed_in; // until the page says that it is still the same user

/** The page's word on who it is; nothing for a guest. */
async function identified() {
  const jwt = typeof identity === "function" ? await identity() : identity;
  if (!jwt && session?.signed_in) begin(undefined);
  return jwt;
}

let entering = Promise.resolve();
const enter = (jwt, again) => (entering = entering.catch(() => undefined).then(() => (jwt || again || !session) && enterOnce(jwt)));

/** Take a token: with the page's word as its user, and a guest's chat goes along; else as a guest. */
async function enterOnce(jwt) {
  const ask = (token) => call("session", { method: "POST", body: jwt ? { identity: jwt } : {}, token });
  const guest = session?.signed_in ? "" : session?.token || "";
  let answer = await ask(guest);
  if (answer.code === 401 && guest) answer = await ask("");
  if (!answer.token) halt("SIGN_IN");
  begin({ token: answer.token, chat: answer.chat, signed_in: !!jwt, since: moment(since) });
}

/** Now, in ms, and never before what was: a clock may be set back. */
const moment = (was) => Math.max(Date.now(), was + 1);
const isLeft = (next) => !!session?.signed_in && session.chat !== next?.chat;

/** Begin a session, or end one, for all tabs. What one user wrote never becomes another's: it is
    wiped; what a guest wrote goes along. */
function begin(next, wipe = isLeft(next)) {
  for (const key of kept.keys("")) if (wipe || key === "session") kept.drop(key);
  settle(next, next?.since || moment(since), wipe);
  if (next) kept.set("session", next);
  tell("session", { session, since, wipe });
}

function settle(next, at, wipe = isLeft(next)) {
  if (at < since) return;
  since = at;
  if (next?.chat !== session?.chat) {
    stopStream();
    forget();
  }
  if (wipe) {
    written.clear();
    picked.clear();
    memory.clear();
    cabinet("readwrite", (all) => all.clear());
  }
  session = next;
  link = { ...link, halted: "" };
  draw();
}

/** Ask the page for a new token, once for all who wait for it. */
let renewing;
async function renew(token) {
  if (session && session.token !== token) return;
  renewing ||= identified().then((jwt) => jwt && enter(jwt)).finally(() => { renewing = undefined; });
  await renewing;
}

// ---- The tab that acts.

const me = hex(8);
let rank = me; // the lowest acts: "" has the lock
let acting = false;
let wanted = false; // somebody wants this chat: it was opened, or something is to be sent
let letGo; // gives the lock back
let quiet; // a timer: the acting tab says nothing
let unanswered = false; // no acting tab has told its state since it was asked for
let channel;

const tell = (kind, value) => channel?.postMessage({ kind, value, rank: acting ? rank : undefined });
const state = () => ({
  last, seen, link, session, since, turns: [...turns], more: more || items.size > PAGE,
  items: [...items.values()].sort((a, b) => a.n - b.n).slice(-PAGE),
});

function listen() {
  try { channel = new BroadcastChannel(prefix); } catch { channel = undefined; }
  if (!channel || !navigator.locks) return act();
  channel.onmessage = ({ data }) => hear(data);
  const giveUp = new AbortController();
  letGo = () => giveUp.abort();
  navigator.locks.request(prefix, { signal: giveUp.signal }, () => new Promise((release) => {
    letGo = release;
    rank = "";
    act();
  })).catch(() => undefined);
  ask();
}

function ask() {
  unanswered = true;
  tell("hello");
  expect(TAB_ANSWERS);
}

/** Act in its place if the acting tab says nothing for so long. */
function expect(limit) {
  clearTimeout(quiet);
  if (!acting) quiet = setTimeout(act, limit);
}

function act() {
  clearTimeout(quiet);
  acting = true;
  follow();
  flush();
}

function hear({ kind, value, rank: theirs }) {
  if (acting && theirs < rank) {
    acting = false;
    unanswered = true; // The other may know more.
    stopStream();
  }
  if (!acting && theirs !== undefined) expect(2 * SILENCE);
  if (kind === "hello" && acting) tell("state", state());
  if (kind === "outbox") {
    wanted = true;
    reload();
    if (acting) tell("beat", link), act();
  }
  if (kind === "seen") seen = Math.max(seen, value);
  if (kind === "session") {
    settle(value.session, value.since, value.wipe);
    if (acting) act();
  }
  if (kind === "beat" && !acting) {
    link = value;
    if (unanswered) ask(); // Nobody acted when it was asked for.
  }
  if (kind === "event" && !acting && !apply(value.kind, value.data)) ask();
  if (kind === "state" && !acting) {
    if (value.since < since) return; // It has not heard yet that another session began.
    unanswered = false;
    settle(value.session, value.since);
    value.items.forEach(put);
    turns = new Map(value.turns);
    ({ last, more, link } = value);
    seen = Math.max(seen, value.seen);
  }
  tidy();
}

// ---- Following the chat.

let following = false;
let abort; // the open stream's
let wake = () => undefined;
let tried = 0;
let heard = 0; // ms, when the stream last said anything

const stopStream = () => abort?.abort();
const rest = (ms) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  wake = () => { if (Date.now() - tried > 2000) { clearTimeout(timer); done(); } };
});

/** A phone that slept has a stream that looks open and is dead: one missed comment is enough. */
function revive() {
  if (Date.now() - heard > SILENCE / 2) stopStream();
  wake();
}

function report(live) {
  if (live !== link.live || (!live && !link.down)) {
    link = { ...link, live, down: live ? 0 : link.down || Date.now() };
    if (!live) setTimeout(draw, 2100);
    draw();
  }
  tell("beat", link);
}

const isWanted = () => acting && !unsure && !link.halted && (session || wanted);

async function follow() {
  if (following || !isWanted()) return;
  following = true;
  let pause = 1000;
  while (isWanted()) {
    tried = Date.now();
    tell("beat", link);
    let after = 0;
    try {
      if (!session) await enter();
      after = await stream();
    } catch (error) {
      if (error instanceof Halt) break;
      after = error.after || 0;
    }
    const came = link.live;
    const long = Date.now() - tried > 10000;
    report(false);
    if (!came && (long || pause > 2000)) await catchUp();
    // A stream that ends as soon as it began gets no quick return either.
    if (came && long) pause = 1000;
    if (isWanted()) await rest(Math.max(after, pause * (0.5 + Math.random())));
    pause = Math.min(2 * pause, SLOWEST);
  }
  following = false;
}

/** Read the history where no stream comes through: some proxies hold back what does not end. */
async function catchUp() {
  const { chat } = session || {};
  const page = chat && (await call(`messages?limit=${PAGE}`).catch(() => undefined));
  if (!page?.messages || session?.chat !== chat) return;
  page.messages.forEach(put);
  page.messages.forEach(answered);
  heardTo ??= Math.max(0, ...page.messages.map((item) => item.n));
  page.messages.forEach(voice);
  if (!last) more = page.more;
  tell("state", state());
  tidy();
}

/** Read the stream until it ends; the time in ms that the server asks to wait. */
async function stream() {
  abort = new AbortController();
  const { signal } = abort;
  let dog;
  const watch = () => { heard = Date.now(); clearTimeout(dog); dog = setTimeout(stopStream, SILENCE); };
  let after = 0;
  try {
    watch();
    const answer = await request("events", { signal, headers: last ? { "Last-Event-ID": last } : {} });
    if (answer.status === 404) halt("NOT_HERE");
    if (!(answer.headers.get("Content-Type") || "").startsWith("text/event-stream")) throw new Later();
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return after;
      watch();
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const field = (name) => block.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
        after = Number(field("retry")) || after;
        const event = { kind: field("event"), data: field("data") && JSON.parse(field("data")) };
        if (!event.data) continue;
        if (!apply(event.kind, event.data)) { last = 0; return after; }
        tell("event", event);
      }
      if (!link.live) flush();
      report(true);
      tidy();
    }
  } finally {
    clearTimeout(dog);
  }
}

// ---- The outbox.

let flushing = false;
let flushAgain;
let backoff = 1000;

const outbox = () => kept.keys("o:").map(kept.get).filter(Boolean).sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));

/** Show what is kept, also by another tab. */
function reload() {
  for (const entry of outbox()) written.set(entry.id, entry);
  tidy();
}

/** Keep a message nobody can lose now, and send it. */
async function write(body, files = []) {
  const entry = { ...body, id: `w${hex(12)}`, at: moment(outbox().pop()?.at || 0), files: files.map(({ name, type, size }) => ({ name, type, size })) };
  fresh.add(entry.id);
  kept.set(`o:${entry.id}`, entry);
  written.set(entry.id, entry);
  if (files.length) {
    picked.set(entry.id, files);
    cabinet("readwrite", (all) => all.put(files, prefix + entry.id));
  }
  draw();
  list.scrollTop = list.scrollHeight;
  summon();
}

/** Let the acting tab do what there is to do. */
function summon() {
  wanted = true;
  tell("outbox");
  if (acting) return act();
  expect(TAB_ANSWERS);
  flush(); // what is kept by this tab alone
}

/** Send what is not known to be received, one after the other. */
async function flush() {
  clearTimeout(flushAgain);
  if (flushing || unsure || link.halted) return;
  flushing = true;
  try {
    for (let entry; (entry = outbox().find(isDue));) await send(entry);
    backoff = 1000;
  } catch (error) {
    if (!(error instanceof Halt)) flushAgain = setTimeout(flush, Math.max(error.after || 0, backoff * (0.5 + Math.random())));
    backoff = Math.min(2 * backoff, SLOWEST);
  }
  flushing = false;
  tidy();
}

// What could not be kept is known to this tab alone.
const isDue = ({ id, refused }) => !refused && !turns.has(id) && (acting || memory.has(`o:${id}`));

async function send(entry) {
  const { id, text, button } = entry;
  if (!session) await enter();
  const { chat } = session;
  if (!fresh.delete(id)) {
    const answer = await call(`turns/${id}`);
    if (answer.status && answer.status !== "unknown") {
      learn(id, answer);
      if (isOver(id)) discard(id); // It is in the history, however long ago.
      return;
    }
  }
  const body = { request_id: id, ...(button ? { button } : { text }) };
  if (entry.files?.length) {
    const found = await filesOf(id);
    if (!found) return refuse(entry, "FILE_LOST");
    body.files = await Promise.all(found.map(async (file) => ({ name: file.name, type: file.type, data: await encoded(file) })));
  }
  if (session?.chat !== chat) return; // Another session began meanwhile.
  const answer = await call("messages", { method: "POST", body });
  if (answer.status) learn(id, answer);
  else if (answer.code >= 400 && answer.code !== 404) refuse(entry, answer.code === 413 ? "TOO_LARGE" : "REFUSED");
  else throw new Later();
  if (!turns.has(id) && !entry.refused) throw new Later();
  tidy();
}

const encoded = (file) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.split(",")[1] || "");
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(file);
});

function refuse(entry, why) {
  entry.refused = why;
  kept.set(`o:${entry.id}`, entry);
  written.set(entry.id, entry);
}

function discard(id) {
  kept.drop(`o:${id}`);
  written.delete(id);
  picked.delete(id);
}

/** Keep nothing any longer than until the end of its turn is known. */
function tidy() {
  for (const entry of outbox()) {
    if (isOver(entry.id)) {
      kept.drop(`o:${entry.id}`);
      if (entry.files?.length) cabinet("readwrite", (all) => all.delete(prefix + entry.id));
    }
  }
  draw();
}

function sendAgain(item) {
  const { id, request_id, text, button } = item;
  const offers = [...items.values()].filter((of) => request_id && of.kind !== "accepted" && of.request_id === request_id);
  const again = offers.flatMap((of) => of.buttons || []).findLast((of) => of.data && !of.url);
  if (again) return write({ button: again.data, text: again.label });
  const files = picked.get(id) || [];
  if (id) discard(id);
  write(button ? { button, text } : { text }, files);
}

// ---- Markdown into nodes. Time grows with the length: each mark is opened and closed once.

const DEEPEST = 8;
const MOST = 1500; // elements in a message; the rest is shown as it was written
const BIDI = /[\u202a-\u202e\u2066-\u2069]/g;
let made = 0;

function node(tag, ...children) {
  made += 1;
  const it = document.createElement(tag);
  it.append(...children);
  return it;
}

function anchor(address, children) {
  if (!address || address.length > 2000 || /[\s\u0000-\u001f]/.test(address)) return undefined;
  let url;
  try { url = new URL(address); } catch { return undefined; }
  if (!["https:", "http:", "mailto:"].includes(url.protocol)) return undefined;
  const it = node("a", ...children);
  it.href = url.href;
  it.rel = "noopener noreferrer nofollow";
  it.target = "_blank";
  const shown = it.textContent.trim();
  const place = url.host || url.pathname;
  const tells = url.host ? `${shown}/`.startsWith(`${url.origin}/`) && !url.username : shown === place;
  if (tells) return [it];
  const host = node("span", ` (${place})`);
  host.className = "host";
  return [it, host];
}

function inline(text) {
  const frames = [{ mark: "", parts: [], plain: "" }];
  const ticks = new Map(); // where backticks stand, by how many they are, the last one first
  for (const { 0: { length }, index } of [...text.matchAll(/`+/g)].reverse()) {
    if (!ticks.get(length)?.push(index)) ticks.set(length, [index]);
  }
  const top = () => frames[frames.length - 1];
  const flushPlain = (frame) => { if (frame.plain) { frame.parts.push(frame.plain); frame.plain = ""; } };
  const add = (parts) => { // Text beside text is one node: a page slows down by their number.
    for (const part of parts) {
      if (typeof part === "string") top().plain += part;
      else { flushPlain(top()); top().parts.push(part); }
    }
  };
  const fall = () => { // an opened mark that nothing closed is text
    const frame = frames.pop();
    flushPlain(frame);
    add([frame.lead, ...frame.parts]);
  };
  const open = (mark, lead = mark) => { if (frames.length < DEEPEST && made < MOST) frames.push({ mark, lead, parts: [], plain: "" }); else top().plain += lead; };
  const close = (mark) => {
    while (top().mark !== mark) fall();
    const frame = frames.pop();
    flushPlain(frame);
    return frame;
  };
  const isOpen = (mark) => frames.some((frame) => frame.mark === mark);
  const token = /\\[!-/:-@[-`{-~]|`+|\*\*|__|~~|[*_]|!?\[|\]|https?:\/\/[^\s<>"'`*[\]]+|[^\\`*_~[\]!h]+|./gsu;
  let ending = 0; // the next ")"
  let match;
  while ((match = token.exec(text))) {
    const it = match[0];
    const at = match.index;
    const after = text[token.lastIndex] || " ";
    const before = text[at - 1] || " ";
    if (it[0] === "\\" && it.length === 2) top().plain += it[1];
    else if (it[0] === "`") {
      const places = ticks.get(it.length) || [];
      while (places[places.length - 1] < token.lastIndex) places.pop();
      const end = places[places.length - 1];
      if (end === undefined || made > MOST) { top().plain += it; continue; }
      const code = text.slice(token.lastIndex, end);
      add([node("code", code.trim() && /^ .* $/s.test(code) ? code.slice(1, -1) : code)]);
      token.lastIndex = end + it.length;
    } else if (/^(\*\*|__|~~|[*_])$/.test(it)) {
      const word = /[\p{L}\p{N}]/u;
      const inWord = it[0] === "_" && word.test(before) && word.test(after);
      if (!inWord && /\S/.test(before) && isOpen(it) && (top().mark !== it || top().parts.length || top().plain)) {
        const { parts } = close(it);
        add([node(it === "~~" ? "del" : it.length === 2 ? "strong" : "em", ...parts)]);
      } else if (!inWord && /\S/.test(after)) open(it);
      else top().plain += it;
    } else if (it.endsWith("[")) {
      if (isOpen("[")) top().plain += it; // no link in a link
      else open("[", it);
    } else if (it === "]" && isOpen("[")) {
      const from = token.lastIndex + 1;
      if (ending >= 0 && ending < from) ending = text.indexOf(")", from);
      const leads = after === "(" && ending >= from && /^<?(https?:|mailto:)/i.test(text.slice(from, from + 8));
      const address = leads && ending - from < 2000 ? text.slice(from, ending).replace(/^<(.*)>$/, "$1") : "";
      const { lead, parts } = close("[");
      const shown = anchor(address, parts.map((part) => (typeof part === "string" ? part.replace(BIDI, "") : part)));
      if (shown) token.lastIndex = ending + 1;
      add(shown || [lead, ...parts, it]);
    } else if (/^https?:\/\/./.test(it) && !isOpen("[") && made < MOST) {
      let end = it.length;
      while (/[).,:;!?_~]/.test(it[end - 1])) end -= 1;
      const address = it.slice(0, end);
      const shown = anchor(address, [address.replace(BIDI, "")]);
      if (shown) token.lastIndex = at + end;
      add(shown || [it]);
    } else top().plain += it;
  }
  while (frames.length > 1) fall();
  flushPlain(top());
  return top().parts;
}

function blocks(lines, depth = 0) {
  const out = [];
  let paragraph = [];
  const flushParagraph = () => {
    if (paragraph.length) out.push(node("p", ...inline(paragraph.join("\n"))));
    paragraph = [];
  };
  const take = (at, test) => { let end = at; while (end < lines.length && test(lines[end])) end += 1; return lines.slice(at, end); };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    const fence = line.match(/^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^`]*$/);
    const bullet = line.match(/^( {0,3})([-*+]|(\d{1,9})[.)])( +)(?=\S)/);
    const heading = line.match(/^ {0,3}#{1,6} +(\S.*)$/);
    if (made > MOST || depth > DEEPEST) paragraph.push(line);
    else if (fence) {
      flushParagraph();
      const code = take(at + 1, (next) => !next.trimStart().startsWith(fence[1]));
      at += code.length + 1;
      out.push(node("pre", node("code", code.join("\n"))));
    } else if (/^ {0,3}>/.test(line)) {
      flushParagraph();
      const quoted = take(at, (next) => /^ {0,3}>/.test(next));
      at += quoted.length - 1;
      out.push(node("blockquote", ...blocks(quoted.map((next) => next.replace(/^ {0,3}> ?/, "")), depth + 1)));
    } else if (/^\s*\|.*\|\s*$/.test(line)) { // a table keeps its columns
      flushParagraph();
      const rows = take(at, (next) => /^\s*\|/.test(next));
      at += rows.length - 1;
      out.push(node("pre", rows.join("\n")));
    } else if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) flushParagraph();
    else if (heading) {
      flushParagraph();
      out.push(node("p", node("strong", ...inline(heading[1].trimEnd().replace(/ #+$/, "").trimEnd()))));
    } else if (bullet) {
      flushParagraph();
      const width = bullet[0].length;
      const inner = [line.slice(width), ...take(at + 1, (next) => !next.trim() || next.search(/\S/) >= Math.min(width, 2))];
      while (inner.length > 1 && !inner[inner.length - 1].trim()) inner.pop();
      at += inner.length - 1;
      const tag = bullet[3] ? "ol" : "ul";
      let to = out[out.length - 1];
      if (to?.localName !== tag) {
        out.push((to = node(tag)));
        if (bullet[3]) to.start = Number(bullet[3]);
      }
      to.append(node("li", ...blocks(inner.map((next, n) => (n ? next.replace(new RegExp(`^ {0,${width}}`), "") : next)), depth + 1)));
    } else if (!line.trim()) flushParagraph();
    else paragraph.push(line.trimStart());
  }
  flushParagraph();
  return out;
}

function markdown(text) {
  made = 0;
  return blocks(String(text).replace(/\r\n?/g, "\n").split("\n"));
}

// ---- What a person sees.

const css = `
:host{all:initial}
*{box-sizing:border-box;font:inherit;margin:0}
.root{--accent:#1f5fbf;--on:#fff;--back:#fff;--soft:#f0f2f5;--text:#1b1f24;--dim:#57606a;--line:#d0d7de;font:16px/1.45 system-ui,sans-serif;color:var(--text)}
.root[data-theme=dark]{--accent:#4c8dee;--on:#0b1320;--back:#161b22;--soft:#262d36;--text:#e9edf1;--dim:#a3adb8;--line:#3a434d;color-scheme:dark}
button{cursor:pointer;border:0;background:none;color:inherit;padding:0}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
svg{width:24px;height:24px;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;stroke-linejoin:round;display:block}
.launch{position:fixed;inset-block-end:20px;inset-inline-end:20px;width:56px;height:56px;border-radius:50%;background:var(--accent);color:var(--on);display:grid;place-items:center;box-shadow:0 4px 16px #0004;z-index:2147483000}
.badge{position:absolute;inset-block-start:-4px;inset-inline-end:-4px;min-width:22px;border-radius:11px;padding:0 6px;background:#c62828;color:#fff;font-size:13px;line-height:22px;text-align:center}
.panel{position:fixed;inset-block-end:88px;inset-inline-end:20px;width:384px;height:min(620px,calc(100dvh - 108px));display:flex;flex-direction:column;background:var(--back);border:1px solid var(--line);border-radius:14px;overflow:hidden;box-shadow:0 12px 40px #0005;z-index:2147483001}
[hidden]{display:none!important}
header{display:flex;align-items:center;gap:8px;padding:10px 14px;background:var(--accent);color:var(--on);font-weight:600}
header :first-child{flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.list{flex:1;overflow-y:auto;padding:14px;display:flex;flex-direction:column;gap:10px;overscroll-behavior:contain;list-style:none}
.list li.item{max-width:86%;align-self:flex-start;min-width:0}
.list li.mine{align-self:flex-end;display:flex;flex-direction:column;align-items:flex-end}
.bubble{padding:8px 12px;border-radius:12px;background:var(--soft);overflow-wrap:anywhere;unicode-bidi:isolate}
.mine .bubble{background:var(--accent);color:var(--on);white-space:pre-wrap}
.notice .bubble{background:none;border:1px solid var(--line)}
.bubble p{white-space:pre-wrap}
.bubble>*+*{margin-block-start:8px}
.bubble strong{font-weight:700}.bubble em{font-style:italic}
.bubble ul,.bubble ol{padding-inline-start:22px}
.bubble code,.bubble pre{font:14px/1.4 ui-monospace,monospace}
.bubble pre{overflow-x:auto;padding:8px;border:1px solid var(--line);border-radius:8px;white-space:pre;overflow-wrap:normal}
.bubble blockquote{border-inline-start:3px solid var(--line);padding-inline-start:10px;color:var(--dim)}
.bubble a{color:inherit;text-decoration:underline;unicode-bidi:isolate}
.host{color:var(--dim);unicode-bidi:isolate}
.choices{display:flex;flex-wrap:wrap;gap:6px;margin-block-start:6px}
a{color:inherit}
.choice,.link{overflow-wrap:anywhere;border:1px solid var(--line);border-radius:16px;padding:5px 12px;color:inherit;text-decoration:none;background:var(--back)}
.phase{font-size:13px;color:var(--dim);padding:2px 4px;text-align:end}
.phase button{text-decoration:underline;padding:2px 4px}
.bad .phase{color:#c62828}.root[data-theme=dark] .bad .phase{color:#ff8a80}
.busy .phase::after{content:"";display:inline-block;width:8px;height:8px;margin-inline-start:6px;border-radius:50%;background:currentColor;animation:pulse 1.2s infinite}
@keyframes pulse{50%{opacity:.2}}
.bar{padding:6px 14px;font-size:14px;background:var(--soft);color:var(--text);display:flex;flex-wrap:wrap;gap:8px;align-items:center;max-height:30%;overflow-y:auto;flex:none}
.bar .choice{max-width:100%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
form{display:flex;gap:6px;align-items:flex-end;padding:10px;border-block-start:1px solid var(--line);padding-block-end:max(10px,env(safe-area-inset-bottom))}
textarea{flex:1;min-width:0;border:1px solid var(--line);border-radius:10px;padding:8px 10px;background:var(--back);color:inherit;font-size:16px;resize:none;height:42px;max-height:140px;field-sizing:content}
form button{width:42px;height:42px;display:grid;place-items:center;border-radius:10px;color:var(--dim);flex:none}
form .send{background:var(--accent);color:var(--on)}
.told{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media(width<=700px),(height<=400px){.panel{inset:0;width:auto;height:100dvh;border:0;border-radius:0}}
@media(prefers-reduced-motion:reduce){*{animation:none!important}}`;

const make = (tag, props = {}, ...children) => {
  const it = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in it && name !== "role") it[name] = value;
    else it.setAttribute(name, value);
  }
  it.append(...children.filter((child) => child));
  return it;
};
const icon = (d) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS(svg.namespaceURI, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", d);
  svg.append(path);
  return svg;
};
const press = (className, label, d, onclick) => make("button", { className, type: "button", "aria-label": label, title: label, onclick }, icon(d));

let opened = false;
let attached = []; // files of the message that is being written
const nodes = new Map(); // key -> [element, what it shows]

const title = option("title") || say("TITLE");
const badge = make("span", { className: "badge", hidden: true });
const launch = make("button", { className: "launch", type: "button", onclick: () => (opened ? hide() : show()) }, icon("M4 5h16v11H9l-5 4z"), badge);
const told = make("div", { className: "told", role: "status", "aria-live": "polite" });
const unseen = (key) => make("span", { className: "told", textContent: say(key) });
const earlier = make("li", { hidden: true }, make("button", { className: "link", type: "button", textContent: say("EARLIER"), onclick: loadEarlier }));
const greeting = make("li", { className: "item notice" }, unseen("ASSISTANT"), make("div", { className: "bubble", dir: "auto", textContent: option("greeting") || say("GREETING") }));
const list = make("ul", { className: "list", role: "list", "aria-label": title, tabIndex: 0 }, earlier, greeting);
const bar = make("div", { className: "bar", hidden: true });
const unsaved = make("div", { className: "bar", hidden: true, textContent: say("NOT_KEPT") });
const chips = make("div", { className: "bar", hidden: true });
const field = make("textarea", { rows: 1, dir: "auto", "aria-label": say("WRITE"), placeholder: say("WRITE") });
const chooser = make("input", { type: "file", multiple: true, hidden: true, onchange: pick });
const stop = press("stop", say("STOP"), "M7 7h10v10H7z", stopTurn);
const form = make("form", { onsubmit: (event) => { event.preventDefault(); submit(); } },
  press("attach", say("ATTACH"), "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7L9.3 17a1.6 1.6 0 0 1-2.3-2.3l7.500-7.500", () => chooser.click()),
  chooser, field, stop,
  make("button", { className: "send", "aria-label": say("SEND"), title: say("SEND") }, icon("M12 19V5M5 12l7-7 7 7")));
const panel = make("section", { className: "panel", role: "dialog", "aria-label": title, hidden: true },
  make("header", {}, make("span", { textContent: title }), press("close", say("CLOSE"), "M6 6l12 12M18 6L6 18", hide)),
  list, bar, unsaved, chips, form);
const root = make("div", { className: "root", lang: language, dir: /^(ar|fa|he|ur)/.test(language) ? "rtl" : "ltr" }, panel, launch, told);
const host = document.createElement("answerback-chat");
host.dir = root.dir; // A page can tell on which side the chat stands.
const shadow = host.attachShadow({ mode: "open" });
const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
shadow.adoptedStyleSheets = [sheet];
shadow.append(root);
// A page's shortcuts are not for who writes here.
for (const kind of ["keydown", "keyup", "keypress"]) host.addEventListener(kind, (event) => event.stopPropagation());
shadow.addEventListener("keydown", (event) => { if (event.key === "Escape" && opened) hide(); });
field.addEventListener("keydown", (event) => {
  // 229: Safari ends a composition before it tells of the key.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  submit();
});

const dark = matchMedia("(prefers-color-scheme: dark)");
const light = (r, g, b) => 0.2126 * (r / 255) ** 2.2 + 0.7152 * (g / 255) ** 2.2 + 0.0722 * (b / 255) ** 2.2 > 0.18;
function paint() {
  root.dataset.theme = option("theme") || (dark.matches ? "dark" : "light");
  if (!option("color")) return;
  root.style.setProperty("--accent", option("color"));
  const rgb = getComputedStyle(launch).backgroundColor.match(/^rgba?\((\d+), (\d+), (\d+)/);
  if (rgb) root.style.setProperty("--on", light(...rgb.slice(1)) ? "#000" : "#fff"); // to be read on any colour
}
dark.addEventListener?.("change", paint);

function show() {
  opened = true;
  panel.hidden = false;
  summon();
  draw();
  list.scrollTop = list.scrollHeight;
  field.focus();
}

function hide() {
  opened = false;
  panel.hidden = true;
  draw();
  launch.focus();
}

function submit() {
  const text = field.value.trim();
  if (!text && !attached.length) return;
  field.value = "";
  write({ text }, attached);
  attached = [];
  drawChips();
}

function pick() {
  attached = [...attached, ...chooser.files];
  chooser.value = "";
  drawChips();
  field.focus();
}

function drawChips() {
  chips.hidden = !attached.length;
  chips.replaceChildren(...attached.map((file) => make("button", {
    className: "choice", type: "button", textContent: `${file.name} ×`,
    onclick: () => { attached = attached.filter((other) => other !== file); drawChips(); },
  })));
}

let notStopped = false;
async function stopTurn() {
  const { code } = await call("stop", { method: "POST", body: {} }).catch(() => ({ code: 0 }));
  notStopped = !(code >= 200 && code < 300);
  draw();
}

async function loadEarlier() {
  const { chat } = session || {};
  const first = Math.min(...items.keys());
  try {
    const page = await call(`messages?before=${first}&limit=${PAGE}`);
    if (session?.chat !== chat || !page.messages) return; // It is another chat by now.
    page.messages.forEach(put);
    more = page.more;
    const below = list.scrollHeight - list.scrollTop;
    drawNow();
    list.scrollTop = list.scrollHeight - below;
  } catch { announce(say("RECONNECTING")); }
}

async function download(file) {
  try {
    const answer = await request(`files/${encodeURIComponent(file.ref)}`);
    if (!answer.ok) throw new Later();
    const url = URL.createObjectURL(await answer.blob());
    make("a", { href: url, download: file.name || "" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  } catch { announce(say("RECONNECTING")); }
}

/** Tell a screen reader, once: what comes in one moment together, and then it is not there to be
    read again. */
let telling = [];
let untell;
function announce(text) {
  if (telling.push(String(text).slice(0, 2000)) > 1) return;
  queueMicrotask(() => {
    told.textContent = telling.join("\n");
    telling = [];
    clearTimeout(untell);
    untell = setTimeout(() => told.replaceChildren(), 5000);
  });
}

const bytes = (size) => (size >= 1e6 ? `${(size / 1e6).toFixed(1)} MB` : `${Math.ceil(size / 1000)} kB`);
// A file bears its name; a caption beside that one is words.
const wordsOf = ({ text, files }) => [text, ...(files || []).map(({ name, caption }) => name && caption)].filter(Boolean).join("\n\n");
const named = ({ name, caption, kind, size }) => `${name || caption || kind}${size ? ` (${bytes(size)})` : ""}`;

function attachment(file) {
  if (file.ref) return make("button", { className: "link", type: "button", textContent: named(file), onclick: () => download(file) });
  return make("span", { className: "link" }, ...(anchor(file.url || "", [named(file)]) || [named(file)]));
}

function choice(button) {
  if (button.url) return make("span", { className: "choice" }, ...(anchor(button.url, [button.label]) || [button.label]));
  return make("button", { className: "choice", type: "button", textContent: button.label, onclick: () => write({ button: button.data, text: button.label }) });
}

function phaseOf(item) {
  if (item.refused) return item.refused;
  return turns.get(item.request_id || item.id) || (item.kind ? "" : navigator.onLine ? "SENDING" : "WAITING");
}

function element(item, phase) {
  const mine = !item.kind || item.kind === "accepted";
  const words = wordsOf(item);
  const bubble = make("div", { className: "bubble" }, ...(mine ? [words] : markdown(words)));
  bubble.dir = "auto"; // Last: a browser looks for the direction anew at each child.
  const by = unseen(mine ? "YOU" : item.by === "operator" ? "TEAM" : "ASSISTANT");
  const it = make("li", { className: `item ${mine ? "mine" : item.kind}` }, by, words && bubble);
  const extras = [...(item.files || []).map(attachment), ...(item.buttons || []).map(choice)];
  if (extras.length) it.append(make("div", { className: "choices" }, ...extras));
  if (mine) {
    const bad = ["FAILED", "REFUSED", "TOO_LARGE", "FILE_LOST"].includes(phase);
    it.classList.toggle("bad", bad);
    it.classList.toggle("busy", link.live && (phase === "WORKING" || phase === "STILL_WORKING"));
    it.append(make("div", { className: "phase" }, say(phase),
      bad && make("button", { type: "button", textContent: say("SEND_AGAIN"), onclick: () => sendAgain(item) }),
      item.refused && make("button", { type: "button", textContent: say("DISCARD"), onclick: () => { discard(item.id); draw(); } })));
  }
  return it;
}

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  queueMicrotask(() => { drawing = false; drawNow(); });
}

function drawNow() {
  const low = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const inHistory = [...items.values()].sort((a, b) => a.n - b.n);
  const recorded = new Set(inHistory.map((item) => item.kind === "accepted" && item.request_id));
  const unsaid = [...written.values()].filter(({ id }) => !recorded.has(id)).sort((a, b) => a.at - b.at);
  const shown = [...inHistory, ...unsaid];
  let before = greeting;
  const keys = new Set();
  for (const item of shown) {
    const key = item.id || item.n;
    const phase = phaseOf(item);
    const looks = JSON.stringify([item, item.kind && item.kind !== "accepted" ? 0 : [phase, link.live]]);
    let [it, was] = nodes.get(key) || [];
    if (was !== looks) {
      const now = element(item, phase);
      it?.replaceWith(now);
      nodes.set(key, [(it = now), looks]);
    }
    if (before.nextSibling !== it) before.after(it);
    before = it;
    keys.add(key);
  }
  for (const [key, [it]] of nodes) if (!keys.has(key)) { it.remove(); nodes.delete(key); }
  if (low) list.scrollTop = list.scrollHeight;
  greeting.hidden = more;
  earlier.hidden = !more;
  stop.hidden = ![...turns.values()].some((phase) => /RECEIVED|WORKING/.test(phase));
  drawBars();
  see(inHistory);
}

function drawBars() {
  const away = link.down && Date.now() - link.down > 2000;
  const key = link.halted || (!navigator.onLine ? "OFFLINE" : away ? "RECONNECTING" : notStopped ? "NOT_STOPPED" : "");
  if (bar.dataset.key !== key) {
    bar.dataset.key = key;
    bar.replaceChildren(say(key));
    if (key === "SIGN_IN" && (!identity || session?.signed_in === false)) bar.append(make("button", { className: "choice", type: "button", textContent: say("NEW_CHAT"), onclick: startAnew }));
    if (key && opened) announce(say(key));
  }
  bar.hidden = !key;
  unsaved.hidden = !memory.size;
}

function startAnew() {
  begin(undefined);
  summon();
}

let counted = ""; // what stands before the page's own title
function see(inHistory) {
  const ours = inHistory.filter((item) => item.kind !== "accepted");
  const newest = ours.length ? ours[ours.length - 1].n : 0;
  if (opened && newest > seen && document.visibilityState === "visible") {
    seen = newest;
    tell("seen", seen);
    call("seen", { method: "POST", body: { n: newest } }).catch(() => undefined); // the next one says it too
  }
  const unread = ours.filter((item) => item.n > seen).length;
  badge.hidden = !unread;
  badge.textContent = unread > 99 ? "99+" : unread;
  launch.setAttribute("aria-label", `${say(opened ? "CLOSE" : "OPEN")}${unread ? `, ${say("UNREAD", unread)}` : ""}`);
  const plain = document.title.startsWith(counted) ? document.title.slice(counted.length) : document.title;
  counted = unread ? `(${unread}) ` : "";
  if (document.title !== counted + plain) document.title = counted + plain;
}

// ---- Begin, leave, come back.

function leave() {
  stopStream();
  letGo?.();
  acting = false;
  rank = me;
  clearTimeout(quiet);
  channel?.close();
  channel = undefined;
}

function start() {
  (document.body || document.documentElement).append(host);
  paint();
  reload();
  wanted = written.size > 0;
  listen();
  introduce();
}

/** Sign in as the page says; when it can't say now, again a little later. */
async function introduce() {
  try {
    const jwt = identity && (await identified());
    const old = session && !session.signed_in && Math.abs(Date.now() - session.since) > A_DAY;
    if (jwt || old) await enter(jwt, old); // A guest's token is the only way to the chat.
    unsure = false;
    if (acting) act();
  } catch (error) {
    if (!(error instanceof Halt)) setTimeout(introduce, SLOWEST);
  }
}

addEventListener("online", () => { draw(); revive(); flush(); });
addEventListener("offline", draw);
addEventListener("storage", ({ key }) => { if (!key || key.startsWith(`${prefix}o:`)) { reload(); if (acting) flush(); } });
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") { revive(); draw(); } });
addEventListener("pagehide", leave);
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  const now = kept.get("session");
  if (now?.token !== session?.token) settle(now, now?.since || moment(since));
  reload();
  listen();
});

window.answerback = {
  open: show,
  close: hide,
  /** Sign in: a JWT, or a function that gives one (or a promise of one). */
  identify(next) {
    identity = next;
    return introduce();
  },
  /** Leave nothing readable in this browser. */
  async signOut() {
    identity = "";
    unsure = false;
    const token = session?.token;
    begin(undefined, true);
    if (token) await call("session", { method: "DELETE", token }).catch(() => undefined);
  },
};
if (document.body) start();
else addEventListener("DOMContentLoaded", start);
})();
