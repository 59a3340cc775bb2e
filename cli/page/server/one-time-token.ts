import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** 256 bits, for tokens and keys. */
const SECRET_BYTES = 32;

/** Exchanges one-time tokens for keys. Both are kept in memory, as hashes. */
export interface KeyExchange {
  /** Makes a token, of 43 characters of base64url, which `revoke` ends. @param onUsed - called when it is exchanged */
  newToken(onUsed?: () => void): { readonly token: string; revoke(): void };
  /** @returns a key for a token that is valid and was not exchanged before; otherwise `undefined` */
  exchange(token: string): string | undefined;
  accepts(key: string): boolean;
}

/**
 * Creates the exchange of a server. The token crosses the disk, in a file that only its owner can read, so it works once; the key
 * crosses only the connection.
 *
 * @example
 * ```ts
 * const keys = createKeyExchange();
 * const { token } = keys.newToken();
 * const key = keys.exchange(token); // a second exchange returns undefined
 * ```
 */
export function createKeyExchange(): KeyExchange {
  const tokens = new Map<Buffer, () => void>();
  const keys: Buffer[] = [];
  return {
    newToken: (onUsed = () => {}) => {
      const token = newSecret();
      const hash = hashOf(token);
      tokens.set(hash, onUsed);
      return { token, revoke: () => void tokens.delete(hash) };
    },
    exchange: (token) => {
      const hash = match([...tokens.keys()], token);
      if (hash === undefined) return undefined;
      const onUsed = tokens.get(hash);
      tokens.delete(hash);
      onUsed?.();
      const key = newSecret();
      keys.push(hashOf(key));
      return key;
    },
    accepts: (key) => match(keys, key) !== undefined,
  };
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Compares a secret with every hash: neither the position of a match nor a common prefix shows in the time that this takes. */
function match(hashes: readonly Buffer[], secret: string): Buffer | undefined {
  const hash = hashOf(secret);
  return hashes.filter((known) => timingSafeEqual(known, hash))[0];
}

/**
 * Creates the redirect files of a server, each with its own one-time token. A file and its token end when the token is exchanged,
 * and after `keptMs`.
 *
 * The command line of a browser shows in `ps`, so the token must not be on it; the path of a file may be. Only the file's owner can
 * read it: the directory is new and has mode 0700, the file 0600. The token is in the fragment of the address, which a browser sends
 * to no server.
 *
 * @param origin - of the page, e.g. `http://127.0.0.1:40123`
 */
export function createRedirects(keys: KeyExchange, origin: string, keptMs: number) {
  const files = new Set<() => Promise<void>>();
  return {
    /** Writes a file that opens the page once. @returns its path */
    add: async (): Promise<string> => {
      const folder = await mkdtemp(join(tmpdir(), 'mailroom-'));
      const remove = async (): Promise<void> => {
        clearTimeout(timer);
        files.delete(remove);
        revoke();
        await rm(folder, { recursive: true, force: true });
      };
      const { token, revoke } = keys.newToken(() => void remove());
      const timer = setTimeout(() => void remove(), keptMs).unref();
      files.add(remove);
      const path = join(folder, 'open.html');
      await writeFile(path, htmlOf(`${origin}/#token=${token}`), { mode: 0o600, flag: 'wx' });
      return path;
    },
    /** Deletes all files and ends their tokens. */
    removeAll: async (): Promise<void> => void (await Promise.all([...files].map((remove) => remove()))),
  };
}

function htmlOf(address: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${address}">
<title>Mailroom</title>
<p><a href="${address}">Open Mailroom</a></p>
</html>
`;
}
