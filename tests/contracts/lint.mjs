// SPDX-License-Identifier: Apache-2.0
// node lint.mjs openapi|asyncapi|istio FILE: prints what is wrong, a line each; exits 1 when there is anything.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../build/npm/package.json', import.meta.url));

async function openapi(file) {
  const { createConfig, lint } = require('@redocly/openapi-core');
  // A shared document of everybody's (keys, reasons) has nothing of the caller's to refuse.
  const config = await createConfig({ extends: ['recommended-strict'], rules: { 'operation-4xx-response': 'off' } });
  const problems = await lint({ ref: file, config });
  return problems.map((one) => `${one.severity}: ${one.ruleId}: ${one.message} (${one.location[0]?.pointer ?? ''})`);
}

async function asyncapi(file) {
  const { Parser } = require('@asyncapi/parser');
  const ERROR = 0, WARNING = 1;
  const problems = await new Parser().validate(readFileSync(file, 'utf8'));
  return problems.filter((one) => one.severity === ERROR || one.severity === WARNING).map((one) => `${one.code}: ${one.message} (${one.path.join('.')})`);
}

async function istio(file) {
  const { parseAllDocuments } = require('yaml');
  const problems = [];
  for (const document of parseAllDocuments(readFileSync(file, 'utf8'), { uniqueKeys: true })) {
    const object = document.toJS();
    const { [object.kind]: Kind } = require(`@kubernetes-models/istio/${object.apiVersion}/${object.kind}`);
    try {
      new Kind(object).validate();
    } catch (fault) {
      problems.push(`${object.kind}: ${fault.message}`);
    }
  }
  return problems;
}

const [kind, file] = process.argv.slice(2);
const problems = await { openapi, asyncapi, istio }[kind](file);
console.log(problems.join('\n') || `${file}: nothing is wrong`);
process.exit(problems.length ? 1 : 0);
