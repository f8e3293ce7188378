// SPDX-License-Identifier: Apache-2.0
// Whole ways through the page, as a person walks them, through the real stack.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import { accessible, crowd, open, reflows, state, until } from "./page.mjs";

const get = async (world, path, headers = {}) => {
  const reply = await fetch(`${world.base}${path}`, { headers });
  return { status: reply.status, json: await reply.json().catch(() => null) };
};

/** Keeps what the status region said, as a screen reader hears it. */
const listen = (page) => page.evaluate(() => {
  globalThis.heard = [];
  new MutationObserver(() => {
    const now = document.getElementById("status").textContent.replace(/\s+/g, " ").trim();
    if (now !== globalThis.heard.at(-1)) globalThis.heard.push(now);
  }).observe(document.getElementById("status"), { childList: true, subtree: true, characterData: true });
});

/** Presses Tab until the element of this id has the focus. */
async function tabTo(page, id) {
  for (let presses = 0; presses < 30; presses++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate("document.activeElement.id") === id) return;
  }
  assert.fail(`#${id} is not reached by Tab`);
}

async function pay(world, reservation) {
  const reply = await fetch(`${world.base}/reservations/${reservation}/confirm`, {
    method: "POST", headers: { Authorization: `Bearer ${world.journeys.service}`, "Content-Type": "application/json" },
    body: JSON.stringify({ paymentId: `pay-${randomUUID()}`, amount: 4900, currency: "EUR" }),
  });
  assert.equal(reply.status, 200);
  return (await reply.json()).orderId;
}

/** One waits, is let in, holds by keyboard alone, pays and sees the order; another, behind, is told sold out. */
async function buyAndSoldOut(world) {
  const { line, buyers } = world.journeys;
  const first = await open(world), second = await open(world);
  await crowd(world, line, 12);
  await first.page.goto(`/sale/${line}#buyer=${buyers[0]}`);
  await state(first.page, "waiting");
  await listen(first.page);
  assert.ok(!first.page.url().includes("buyer="), "the token does not stay in the address");
  const ahead = Number(await first.page.textContent("#ahead"));
  assert.ok(ahead >= 1 && ahead <= 13, `${ahead} ahead`);
  await second.page.goto(`/sale/${line}#buyer=${buyers[1]}`);
  await state(first.page, "turn");
  await tabTo(first.page, "take");
  await first.page.keyboard.press("Enter");
  await state(first.page, "held");
  assert.match(await first.page.textContent("#countdown"), /^(10:00|9:\d\d)$/);
  const order = await pay(world, await first.page.textContent("#reservation"));
  await state(first.page, "bought");
  assert.equal(await first.page.textContent("#order"), order);
  await state(second.page, "sold_out");
  const heard = await first.page.evaluate("heard");
  assert.ok(heard.length >= 3 && heard.length <= 5, `milestones only: ${JSON.stringify(heard)}`);
  await first.close();
  await second.close();
}

/** Place and estimate of a page that stays open never rise, and a refresh keeps the place. */
async function placeIsKept(world) {
  const { page, close } = await open(world);
  const { sale } = world.states.waiting;
  await page.goto(`/sale/${sale}`);
  await until(page, () => document.getElementById("number").textContent !== "");
  const number = await page.textContent("#number");
  await page.evaluate(() => {
    const ahead = document.getElementById("ahead"), read = () => Number(ahead.textContent.replaceAll(",", ""));
    globalThis.seen = [read()];
    new MutationObserver(() => globalThis.seen.push(read())).observe(ahead, { childList: true, characterData: true, subtree: true });
  });
  await until(page, () => { // a person looks again and again; the watermark moves one a second
    document.getElementById("check").click();
    return globalThis.seen.at(-1) <= globalThis.seen[0] - 3;
  });
  const seen = await page.evaluate("seen");
  assert.deepEqual(seen, [...seen].sort((a, b) => b - a), "never rising");
  await page.reload();
  await until(page, (wanted) => document.getElementById("number").textContent === wanted, number);
  await close();
}

/** The board is asked for without a cookie, so that any cache may answer; nothing is asked of other hosts. */
async function sharedIsAskedWithoutCookies(world) {
  const { page, context, close } = await open(world);
  const { sale } = world.states.waiting, asked = [];
  await page.goto(`/sale/${sale}`);
  await state(page, "waiting");
  assert.ok((await context.cookies()).some(({ name, httpOnly }) => name === `tg_${sale}` && httpOnly));
  page.on("request", (request) => asked.push(request));
  const board = page.waitForRequest("**/board");
  await page.click("#check");
  assert.equal((await (await board).allHeaders()).cookie, undefined);
  assert.ok(asked.every((request) => request.url().startsWith(world.base)));
  await close();
}

async function retryAfterIsHonoured(world) {
  const { page, close } = await open(world);
  const times = [];
  await page.route("**/board", (route) => {
    times.push(Date.now());
    return times.length === 1
      ? route.fulfill({ status: 503, headers: { "Retry-After": "5", "Content-Type": "application/problem+json" }, body: '{"error":{"code":"try_again"}}' })
      : route.continue();
  });
  await page.goto(`/sale/${world.states.waiting.sale}`);
  await state(page, "trouble");
  await state(page, "waiting");
  assert.ok(times[1] - times[0] >= 5000, `asked again after ${times[1] - times[0]} ms`);
  await close();
}

async function signInByHand(world) {
  const { page, close } = await open(world);
  await page.goto(`/sale/${world.states.signIn.sale}`);
  await state(page, "signIn");
  await page.fill("#buyer", "not.a.token");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#buyer-fault:visible");
  assert.equal(await page.getAttribute("#buyer", "aria-invalid"), "true");
  await accessible(world, page);
  await page.fill("#buyer", world.journeys.buyers[0]);
  await page.click("#sign-in button");
  await state(page, "turn");
  await close();
}

/** Where the shop says where: signing in and paying are links to it. */
async function leadsToTheShop(world) {
  const { base, sale, buyer } = world.journeys.shop;
  const { page, close } = await open(world, { baseURL: base });
  await page.goto(`/sale/${sale}`);
  await state(page, "signIn");
  assert.equal(await page.getAttribute("#login", "href"), `https://shop.example/login?sale=${sale}`);
  assert.ok(await page.isVisible("#login") && !(await page.isVisible("#buyer")) && !(await page.isVisible("#send-token")));
  await accessible(world, page);
  await page.goto(`/sale/${sale}#buyer=${buyer}`); // as the shop leads back
  await state(page, "turn");
  await page.click("#take");
  await state(page, "held");
  const reservation = await page.textContent("#reservation");
  assert.equal(await page.getAttribute("#pay", "href"), `https://shop.example/pay?reservation=${reservation}`);
  assert.ok(await page.isVisible("#pay"));
  await accessible(world, page);
  page.once("dialog", (dialog) => dialog.dismiss());
  await page.click("#give-back");
  await state(page, "held");
  page.once("dialog", (dialog) => dialog.accept());
  await page.click("#give-back");
  await state(page, "lapsed");
  await close();
}

async function skipLinkAndQuestions(world) {
  const { page, close } = await open(world);
  await page.goto(`/sale/${world.states.waiting.sale}`);
  await state(page, "waiting");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate("document.activeElement.className"), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate("document.activeElement.id"), "main");
  await page.focus("details:last-of-type summary");
  await page.keyboard.press("Enter");
  assert.ok(await page.isVisible("details:last-of-type p"));
  await accessible(world, page);
  await close();
}

/** Without script the shell leads to the rendered page by itself, which speaks the browser's language. */
async function withoutScript(world) {
  const { page, close } = await open(world, { script: false, language: "fr-CA" });
  const { sale } = world.states.waiting;
  await page.goto(`/sale/${sale}`);
  await page.waitForURL(`**/sale/${sale}/wait`);
  assert.equal(await page.getAttribute("html", "lang"), "fr");
  const number = await page.textContent(".facts div:nth-child(5) dd");
  await page.click("text=العربية");
  await page.waitForURL("**/wait?lang=ar");
  assert.equal(await page.getAttribute("html", "dir"), "rtl");
  assert.equal(await page.textContent(".facts div:nth-child(5) dd"), number, "the place is kept");
  const [answer] = await Promise.all([page.waitForResponse("**/wait?lang=ar&auto=30"), page.click(".auto-on")]);
  assert.equal(answer.headers().refresh, "30");
  assert.ok(await page.isVisible(".auto-off"));
  await close();
}

/** Our own worker: the ticket is given after one challenge, and only one is asked for. */
async function challengeByWorker(world) {
  const { page, close } = await open(world);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname.split("/").at(-1)));
  await page.goto(`/sale/${world.journeys.ticket}#buyer=${world.journeys.buyers[0]}`);
  await state(page, "turn");
  assert.equal(asked.filter((name) => name === "challenge").length, 1);
  await page.reload();
  await state(page, "turn");
  assert.equal(asked.filter((name) => name === "challenge").length, 1, "once: the place is kept");
  await close();
}

async function challengeBeforeThePass(world) {
  const { page, close } = await open(world);
  const sent = page.waitForRequest((request) => "x-challenge" in request.headers());
  await page.goto(`/sale/${world.journeys.pass}#buyer=${world.journeys.buyers[0]}`);
  assert.ok((await sent).url().endsWith("/ticket"));
  await state(page, "turn");
  await page.click("#take");
  await state(page, "held");
  await close();
}

/** The widget as its makers publish it solves ours. */
async function challengeByWidget(world) {
  const { page, close } = await open(world, { bypassCSP: true }); // it carries its style and worker in itself; our page's policy is not its
  const { ticket } = world.journeys;
  await page.route("**/widget", (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html><title>shop</title>" }));
  await page.goto("/widget");
  await page.addScriptTag({ content: readFileSync(`${world.modules}/altcha/dist/main/altcha.js`, "utf-8"), type: "module" });
  const payload = await page.evaluate((sale) => new Promise((solved, failed) => {
    const form = document.createElement("form");
    form.innerHTML = `<altcha-widget challenge="/sale/${sale}/challenge" auto="onload"></altcha-widget>`;
    document.body.append(form);
    form.firstChild.addEventListener("statechange", ({ detail }) => {
      if (detail.state === "verified") solved(detail.payload ?? form.querySelector("[name=altcha]").value);
      if (detail.state === "error") failed(new Error("the widget failed"));
    });
  }), ticket);
  const given = await get(world, `/sale/${ticket}/ticket`, { "X-Challenge": payload });
  assert.equal(given.status, 200, JSON.stringify(given.json));
  assert.equal((await get(world, `/sale/${ticket}/ticket`, { "X-Challenge": payload })).json.error.code, "challenge_spent");
  await close();
}

/** ALTCHA's server library: solves ours, and finds our signature and solution right. */
async function challengeByTwin(world) {
  const library = await import(`file://${world.modules}/altcha-lib/dist/esm/v2/index.js`);
  const { deriveKey } = await import(`file://${world.modules}/altcha-lib/dist/esm/v2/algorithms/web/pbkdf2.js`);
  const { ticket, secret } = world.journeys;
  const { json: challenge } = await get(world, `/sale/${ticket}/challenge`);
  const solution = await library.solveChallenge({ challenge, deriveKey });
  const judged = await library.verifySolution({ challenge, solution, deriveKey, hmacSignatureSecret: secret });
  assert.equal(judged.verified, true, JSON.stringify(judged));
  const answer = Buffer.from(JSON.stringify({ challenge, solution })).toString("base64");
  assert.equal((await get(world, `/sale/${ticket}/ticket`, { "X-Challenge": answer })).status, 200);
  const { solve } = await import("../../web/waiting/work.js");
  const own = await solve(challenge);
  assert.deepEqual([own.counter, own.derivedKey], [solution.counter, solution.derivedKey], "our worker finds the same");
}

/** Nobody has to compute: the page without script gives a place after a wait. */
async function patience(world) {
  const { page, close } = await open(world, { script: false });
  await page.goto(`/sale/${world.journeys.patience}/wait?auto=10`);
  await state(page, "challenge");
  await page.waitForSelector('body[data-state="waiting"], body[data-state="turn"]', { timeout: 150000 }); // it refreshes itself
  await close();
}

/** The rule of the line, against a rank reckoned here by other means; lib/pure/rank.c has the same numbers in its tests. */
async function ruleOfTheLine() {
  const { rank, position, estimate, rounded, enough, clockText } = await import("../../web/waiting/page.js");
  const seed = "00".repeat(32), entrant = "0123456789ABCDEFGHJKMNPQRS", presentAtOpen = 1_000_000;
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(entrant.length));
  const digest = createHash("sha256").update(Buffer.concat([Buffer.alloc(32), length, Buffer.from(entrant)])).digest();
  const drawn = Number(digest.readBigUInt64BE() * BigInt(presentAtOpen) >> 64n);
  const board = { policy: "random", seed, presentAtOpen, indexAtOpen: 900_000, watermark: 10, pacePerSecond: 8 };
  assert.equal(await rank(board, { early: true, entrant, index: 5 }), drawn);
  assert.equal(await rank(board, { early: false, entrant, index: 900_007 }), 1_000_007);
  assert.equal(await rank({ ...board, seed: null }, { early: true, entrant, index: 5 }), null);
  assert.equal(await rank({ ...board, policy: "fifo" }, { index: 77 }), 77);
  assert.equal(position(board, 4), 0);
  assert.deepEqual([estimate(board, 0), estimate(board, 8), estimate(board, 9), estimate({ ...board, pacePerSecond: 0 }, 9)], [0, 2, 2, null]);
  assert.deepEqual([0, 59_001, 3_600_000, 172_799_000].map(clockText), ["0:00", "1:00", "1:00:00", "1 day 23:59:59"]);
  assert.deepEqual([enough(5, 4), enough(5, 5)], [true, false]);
  assert.deepEqual([0, 7, 99, 118_327, 1_251_000].map(rounded), [0, 7, 99, 120_000, 1_300_000]);
}

/** One visit in one language fits, as a proxy compresses it. */
async function smallVisit(world) {
  const { gzipSync } = await import("node:zlib");
  const { page, close } = await open(world, { language: "ar" });
  const bodies = [];
  page.on("response", (response) => bodies.push(response.body().catch(() => Buffer.alloc(0))));
  await page.goto(`/sale/${world.journeys.ticket}`);
  await page.waitForSelector('body[data-state="signIn"], body[data-state="waiting"]');
  const sum = (await Promise.all(bodies)).reduce((total, body) => total + gzipSync(body).length, 0);
  assert.ok(sum > 5_000 && sum < 30_000, `${sum} bytes`);
  await close();
}

/** What nginx says when no edge answers: a page that needs nothing besides itself. */
async function away(world) {
  const html = readFileSync(world.journeys.away, "utf-8");
  for (const [colorScheme, width] of [["light", 1024], ["dark", 320]]) {
    const { page, close } = await open(world, { colorScheme, viewport: { width, height: 640 } });
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.route("**/away", (route) => route.fulfill({ status: 503, contentType: "text/html; charset=utf-8", body: html }));
    await page.goto("/away");
    await accessible(world, page);
    await reflows(page);
    assert.deepEqual([asked.length, await page.evaluate("document.scripts.length")], [1, 0]);
    await close();
  }
}

/** After the queue is gone: takes what the edge still has in hand, until no place can be given. */
async function drain(world) {
  const { sale } = world.states.trouble;
  for (let tries = 0; tries < 20000; tries++) {
    if ((await get(world, `/sale/${sale}/ticket`)).status === 503) return;
  }
  assert.fail("the edge still gives places");
}

const named = (tests) => Object.entries(tests).map(([name, test]) => [`journey: ${name}`, test]);

export const journeys = named({
  "patience instead of work": patience, "buys by keyboard; another is told sold out": buyAndSoldOut, "the place is kept": placeIsKept,
  "shared documents without cookies": sharedIsAskedWithoutCookies, "Retry-After is honoured": retryAfterIsHonoured,
  "signs in by hand": signInByHand, "leads to the shop": leadsToTheShop, "skip link and questions": skipLinkAndQuestions, "without script": withoutScript,
  "challenge before the ticket, our worker": challengeByWorker, "challenge before the pass": challengeBeforeThePass,
  "challenge, unmodified widget": challengeByWidget, "challenge, twin": challengeByTwin, "the rule of the line": ruleOfTheLine,
  "one visit is small": smallVisit, "nobody answers": away,
});
export const noPlacesLeft = ["no places are left", drain];
