import { setTimeout as pause } from 'node:timers/promises';
import { lambdaConsumer, leased } from '../../../lambdas/runtime/index.ts';
import { CallRequested } from './call-requested.ts';

/** Takes a second, and writes down when the call began and ended. */
const call = leased(
  CallRequested,
  async ({ eventId, data: { first } }, ctx) => {
    const startedAt = Date.now();
    const does = ctx.attempt === 1 ? first : 'calls';
    if (does === 'exits') process.exit(1);
    await pause(does === 'hangs' ? 600_000 : 1_000);
    const Item = { PK: `CALL#${eventId}`, SK: 'CALL', startedAt, endedAt: Date.now() };
    await ctx.commit({ writes: [{ Put: { Item } }] });
  },
  { limit: { name: 'provider', key: ({ data }) => data.provider, concurrency: 2 } },
);

export const handler = lambdaConsumer([call]);
