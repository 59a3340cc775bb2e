import { storyOf } from '../../../../cli/why/story.ts';
import { readTrace } from '../../../../cli/why/trace-reader.ts';
import { isActionRequired } from '../../../../cli/why/verdict.ts';
import { verdictOf } from '../../../../cli/why/why-verdict.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { directory, type mailroomInMemory } from './mailroom-in-memory.ts';

export type Mailroom = ReturnType<typeof mailroomInMemory>;

/** Handlers of each kind: what they are given goes well, fails, or never can go well. */
export const fine = leased(ThingHappened, async () => {});
export const broken = leased(ThingHappened, async () => {
  throw new Error('the bank is closed');
});
export const poison = leased(ThingHappened, async () => {
  throw new PoisonMessage('the price is missing');
});

/** Commits one event. @returns its id */
export async function commit(mailroom: Mailroom): Promise<string> {
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  return event?.eventId ?? '';
}

/** What `mailroom why` says of an event, and what it is made of. */
export async function why(mailroom: Mailroom, eventId: string, deployed = directory) {
  const trace = await readTrace({ directory: deployed, table: mailroom.table, queues: mailroom.queues }, [
    eventId,
  ]);
  const verdict = verdictOf(trace, {
    now: mailroom.clock.now(),
    commandLine: (command) => `mailroom ${command}`,
    awsLine: (command) => `aws ${command}`,
    tableName: mailroom.table.name,
  });
  const story = trace.events.flatMap(storyOf).map(({ consumer, what }) => `${consumer ?? 'outbox'} ${what}`);
  return { trace, verdict, story, needed: isActionRequired(verdict) };
}
