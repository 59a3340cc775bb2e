import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** Publishing at once: the producer publishes its own events. */
export const writeAtOnceMutants: readonly Mutant[] = [
  ...mutantsOf('write/publish-at-once.ts', unit('publish-at-once'), [
    {
      rule: 'a producer does not publish after its turn',
      from: 'if (untilTurnEnds(rows, context.clock) <= 0) return;',
      to: '',
    },
    {
      rule: 'a call of a producer to the bus ends with its turn',
      from: 'rows.map(({ entry }) => entry), untilTurnEnds(rows, clock),',
      to: 'rows.map(({ entry }) => entry), 60_000,',
    },
    {
      rule: 'a commit returns when the turn of its producer ends',
      from: 'await withDeadline(clock, untilTurnEnds(rows, clock), published.catch(nothing), nothing);',
      to: 'await published;',
    },
    {
      rule: 'a producer tries once more on a connection that was closed while idle',
      from: '!CLOSED.test(errorCode(error))',
      to: 'true',
    },
    {
      rule: 'a producer does not repeat a call that failed otherwise',
      from: '!CLOSED.test(errorCode(error)) ||',
      to: '',
    },
    {
      rule: 'a producer marks only what the bus accepted',
      from: 'rows.filter((_, index) => results[index]?.ok)',
      to: 'rows',
    },
    {
      rule: 'a failure to publish at once does not fail the commit',
      from: "telemetry.count('BusFailures');",
      to: 'throw error;',
    },
    {
      rule: 'a commit waits for its marks',
      from: 'await markPublished(',
      to: 'void markPublished(',
    },
    {
      rule: 'a producer does not try again after its turn',
      from: '|| untilTurnEnds(rows, clock) <= 0) throw error;',
      to: ') throw error;',
    },
    {
      rule: 'a producer does not try again at the end of its turn',
      from: '|| untilTurnEnds(rows, clock) <= 0) throw error;',
      to: '|| untilTurnEnds(rows, clock) < 0) throw error;',
    },
    {
      rule: 'a producer does not publish at the end of its turn',
      from: 'untilTurnEnds(rows, context.clock) <= 0',
      to: 'untilTurnEnds(rows, context.clock) < 0',
    },
    {
      rule: 'a commit without events publishes nothing',
      from: 'if (rows.length === 0) return;',
      to: '',
    },
    {
      rule: 'a reset connection is tried once more',
      from: '/^(ECONNRESET|EPIPE)$/',
      to: '/^(EPIPE)$/',
    },
    {
      rule: 'a broken pipe is tried once more',
      from: '/^(ECONNRESET|EPIPE)$/',
      to: '/^(ECONNRESET)$/',
    },
    {
      rule: 'the marks of several calls are written at the same time',
      from: 'const MARKS_AT_A_TIME = 10;',
      to: 'const MARKS_AT_A_TIME = 1;',
    },
    {
      rule: 'a commit whose events were all published reports no failure',
      from: 'if (left.length > 0) report(',
      to: 'report(',
    },
    {
      rule: 'a failure to publish names the events that are left',
      from: 'const left = rows.filter((_, index) => !results[index]?.ok);',
      to: 'const left = rows;',
    },
    {
      rule: 'a failure to publish names the error of an entry that failed',
      from: 'results.find(({ ok }) => !ok)',
      to: 'results[0]',
    },
    {
      rule: 'an entry without a result has an error of its own',
      from: 'result?.ok === false ?',
      to: 'result !== null ?',
    },
    {
      rule: 'a failure to publish names its events',
      from: 'eventIds: rows.map(({ eventId }) => eventId),',
      to: '',
    },
    {
      rule: 'the turn of a commit ends with that of its first row',
      from: 'Math.min(...rows.map(({ producerUntil = 0 }) => producerUntil))',
      to: 'Math.max(...rows.map(({ producerUntil = 0 }) => producerUntil))',
    },
    {
      rule: 'a row without a turn is not published by its producer',
      from: 'producerUntil = 0',
      to: 'producerUntil = Number.MAX_SAFE_INTEGER',
    },
    {
      rule: 'telemetry that fails does not fail the commit',
      from: 'published.catch(nothing)',
      to: 'published',
    },
    {
      rule: 'a mark names the producer',
      from: "path: 'producer' as const",
      to: "path: 'stream' as const",
    },
  ]),
  ...mutantsOf('write/outbox.ts', unit('publish-at-once'), [
    {
      rule: 'events are published at once only after their transaction',
      from: 'await transactWithRetry({ table, clock, random }, actions);',
      to: 'await publishAtOnce?.publish(made.map(({ entry }) => entry), { table, clock, random }); await transactWithRetry({ table, clock, random }, actions);',
    },
  ]),
];
