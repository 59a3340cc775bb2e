import { INBOX_PREFIX, LAST_PREFIX, SYSTEM_PREFIXES } from '../lambdas/runtime/store/keys.ts';
import { ValidationException } from './validation-exception.ts';

/** Refuses an action on a partition key that IAM would deny. */
export type Authorize = (action: string, partitionKey: string | undefined) => void;

/**
 * Creates the access check of a table: rows of the services under their domain keys, and Mailroom's own rows, of which inbox
 * rows and last sequences are only ever updated. Without domain keys, everything is allowed: a test can then prepare any row.
 */
export function accessTo(domainKeys: readonly string[] | undefined): Authorize {
  if (domainKeys === undefined) return () => {};
  const own = domainKeys.map(patternOf);
  return (action, partitionKey = '') => {
    const system = SYSTEM_PREFIXES.some((prefix) => partitionKey.startsWith(prefix));
    const isKept = [INBOX_PREFIX, LAST_PREFIX].some((prefix) => partitionKey.startsWith(prefix));
    const replaced = isKept && /^(?:Put|Delete)Item$/.test(action);
    if (system ? !replaced : own.some((pattern) => pattern.test(partitionKey))) return;
    const why = system
      ? 'inbox rows and last sequences are only updated, and only by Mailroom'
      : `domainKeys lists only ${domainKeys.join(', ') || 'no key'}; add the key there, and in the construct`;
    throw new ValidationException(
      `The test is not authorized to perform dynamodb:${action} on "${partitionKey}": ${why}.`,
      'AccessDeniedException',
    );
  };
}

/** The wildcards of IAM's `StringLike`: `*` for any text, `?` for one character. */
function patternOf(key: string): RegExp {
  const literal = key.replaceAll(/[\\^$.+(){}|[\]]/g, '\\$&');
  return new RegExp(`^${literal.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's');
}
