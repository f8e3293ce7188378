// SPDX-License-Identifier: Apache-2.0
// Runs every state and every journey in Chromium, two at a time, and prints "ok NAME" or "FAIL NAME: why" for each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { webcrypto } from "node:crypto";

import { journeys, noPlacesLeft } from "./journeys.mjs";
import { stateTests } from "./states.mjs";

globalThis.crypto ??= webcrypto; // Node 18 has it under another name

const plan = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const only = process.argv[3];
const packages = createRequire(`${plan.modules}/`);
const { chromium } = packages("playwright-core");
const LANES = 2, CHROMIUM = process.env.TIDEGATE_CHROMIUM ?? "/usr/bin/chromium-headless-shell";

const deadline = setTimeout(() => {
  console.log(`FAIL all: not finished after ${plan.limitMs / 1000} s`);
  process.exit(1);
}, plan.limitMs);

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const world = { ...plan, browser, packages, axe: readFileSync(`${plan.modules}/axe-core/axe.min.js`, "utf-8") };

const late = () => new Promise((_, failed) => setTimeout(() => failed(new Error("not finished after 240 s")), 240000).unref());

async function run([name, test]) {
  try {
    await Promise.race([test(world), late()]);
    console.log(`ok ${name}`);
  } catch (fault) {
    console.log(`FAIL ${name}: ${String(fault.message ?? fault).split("\n").slice(0, 12).join(" | ")}`);
  }
}

/** Some tests at a time; each takes the next one that is left. */
async function lanes(tests) {
  const left = [...tests];
  await Promise.all(Array.from({ length: LANES }, async () => {
    for (let next = left.shift(); next; next = left.shift()) await run(next);
  }));
}

const wanted = ([name]) => !only || name.includes(only);
await lanes([...journeys, ...stateTests(world, () => true)].filter(wanted));
const last = stateTests(world, (state) => state.name === "trouble", "plain").filter(wanted);
if (last.length > 0) {
  console.log("queue-down");
  await run(noPlacesLeft);
  await lanes(last);
}
clearTimeout(deadline);
await browser.close();
