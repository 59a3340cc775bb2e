import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';

const lost = async (): Promise<never> => {
  throw Object.assign(new Error('The connection was lost.'), { fatal: true });
};

/** A database that loses the answer to each COMMIT. */
export function losingCommits<Tx>(database: Database<Tx>): Database<Tx> {
  return {
    ...database,
    transaction: async (run) => {
      await database.transaction(run);
      return lost();
    },
  };
}

/** As {@link losingCommits}; it answers nothing from then on. */
export function vanishing<Tx>(database: Database<Tx>): Database<Tx> & { readonly comeBack: () => void } {
  let isGone = false;
  return {
    ...database,
    transaction: async (run) => {
      await database.transaction(run);
      isGone = true;
      return lost();
    },
    query: (...statement) => (isGone ? lost() : database.query(...statement)),
    comeBack: () => {
      isGone = false;
    },
  };
}

/** A clock for which a minute passes whenever something waits. */
export function hurriedClock(): Clock {
  let ahead = 0;
  return {
    ...systemClock,
    now: () => Date.now() + ahead,
    sleep: async () => {
      ahead += 60_000;
    },
  };
}
