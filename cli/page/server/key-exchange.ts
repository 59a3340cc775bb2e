import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** 256 bits, for tokens and keys. */
const SECRET_BYTES = 32;

/** A token of a {@link KeyExchange}. */
interface OneTimeToken {
  /** 43 characters of base64url. */
  readonly token: string;
  /** Ends the token: it can no longer be exchanged. */
  revoke(): void;
}

/** Exchanges one-time tokens for keys. Both are kept in memory, as hashes. */
export interface KeyExchange {
  /** Makes a token. @param onUsed - called when it is exchanged */
  newToken(onUsed?: () => void): OneTimeToken;
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
