// SPDX-License-Identifier: Apache-2.0
// njs: answers an auth_request with 204 for a fresh pass of the sale, else 403.
import fs from 'fs';

const decode = (part) => JSON.parse(Buffer.from(part, 'base64url').toString());

function readKey(path) {
  const pem = fs.readFileSync(path, 'utf8').split('\n').filter((line) => line && !line.startsWith('-')).join('');
  return crypto.subtle.importKey('spki', Buffer.from(pem, 'base64'), { name: 'ECDSA', namedCurve: 'P-256' }, false, ['verify']);
}

async function fresh(pass, sale, keyFile) {
  const parts = pass.split('.');
  if (parts.length !== 3) return null;
  const head = decode(parts[0]);
  // The algorithm is pinned before anything is verified (RFC 8725).
  if (head.alg !== 'ES256' || head.typ !== 'tg-pass+jwt') return null;
  const pair = Buffer.from(parts[2], 'base64url');
  const text = Buffer.from(`${parts[0]}.${parts[1]}`);
  const how = { name: 'ECDSA', hash: 'SHA-256' };
  if (pair.length !== 64) return null;
  const key = await readKey(keyFile);
  const verified = await crypto.subtle.verify(how, key, pair, text);
  if (!verified) return null;
  const claims = decode(parts[1]);
  const good = claims.iss === 'tidegate' && claims.aud === sale && Number.isInteger(claims.exp) && claims.exp > Date.now() / 1000;
  return good ? claims : null;
}

async function check(r) {
  let claims = null;
  const shown = r.rawHeadersIn.filter((header) => header[0].toLowerCase() === 'x-admission-token');
  try {
    if (shown.length === 1) {
      claims = await fresh(shown[0][1], r.variables.tidegate_sale, r.variables.tidegate_pass_key);
    }
  } catch (fault) {
    claims = null;
  }
  if (claims) r.headersOut['X-Tidegate-User'] = claims.sub;
  r.return(claims ? 204 : 403);
}

export default { check };
