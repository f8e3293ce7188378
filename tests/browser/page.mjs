// SPDX-License-Identifier: Apache-2.0
// A reader's browser: what all tests of the page need.
import assert from "node:assert/strict";

export const LANGUAGES = ["en", "de", "fr", "es", "ja", "ar"];

/** Opens a context and a page in it; errors of the page's own scripts fail the test at close(). */
export async function open(world, { language = "en", script = true, storage = null, sale = "", ...options } = {}) {
  const context = await world.browser.newContext({
    baseURL: world.base, locale: language, timezoneId: "Europe/Berlin", javaScriptEnabled: script, viewport: { width: 1024, height: 900 },
    ...options,
  });
  context.setDefaultTimeout(90000);
  if (storage) {
    await context.addInitScript(([name, kept]) => {
      for (const [key, value] of Object.entries(kept)) sessionStorage.setItem(`tg.${name}.${key}`, value);
    }, [sale, storage]);
  }
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (fault) => faults.push(String(fault)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  const close = async () => {
    await context.close();
    assert.deepEqual(faults, [], "errors in the page's console");
  };
  return { context, page, close };
}

/** What axe finds, WCAG 2.2 A and AA and its best practices; none is wanted. */
export async function accessible(world, page) {
  if (!(await page.evaluate("typeof axe === 'object'"))) await page.evaluate(world.axe);
  const found = await page.evaluate(async () => {
    const result = await globalThis.axe.run(document, {
      resultTypes: ["violations"],
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`);
  });
  assert.deepEqual(found, [], "axe");
}

/** Nothing has to be scrolled sideways. */
export async function reflows(page) {
  const [wide, room] = await page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]");
  assert.ok(wide <= room, `${wide} px wide in a window of ${room}`);
}

/** Waits until `condition` of the page is true. Asked from here: what the page itself would evaluate again its policy forbids. */
export async function until(page, condition, value, seconds = 90) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await page.evaluate(condition, value))) {
    assert.ok(Date.now() < deadline, `not so after ${seconds} s: ${condition} ${value ?? ""}`);
    await new Promise((later) => setTimeout(later, 200));
  }
}

export const state = (page, name, timeout = 90000) => page.waitForSelector(`body[data-state="${name}"]`, { timeout });

/** Others take places until a new one has so many ahead: new places are behind the old ones, and the watermark only rises. */
export async function crowd(world, sale, ahead) {
  for (let position = 0; position < ahead;) {
    const reply = await fetch(`${world.base}/sale/${sale}/ticket`);
    assert.equal(reply.status, 200);
    ({ position } = await reply.json());
  }
}
