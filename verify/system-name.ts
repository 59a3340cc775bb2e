import { randomInt } from 'node:crypto';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';

/** Letters and digits that are not mistaken for one another. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';

/** The number of random characters: 31^8 names, so no run meets the stacks of another one. */
const RANDOM_LETTERS = 8;

/** The only names that are ever deployed or destroyed. */
const NAME = new RegExp(`^verify-[${LETTERS}]{${RANDOM_LETTERS}}$`);

/** A new name for a deployment, e.g. `verify-x7k2q9mt`. It is part of the name of each of its stacks. */
export function randomName(): string {
  const letters = Array.from({ length: RANDOM_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]);
  return `verify-${letters.join('')}`;
}

/**
 * Reads the name of a deployment.
 *
 * @throws `BAD_NAME` if it is not one that {@link randomName} returns: nothing else is deployed or destroyed
 */
export function readName(name: unknown): string {
  if (typeof name === 'string' && NAME.test(name)) return name;
  throw new MailroomError(
    'BAD_NAME',
    `The name is "${String(name)}", but must be one that npm run verify has printed, such as verify-x7k2q9mt.`,
  );
}

/** The name of the stack with the table, the relay and the bus. */
export function mailroomStack(name: string): string {
  return `mailroom-${name}`;
}
