// SPDX-License-Identifier: Apache-2.0
// The waiting page. It computes its own place from its ticket and the board, which is one document for everybody, and asks
// the server for itself only when its turn may have come. The server's clock is the only clock.

// ---- The rule of the line: the same in lib/pure/rank.c and in docs/. ----

const U64 = 64n;

/** First 64 bits, big-endian, of SHA-256(seed || length as 8 bytes little-endian || entrant). */
export async function score(seedHex, entrant) {
  const name = new TextEncoder().encode(entrant);
  const bytes = new Uint8Array(32 + 8 + name.length);
  for (let i = 0; i < 32; i++) bytes[i] = parseInt(seedHex.slice(2 * i, 2 * i + 2), 16);
  new DataView(bytes.buffer).setBigUint64(32, BigInt(name.length), true);
  bytes.set(name, 40);
  return new DataView(await crypto.subtle.digest("SHA-256", bytes)).getBigUint64(0);
}

/** The rank of a ticket, or null while the draw has not been revealed. */
export async function rank(board, ticket) {
  if (board.policy === "fifo") return ticket.index;
  if (!board.seed) return null;
  if (ticket.early) return Number((await score(board.seed, ticket.entrant)) * BigInt(board.presentAtOpen) >> U64);
  return board.presentAtOpen + Math.max(0, ticket.index - board.indexAtOpen);
}

export const position = (board, place) => Math.max(0, place - board.watermark);

/** Seconds, null when nothing moves. */
export function estimate(board, ahead) {
  if (ahead === 0) return 0;
  return board.pacePerSecond > 0 ? Math.ceil(ahead * 1.25 / board.pacePerSecond - 1e-9) : null;
}

export function pollSeconds(board, ahead) {
  const wait = estimate(board, ahead);
  const rest = board.remaining === null ? null : estimate(board, board.remaining);
  if (wait !== null && wait <= 4) return 1;
  if ((wait !== null && wait <= 20) || (rest !== null && rest <= 10)) return 2;
  return wait === null ? 5 : Math.min(30, Math.floor(wait / 10));
}

/** Plus or minus 30 %, so that a million pages do not ask in step. */
export const jitter = (seconds) => seconds * 1000 * (0.7 + 0.6 * Math.random());

// ---- Words ----

let words = {}, plurals, language = "en";

const languages = () => {
  const asked = new URLSearchParams(location.search).get("lang");
  const tags = [asked, ...navigator.languages].filter((tag) => /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(tag || ""));
  return [...new Set(tags.map((tag) => tag.split("-")[0].toLowerCase()).concat("en"))].slice(0, 4);
};

/** One file per language: messages.<language>.json. The first of the reader's that exists. */
async function loadWords() {
  for (const tag of languages()) {
    const reply = await fetch(`/waiting/messages.${tag}.json`).catch(() => null);
    if (reply?.ok) {
      words = await reply.json();
      language = tag;
      break;
    }
    if (reply === null) break; // no connection: the English of the shell stands
  }
  plurals = new Intl.PluralRules(language);
  document.documentElement.lang = language;
  document.documentElement.dir = words.direction || "ltr";
  for (const element of document.querySelectorAll("[data-t]")) {
    if (words[element.dataset.t]) element.textContent = words[element.dataset.t];
  }
  for (const link of $("languages").children) {
    if (link.lang === language) link.setAttribute("aria-current", "true");
  }
  $("languages").ariaLabel = say("footer.language");
  $("plain").search = `?lang=${language}`;
}

const number = (value) => new Intl.NumberFormat(language).format(value);

/** Two digits say what is known: 118,327 -> 120,000. */
export function rounded(value) {
  const size = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  return Math.round(value / size) * size;
}

/** A message; {name} is replaced, numbers are formatted, and `count` chooses among plural forms. */
function say(key, values = {}) {
  let text = words[key] ?? key;
  if (typeof text === "object") text = text[plurals.select(values.count)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : value ?? "";
  });
}

/** 200 -> "3-4 minutes" for a wait between 2:40 and 3:20. */
function range(lowSeconds, highSeconds) {
  const [unit, size] = highSeconds < 90 ? ["seconds", 10] : highSeconds < 5400 ? ["minutes", 60] : ["hours", 3600];
  const high = Math.ceil(highSeconds / size) * (unit === "seconds" ? 10 : 1);
  const low = Math.max(1, Math.floor(lowSeconds / size) * (unit === "seconds" ? 10 : 1));
  return low >= high ? say(`about.${unit}`, { count: high }) : say(`range.${unit}`, { low, count: high });
}

// ---- What is known ----

const sale = decodeURIComponent((typeof location === "object" ? location.pathname.split("/")[2] : "") || "");
const base = `/sale/${encodeURIComponent(sale)}`;
const $ = (id) => document.getElementById(id);

/** Kept for this tab: the buyer's token, the key of the present attempt, the reservation. */
const memory = {
  get: (name) => { try { return sessionStorage.getItem(`tg.${sale}.${name}`); } catch { return null; } },
  set: (name, value) => {
    try {
      if (value === null) sessionStorage.removeItem(`tg.${sale}.${name}`);
      else sessionStorage.setItem(`tg.${sale}.${name}`, value);
    } catch { /* private mode: kept until the page closes, in `known` */ }
    known[name] = value;
  },
};
const known = { buyer: null, key: null, reservation: null, farthest: null };

let ticket = null, board = null, pass = null, policy = null;
let place = null;           // the ticket's rank; not known before a draw
let clock = -Infinity;      // server time minus performance.now(), milliseconds
let shownAhead = Infinity;  // never shown rising
let shownWait = { until: Infinity };
let failures = 0, timer = 0, busy = false;
let notBefore = 0;          // performance.now() before which the server does not want to be asked
let hold = null;            // { id, expiresAt, units, order }
let view = "loading";

const serverNow = () => clock + performance.now();

/** Delays make an answer's time too early, never too late: the latest estimate is the best. */
function learnTime(text) {
  const at = Date.parse(text || "");
  if (!Number.isNaN(at)) clock = Math.max(clock, at - performance.now());
}

class Refusal extends Error {
  constructor(status, body, retryAfter) {
    super(body?.error?.code || `http ${status}`);
    this.code = body?.error?.code || "";
    this.status = status;
    this.body = body || {};
    this.retryAfter = retryAfter;
  }
}

/** A JSON reply, or a Refusal; status 0 when nobody answered in time. */
async function ask(path, { method = "GET", headers = {}, buyer = true } = {}) {
  if (buyer && known.buyer) headers = { ...headers, Authorization: `Bearer ${known.buyer}` };
  let reply;
  try {
    const credentials = buyer ? "same-origin" : "omit"; // a cache passes over what comes with a cookie
    reply = await fetch(path, { method, headers, credentials, signal: AbortSignal.timeout(8000) });
  } catch {
    throw new Refusal(0, null, 0);
  }
  const body = await reply.json().catch(() => null);
  if (!reply.ok || body === null) {
    throw new Refusal(reply.status, body, Number(reply.headers.get("Retry-After")) || 0);
  }
  return body;
}

// ---- What is shown ----

let announced = "";

/** The status region speaks at milestones only, never with each poll. */
function announce(key, values) {
  const reason = key === "paused" && board.notice ? say(`pause.${board.notice}`) : "";
  if (key + reason === announced) return;
  announced = key + reason;
  $("headline").textContent = say(`${key}.headline`, values);
  $("sentence").textContent = say(`${key}.sentence`, values);
  $("reason").textContent = reason;
}

const shows = {
  loading: [], trouble: ["check"], challenge: ["instead"], scheduled: ["countdown", "facts", "check"], waiting: ["line", "facts", "check"],
  paused: ["facts", "check"], signIn: ["sign-in"], turn: ["take"], held: ["countdown", "receipt", "pay", "give-back"],
  bought: ["receipt"], lapsed: ["again"], sold_out: [], closed: [], unknown: [],
};

/** `key` names the words where one view has several. */
function show(next, values = {}, key = next) {
  const moved = next !== view;
  view = next;
  document.body.dataset.state = next;
  $("badge").textContent = say(`badge.${next}`);
  for (const id of ["line", "countdown", "sign-in", "take", "pay", "again", "give-back", "check", "instead", "facts", "receipt"]) {
    $(id).hidden = !shows[next].includes(id);
  }
  $("pay").hidden ||= !document.body.dataset.pay;
  announce(key, values);
  tick();
  if (moved) {
    $("fault").textContent = "";
    title();
  }
}

/** What the tab says beside others: the place or the time comes first. */
function title(...before) {
  document.title = [...before, say(`badge.${view}`), sale].join(" · ");
}

const fault = (key, values) => { $("fault").textContent = key ? say(key, values) : ""; };

export function clockText(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const days = Math.floor(seconds / 86400);
  const parts = [Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60];
  if (days === 0 && parts[0] === 0) parts.shift();
  const clock = parts.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
  if (days === 0) return clock;
  return `${new Intl.NumberFormat(language, { style: "unit", unit: "day", unitDisplay: "long" }).format(days)} ${clock}`;
}

const timeOfDay = (ms) => new Intl.DateTimeFormat(language, { timeStyle: "medium" }).format(ms);
const dayAndTime = (ms) => new Intl.DateTimeFormat(language, { dateStyle: "long", timeStyle: "short" }).format(ms);

function fill(ahead, wait) {
  $("number").textContent = place === null ? "" : number(place + 1);
  $("left").textContent = board.remaining === null ? "" : left();
  $("updated").textContent = Number.isFinite(clock) ? timeOfDay(serverNow()) : "";
  $("estimate").textContent = wait === null ? say("estimate.none") : wait === undefined ? "" : range(wait / 1.25, wait);
  if (ahead === null) return;
  $("ahead").textContent = number(ahead);
  $("ahead-label").textContent = say("ahead", { count: ahead });
  const farthest = Math.max(Number(known.farthest), ahead); // of this visit
  if (farthest !== Number(known.farthest)) memory.set("farthest", String(farthest));
  const way = farthest === 0 ? 100 : 100 * (1 - ahead / farthest);
  $("progress").value = way;
  $("progress").textContent = `${Math.floor(way)} %`;
  $("odds").textContent = odds(ahead);
}

/** Whether fewer people are ahead than units are left: of as many the last unit goes to the last of them. */
export const enough = (remaining, ahead) => ahead < remaining;

/** Said only where both sides are known: how many people are ahead for how many units. */
function odds(ahead) {
  if (ahead === 0 || !board.remaining) return "";
  return say(enough(board.remaining, ahead) ? "odds.enough" : "odds.short", { ahead: rounded(ahead), count: board.remaining });
}

const left = () => policy?.show?.remaining === "bucketed" && board.remaining > 10
  ? say("left.about", { count: board.remaining }) : number(board.remaining);

function fillReceipt() {
  $("reservation").textContent = hold.id;
  $("units").textContent = hold.units.map((unit) => `${unit.sku ?? ""} #${unit.unit + 1}`).join(", ");
  $("order-row").hidden = !hold.order;
  $("order").textContent = hold.order ?? "";
  $("pay").href = document.body.dataset.pay + encodeURIComponent(hold.id);
}

function fillRules() {
  const limits = policy.limits, item = policy.items[0];
  const minutes = Math.round(limits.holdForSeconds / 6) / 10;
  const rows = [say(`rule.${policy.order}`), say("rule.limit", { count: limits.perBuyer }), say("rule.turn")];
  rows.push(limits.holdForSeconds < 60 ? say("rule.holdSeconds", { count: limits.holdForSeconds }) : say("rule.hold", { count: minutes }));
  if (policy.items.length === 1) {
    const money = new Intl.NumberFormat(language, { style: "currency", currency: item.currency });
    const digits = money.resolvedOptions().maximumFractionDigits;
    rows.unshift(say("rule.item", { count: item.units, price: money.format(item.price / 10 ** digits) }));
  }
  $("rules").replaceChildren(...rows.map((text) => {
    const row = document.createElement("li");
    row.textContent = text;
    return row;
  }));
  if (policy.order === "fifo") return; // nothing is drawn
  const draw = Object.assign(document.createElement("a"), { href: `${base}/draw.json`, textContent: say("rule.check") });
  $("rules").children[rows.indexOf(say(`rule.${policy.order}`))].append(" ", draw);
}

// ---- What is done ----

const again = (seconds) => {
  clearTimeout(timer);
  timer = setTimeout(round, Math.max(jitter(seconds), notBefore - performance.now()));
};

async function takeTicket(headers = {}) {
  let reply;
  try {
    if (ticket) headers = { ...headers, "X-Ticket": ticket.token };
    reply = await ask(`${base}/ticket`, { headers });
  } catch (refusal) {
    if (refusal.code !== "challenge_required" || headers["X-Challenge"]) throw refusal;
    return takeTicket({ "X-Challenge": await meetChallenge() });
  }
  if (!reply.token) return reply.state; // no place is given any more
  ticket = { ...reply, generation: board.generation };
  return null;
}

/** Solves one challenge in workers; gives what X-Challenge wants. Asked for once, before a ticket or before a pass. */
async function meetChallenge() {
  show("challenge");
  const challenge = await ask(`${base}/challenge`, ticket ? { headers: { "X-Ticket": ticket.token } } : {});
  const step = Math.min(4, navigator.hardwareConcurrency || 1);
  const workers = Array.from({ length: step }, () => new Worker("/waiting/work.js", { type: "module" }));
  try {
    const solution = await Promise.race(workers.map((worker, first) => new Promise((solved, failed) => {
      worker.onmessage = ({ data }) => (data.fault ? failed(new Error(data.fault)) : solved(data));
      worker.onerror = () => failed(new Error("the worker did not start"));
      worker.postMessage({ challenge, first, step });
    })));
    return btoa(JSON.stringify({ challenge, solution }));
  } finally {
    for (const worker of workers) worker.terminate();
  }
}

/** The reservation of this tab, if it has one: it goes before everything else. */
async function lookAtHold() {
  const id = hold?.id ?? known.reservation;
  if (!id) return false;
  let record;
  try {
    record = await ask(`/reservations/${encodeURIComponent(id)}`);
  } catch (refusal) {
    if (refusal.code === "reservation_unknown" || refusal.code === "forbidden") {
      forget();
      return false;
    }
    if (refusal.status === 401) return signIn();
    throw refusal;
  }
  hold = { id, expiresAt: Date.parse(record.expiresAt), units: record.units, order: record.orderId, state: record.state };
  fillReceipt();
  if (record.state === "confirmed") {
    show("bought");
  } else if (record.state === "pending") {
    show("held");
    again(5);
  } else {
    lapse();
  }
  return true;
}

function forget() {
  hold = null;
  pass = null;
  memory.set("key", null);
  memory.set("reservation", null);
}

function lapse() {
  forget();
  clearTimeout(timer);
  show("lapsed");
}

function signIn() {
  clearTimeout(timer);
  show("signIn");
  $("buyer-fault").hidden = !known.buyer;
  $("buyer").setAttribute("aria-invalid", String(Boolean(known.buyer)));
  memory.set("buyer", null);
  return true;
}

async function askForPass() {
  let reply;
  try {
    reply = await ask(`${base}/status`, { headers: { "X-Ticket": ticket.token } });
  } catch (refusal) {
    if (refusal.code !== "challenge_required") throw refusal;
    const final = await takeTicket({ "X-Challenge": await meetChallenge() });
    reply = final ? { state: final } : await ask(`${base}/status`, { headers: { "X-Ticket": ticket.token } });
  }
  if (reply.state !== "admitted") {
    pass = null;
    if (reply.state === "restart") ticket = null;
    return reply;
  }
  pass = { token: reply.admissionToken, until: performance.now() + reply.expiresIn * 1000 };
  return reply;
}

function showPlace(ahead) {
  if (ahead === null) {
    fill(null, undefined);
    show("waiting");
    $("line").hidden = true;
    return;
  }
  shownAhead = Math.min(shownAhead, ahead);
  const wait = board.remaining === 0 ? null : estimate(board, shownAhead); // the line stands while all is held
  const now = performance.now();
  let shown = wait;
  if (wait !== null) {
    shown = Math.min(wait, Math.max(0, (shownWait.until - now) / 1000));
    shownWait = { until: now + shown * 1000 };
  }
  fill(shownAhead, shown);
  const near = shown !== null && shown <= 60;
  show("waiting", {}, board.notice === "all_held" ? "allHeld" : near ? "near" : "waiting");
  title(number(shownAhead));
}

const finals = { sold_out: "sold_out", closed: "closed" };

/** One look at the world; decides what is shown and when to look again. */
async function look() {
  board = await ask(`${base}/board`, { buyer: false });
  learnTime(board.now);
  if (ticket && ticket.generation !== board.generation) ticket = null;
  if (await lookAtHold()) return;
  if (finals[board.state]) {
    show(finals[board.state]);
    return;
  }
  if (!ticket) {
    const final = await takeTicket();
    if (final) {
      show(finals[final] ?? "waiting");
      if (!finals[final]) again(2);
      return;
    }
  }
  place = await rank(board, ticket);
  const ahead = place === null ? null : position(board, place);
  if (board.state === "scheduled") {
    fill(null, undefined);
    show("scheduled", { when: dayAndTime(Date.parse(board.opensAt)) });
    const wait = (Date.parse(board.opensAt) - serverNow()) / 1000;
    again(wait > 120 ? 30 : wait > 20 ? 5 : 1);
  } else if (board.state === "paused") {
    fill(ahead, null);
    show("paused");
    again(5);
  } else if (ahead === 0 && board.remaining !== 0) {
    await turn();
  } else {
    showPlace(ahead);
    again(ahead === null ? 2 : pollSeconds(board, ahead));
  }
}

async function turn() {
  if (!pass || performance.now() > pass.until - 5000) {
    const reply = await askForPass();
    if (finals[reply.state]) {
      show(finals[reply.state]);
      return;
    }
    if (!pass) {
      if (reply.state === "paused") show("paused");
      else showPlace(Math.max(1, reply.position ?? 1));
      again(reply.pollSeconds ?? 2);
      return;
    }
  }
  show("turn");
  again(10); // is there still something to take?
}

async function round() {
  if (busy) return;
  busy = true;
  try {
    await look();
    failures = 0;
  } catch (refusal) {
    trouble(refusal);
  } finally {
    busy = false;
  }
}

function trouble(refusal) {
  if (!(refusal instanceof Refusal)) console.error(refusal);
  if (refusal.status === 401) {
    signIn();
    return;
  }
  if (refusal.code === "sale_unknown") {
    show("unknown");
    return;
  }
  if (refusal.code === "ticket_invalid" || refusal.code === "restart" || refusal.code === "forbidden") ticket = null;
  if (refusal.code !== "rate_limited") failures++;
  if (failures >= 2 || view === "loading" || view === "challenge") show("trouble");
  notBefore = performance.now() + (refusal.retryAfter || 0) * 1000;
  again(Math.min(30, 2 ** failures));
}

/** Reserve: the same key until the attempt is decided, so that a lost answer is found again. */
async function reserve(triesLeft = 3) {
  if (!known.key) memory.set("key", crypto.randomUUID());
  if (!pass || performance.now() > pass.until - 1000) await askForPass();
  if (!pass) return look();
  try {
    const held = await ask(`${base}/reserve`, {
      method: "POST", headers: { "X-Admission-Token": pass.token, "Idempotency-Key": known.key },
    });
    memory.set("reservation", held.reservationId);
    hold = { id: held.reservationId, expiresAt: Date.parse(held.expiresAt), units: held.units, order: null };
    fillReceipt();
    show("held");
    again(5);
  } catch (refusal) {
    await refused(refusal, triesLeft);
  }
}

async function refused(refusal, triesLeft) {
  if (!(refusal instanceof Refusal)) throw refusal;
  const unknown = refusal.status === 0 || refusal.code === "try_again" || refusal.status >= 502;
  if (unknown && triesLeft > 1) {
    await new Promise((done) => setTimeout(done, jitter(refusal.retryAfter || 1)));
    return reserve(triesLeft - 1);
  }
  if (refusal.code === "pass_expired" && triesLeft > 1) {
    pass = null;
    return reserve(triesLeft - 1);
  }
  if (refusal.code === "limit_reached" && refusal.body.reservationId) {
    memory.set("reservation", refusal.body.reservationId);
    return lookAtHold();
  }
  if (refusal.code === "sold_out" && refusal.body.final) return show("sold_out");
  if (refusal.status === 401) return signIn();
  if (refusal.code === "reservation_expired" || refusal.code === "reservation_cancelled") return lapse();
  if (refusal.code === "idempotency_mismatch" || refusal.code === "limit_reached") memory.set("key", null);
  if (refusal.code.startsWith("pass_")) pass = null;
  const told = { sold_out: "fault.allHeld", sale_paused: "fault.paused", pass_used: "fault.used", limit_reached: "fault.limit" };
  fault(told[refusal.code] ?? (unknown ? "fault.unknown" : "fault.other"), { code: refusal.code });
  again(Math.max(refusal.retryAfter, refusal.code === "pass_used" ? 30 : 3));
}

/** A button that says it is at work, and works once at a time. */
function onPress(id, act) {
  const button = $(id);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    clearTimeout(timer);
    fault("");
    while (busy) await new Promise((done) => setTimeout(done, 50));
    busy = true;
    try {
      await act();
    } catch (refusal) {
      trouble(refusal);
      fault("fault.unknown");
    } finally {
      busy = false;
      button.removeAttribute("aria-disabled");
    }
  });
}

function tick() {
  if (view === "scheduled") {
    $("countdown").textContent = clockText(Date.parse(board.opensAt) - serverNow());
  } else if (view === "held") {
    const restMs = hold.expiresAt - serverNow();
    $("countdown").textContent = clockText(restMs);
    title(clockText(restMs));
    const soon = restMs > 0 && restMs <= 60000 ? say("held.minute") : "";
    if ($("reason").textContent !== soon) $("reason").textContent = soon; // a milestone: it is read out once
    if (restMs <= 0 && !hold.over) {
      hold.over = true;
      again(1);
    }
  }
}

function takeBuyerFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("buyer");
  if (given) {
    memory.set("buyer", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

async function start() {
  for (const name of Object.keys(known)) known[name] = memory.get(name);
  takeBuyerFromAddress();
  await loadWords();
  const login = document.body.dataset.signIn; // the shop's; without one a token is pasted
  $("login").href = login + encodeURIComponent(sale);
  $("login").hidden = !login;
  $("by-token").hidden = $("send-token").hidden = Boolean(login);
  onPress("take", () => reserve());
  onPress("check", look);
  onPress("again", look);
  onPress("give-back", async () => {
    if (!confirm(say("giveBack.sure"))) return again(5);
    await ask(`/reservations/${encodeURIComponent(hold.id)}/cancel`, { method: "POST" });
    lapse();
  });
  $("sign-in").addEventListener("submit", (event) => {
    event.preventDefault();
    memory.set("buyer", $("buyer").value.trim());
    ticket = null;
    round();
  });
  addEventListener("hashchange", () => { takeBuyerFromAddress(); ticket = null; round(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && shows[view].includes("check")) round(); });
  setInterval(tick, 250);
  ask(`${base}/policy`, { buyer: false }).then((reply) => { policy = reply; fillRules(); }).catch(() => {});
  await round();
}

if (typeof document === "object") start();
