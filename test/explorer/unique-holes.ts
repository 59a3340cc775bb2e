import type { Hole } from './relay-holes.ts';
import { conditionWithout, tamperedTable } from './tampered-table.ts';
import type { UniqueTamper } from './unique-scenarios.ts';

/** The rules of a unique event, one by one. */
export const UNIQUE_HOLES: readonly Hole<UniqueTamper>[] = [
  {
    rule: 'a key is taken only if it is free',
    where: 'producers of one fact',
    tamper: {
      table: (real) =>
        tamperedTable(real, {
          update: conditionWithout('(attribute_not_exists(PK) OR expiresAt < :nowS) AND '),
        }),
    },
    found: /A fact was committed twice/,
  },
  {
    rule: 'the key is taken in the transaction of its event',
    where: 'producers of one fact',
    tamper: {
      table: (real) => ({
        ...real,
        transact: async (actions, token) => {
          const keys = actions.filter(({ Update }) => Update !== undefined);
          const events = actions.filter(({ Update }) => Update === undefined);
          await real.transact(events, token);
          await real.transact(keys, `${token?.slice(0, 30)}-key`).catch(() => {});
        },
      }),
    },
    found: /A fact was committed twice/,
  },
];
