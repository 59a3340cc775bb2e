import { afterAll, beforeAll, describe, it } from 'vitest';

/** One case of a contract: its title, and what must hold. */
export type Case<S> = readonly [title: string, run: (subject: S) => Promise<void>];

/** What a contract is run on, and how it is removed afterwards. */
export interface Subject<S> {
  readonly subject: S;
  remove(): Promise<void>;
}

/** Cases that one implementation is known to fail: why, by title. */
export type Differences = Readonly<Record<string, string>>;

/**
 * Runs the cases of a contract on one implementation.
 *
 * @throws when `differences` names a case that does not exist
 */
export function describeCases<S>(
  name: string,
  cases: readonly Case<S>[],
  make: () => Promise<Subject<S>>,
  differences: Differences = {},
): void {
  const titles = new Set(cases.map(([title]) => title));
  if (titles.size < cases.length) throw new Error(`Two cases of ${name} have the same title`);
  const unknown = Object.keys(differences).filter((title) => !titles.has(title));
  if (unknown.length > 0) throw new Error(`No case of ${name} is called: ${unknown.join('; ')}`);

  describe(name, () => {
    let made: Subject<S> | undefined;
    beforeAll(async () => {
      made = await make();
    });
    afterAll(() => made?.remove());
    for (const [title, run] of cases) {
      const reason = differences[title];
      it.skipIf(reason !== undefined)(
        reason === undefined ? title : `${title} (differs: ${reason})`,
        async () => {
          if (!made) throw new Error('The subject was not made');
          await run(made.subject);
        },
      );
    }
  });
}

/** The same reason for several cases. */
export function differing(reason: string, titles: readonly string[]): Differences {
  return Object.fromEntries(titles.map((title) => [title, reason]));
}
