// SPDX-License-Identifier: Apache-2.0
// Rendered manifests against the Kubernetes schemas, without a cluster. One line a fault; exit 1 when there is one.
// Lies beside node_modules when it runs: run.py copies it there.
import fs from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';

const ROOTS = ['kubernetes-models', '@kubernetes-models/prometheus-operator', '@kubernetes-models/gateway-api'];

async function model(apiVersion, kind) {
  for (const root of ROOTS) {
    try {
      return (await import(`${root}/${apiVersion}/${kind}`))[kind];
    } catch (fault) {
      if (!['ERR_PACKAGE_PATH_NOT_EXPORTED', 'ERR_MODULE_NOT_FOUND'].includes(fault.code)) throw fault;
    }
  }
  return null;
}

let checked = 0;
let faults = 0;
const tell = (file, where, text) => {
  faults++;
  console.log(`${path.basename(file)}: ${where}: ${text}`);
};
for (const file of process.argv.slice(2)) {
  for (const document of parseAllDocuments(fs.readFileSync(file, 'utf8'), { uniqueKeys: true })) {
    if (document.errors.length) {
      tell(file, 'YAML', document.errors[0].message);
      continue;
    }
    const object = document.toJS();
    if (!object) continue;
    const where = `${object.apiVersion}/${object.kind} ${object.metadata?.name}`;
    const Model = await model(object.apiVersion, object.kind);
    if (!Model) {
      tell(file, where, 'no schema of this kind');
      continue;
    }
    checked++;
    try {
      new Model(object).validate();
    } catch (fault) {
      tell(file, where, fault.message);
    }
  }
}
console.log(`${checked} objects checked, ${faults} faults`);
process.exit(faults || !checked ? 1 : 0);
