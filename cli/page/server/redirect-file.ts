import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyExchange } from './key-exchange.ts';

/** The redirect files of a server, each with its own one-time token. */
export interface Redirects {
  /** Writes a file that opens the page once. @returns its path */
  add(): Promise<string>;
  /** Deletes all files and ends their tokens. */
  removeAll(): Promise<void>;
}

/**
 * Creates the redirect files of a server. A file and its token end when the token is exchanged, and after `keptMs`.
 *
 * The command line of a browser shows in `ps`, so the token must not be on it; the path of a file may be. Only the file's owner can
 * read it: the directory is new and has mode 0700, the file 0600. The token is in the fragment of the address, which a browser sends
 * to no server.
 *
 * @param origin - of the page, e.g. `http://127.0.0.1:40123`
 */
export function createRedirects({
  keys,
  origin,
  keptMs,
}: {
  readonly keys: KeyExchange;
  readonly origin: string;
  readonly keptMs: number;
}): Redirects {
  const files = new Set<() => Promise<void>>();
  return {
    add: async () => {
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
    removeAll: async () => void (await Promise.all([...files].map((remove) => remove()))),
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
