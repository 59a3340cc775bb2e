import type { JudgeDeps } from '../../../../cli/reports/dead-letters/redrive-plan.ts';
import { verdictOf } from '../../../../cli/reports/why/chain-verdict.ts';
import { isActionRequired } from '../../../../cli/reports/why/event-state.ts';
import { checkRedrive } from '../../../../cli/reports/why/redrive-check.ts';
import { storyOf } from '../../../../cli/reports/why/story.ts';
import { readTrace } from '../../../../cli/reports/why/trace-reader.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { withStored } from '../../../support/with-stored.ts';
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

/** Commits one event and publishes it. @returns its id */
export async function published(mailroom: Mailroom): Promise<string> {
  const eventId = await commit(mailroom);
  await mailroom.publish();
  return eventId;
}

/** Publishes one event, and delivers it until its queue is empty. @returns its id */
export async function drained(mailroom: Mailroom): Promise<string> {
  const eventId = await published(mailroom);
  await mailroom.drain();
  return eventId;
}

/** What `mailroom why` says of an event, and what it is made of. @param check - of the deployed code: it accepts all, if absent */
export async function why(
  mailroom: Mailroom,
  eventId: string,
  deployed = directory,
  check?: JudgeDeps['check'],
) {
  const trace = await readTrace(
    withStored({ directory: deployed, table: mailroom.table, queues: mailroom.queues }),
    [eventId],
  );
  const context = {
    now: mailroom.clock.now(),
    commandLine: (command: string) => `mailroom ${command}`,
    awsLine: (command: string) => `aws ${command}`,
    tableName: mailroom.table.name,
  };
  const deps = {
    table: mailroom.table,
    check: check ?? (async () => []),
    now: context.now,
  };
  const redrive = await checkRedrive(
    withStored(deps),
    trace,
    verdictOf(trace, () => context),
  );
  const verdict = verdictOf(trace, () => ({ ...context, redrive }));
  const story = trace.events.flatMap(storyOf).map(({ consumer, what }) => `${consumer ?? 'outbox'} ${what}`);
  return { trace, verdict, story, needed: isActionRequired(verdict) };
}
