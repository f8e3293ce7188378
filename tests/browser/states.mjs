// SPDX-License-Identifier: Apache-2.0
// Every state in every language, with and without script, wide and at 320 px, light and dark; English in forced colours too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { LANGUAGES, accessible, crowd, open, reflows, state, until } from "./page.mjs";

const states = JSON.parse(readFileSync(new URL("states.json", import.meta.url), "utf-8"));
const words = Object.fromEntries(LANGUAGES.map((language) => [
  language, JSON.parse(readFileSync(new URL(`../../web/waiting/messages.${language}.json`, import.meta.url), "utf-8"))]));
const WIDE = { width: 1024, height: 900 }, NARROW = { width: 320, height: 640 };
const looks = [
  ["wide-light", { size: WIDE, colorScheme: "light" }], ["wide-dark", { size: WIDE, colorScheme: "dark" }],
  ["320-light", { size: NARROW, colorScheme: "light" }], ["320-dark", { size: NARROW, colorScheme: "dark" }],
];
const forced = ["320-forced", { size: NARROW, colorScheme: "dark", forcedColors: "active", reducedMotion: "reduce" }];
/** Which body the page has: some states are other words of one view. */
const bodies = { near: "waiting", allHeld: "waiting" };

async function hinder(name, page) {
  if (name === "trouble") await page.route("**/board", (route) => route.abort());
  if (name === "challenge") await page.route("**/challenge", () => {}); // for ever at work
}

async function look(world, page, name, [label, { size, ...media }]) {
  await page.setViewportSize(size);
  await page.emulateMedia({ forcedColors: "none", reducedMotion: "no-preference", ...media });
  await accessible(world, page);
  await reflows(page);
  if (media.reducedMotion === "reduce") {
    assert.equal(await page.evaluate("document.getAnimations().length"), 0, "nothing moves");
  }
  await page.screenshot({ path: `${world.shots}/${name}-${label}.png`, fullPage: true });
}

async function said(page, name, language, script) {
  const key = !script && words.en[`${name}.plain`] ? `${name}.plain` : `${name}.sentence`;
  const sentence = words[language][key].split("{")[0];
  assert.equal(await page.textContent("h1"), words[language][`${name}.headline`]);
  assert.ok((await page.textContent(".status")).includes(sentence), `${key} is not said`);
  const html = await page.evaluate("[document.documentElement.lang, getComputedStyle(document.body).direction]");
  assert.deepEqual(html, [language, language === "ar" ? "rtl" : "ltr"]);
}

async function see(world, name, language, script) {
  const { keep, sales } = world.states[name];
  const sale = sales ? sales[LANGUAGES.indexOf(language)] : world.states[name].sale; // a line that has not learnt to hurry yet
  if (name === "near") await crowd(world, sale, 30); // less than a minute at one a second
  const { page, close } = await open(world, { language, storage: script && keep, sale });
  try {
    await hinder(name, page);
    await page.goto(`/sale/${sale}${script ? "" : "/wait"}`);
    await state(page, bodies[name] ?? name);
    if (!script) assert.equal(await page.evaluate("document.scripts.length"), 0); // so axe may run: the page is the same without it
    await until(page, (wanted) => document.querySelector("h1").textContent === wanted, words[language][`${name}.headline`]);
    await said(page, name, language, script);
    for (const one of language === "en" ? [...looks, forced] : looks) {
      await look(world, page, `${name}-${language}-${script ? "script" : "plain"}`, one);
    }
  } finally {
    await close();
  }
}

/** [name, test] of all states that are wanted, with script and without. */
export function stateTests(world, wanted, way = "script") {
  const ways = way === "plain" ? [false] : [true, false];
  const tests = [];
  for (const one of states.filter(wanted)) {
    for (const script of ways.filter((script) => (script ? one.script : one.plain))) {
      if (way === "script" && one.name === "trouble" && !script) continue; // needs a queue that is gone
      for (const language of LANGUAGES) {
        tests.push([`${one.name} ${language} ${script ? "script" : "plain"}`, () => see(world, one.name, language, script)]);
      }
    }
  }
  return tests;
}
