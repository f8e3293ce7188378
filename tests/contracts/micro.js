// SPDX-License-Identifier: Apache-2.0
// What the official client of NATS reads through the service protocol: one document on standard output.
const { readFileSync } = require('node:fs');
const { connect, nkeyAuthenticator } = require('nats');

async function all(answers) {
  const found = [];
  for await (const one of await answers) found.push(one);
  return found;
}

async function main() {
  const seed = Buffer.from(readFileSync(process.env.NATS_NKEY, 'ascii').trim());
  const bus = await connect({ servers: process.env.NATS_URL, authenticator: nkeyAuthenticator(seed), inboxPrefix: '_INBOX.tidegate.operator' });
  const client = bus.services.client({ strategy: 'stall', maxWait: 2000, stall: 500 });
  const ping = await all(client.ping());
  const { name, id } = ping[0];
  const told = {
    ping,
    info: await all(client.info()),
    stats: await all(client.stats()),
    byName: (await all(client.ping(name))).length,
    byId: (await all(client.info(name, id))).length,
  };
  console.log(JSON.stringify(told));
  await bus.close();
}

main();
