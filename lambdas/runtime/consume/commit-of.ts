import { MailroomError } from '../base/errors.ts';

/** Returns the commit that a function of the consumer returned. @throws `NO_COMMIT` if it returned something else */
export async function commitOf<C extends object>(what: string, run: () => Promise<C>): Promise<C> {
  const wanted: unknown = await run();
  const isList = Array.isArray(wanted);
  if (typeof wanted === 'object' && wanted !== null && !isList) return wanted as C;
  throw new MailroomError(
    'NO_COMMIT',
    `${what} returned ${isList ? 'a list' : typeof wanted}; it must return { writes, events }, or {} to write nothing.`,
  );
}
