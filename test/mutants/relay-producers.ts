import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The stream relay beside producers that publish at once. */
export const relayProducerMutants: readonly Mutant[] = [
  ...mutantsOf('relay/producer-turn.ts', unit('producer-turn'), [
    {
      rule: "a producer's turn is over only a clock margin after its end",
      from: '+ CLOCK_SKEW_MS;',
      to: ';',
    },
    {
      rule: 'a row that is not there yet, or cannot be read, counts as unpublished',
      from: "?? 'PENDING')",
      to: "?? 'PUBLISHED')",
    },
    {
      rule: 'a read that fails stops no other record',
      from: 'failure = { error }; return undefined;',
      to: 'throw error;',
    },
    {
      rule: 'no turn of a producer is waited for longer than the longest one',
      from: 'Math.min(producerUntil, recordedAt + RECORDED_WITHIN_MS + AT_ONCE_TIMEOUT_MAX_MS)',
      to: 'producerUntil',
    },
    {
      rule: 'a record that comes after the turn is read before it is claimed',
      from: 'Math.max(turnEndsAt(row), firstReadsEndAt) - clock.now()',
      to: 'turnEndsAt(row) - clock.now()',
    },
    {
      rule: 'only a row that its producer did not publish counts as a failure',
      from: 'producerUntil !== undefined',
      to: 'true',
      killers: unit('producer-turn', 'relay-stream'),
    },
    {
      rule: 'a read that hangs ends with the turn',
      from: 'Math.max(turnEndsAt(row), firstReadsEndAt) - clock.now()',
      to: '60_000_000',
    },
    {
      rule: 'a row that its producer has published is not claimed',
      from: "=== 'PENDING')",
      to: "!== 'PENDING' || true)",
    },
    {
      rule: "a row whose producer's turn ends first is not lost while others wait",
      from: 'unpublished.push(...pending.filter',
      to: 'unpublished.splice(0, unpublished.length, ...pending.filter',
    },
    {
      rule: "a row is claimed only after the end of its producer's turn",
      from: '(row) => turnEndsAt(row) < now',
      to: '(row) => turnEndsAt(row) <= now',
    },
    {
      rule: 'a row at the very end of its turn is looked at again',
      from: 'turnEndsAt(row) >= now',
      to: 'turnEndsAt(row) > now',
    },
    {
      rule: 'a row that may be published stays until all turns have ended',
      from: 'waiting = pending.filter((row) => turnEndsAt(row) >= now);',
      to: 'waiting = [];',
    },
    {
      rule: 'a record may have been written up to a second after its time',
      from: 'const RECORDED_WITHIN_MS = 1_000;',
      to: 'const RECORDED_WITHIN_MS = 0;',
    },
    {
      rule: 'the reads of a late record have a second at most',
      from: 'const READ_MIN_MS = 1_000;',
      to: 'const READ_MIN_MS = 60_000;',
    },
    {
      rule: 'the reads of a late record have a second',
      from: 'const READ_MIN_MS = 1_000;',
      to: 'const READ_MIN_MS = 100;',
    },
    {
      rule: 'the pauses between two looks grow',
      from: 'pauseMs *= 2',
      to: 'pauseMs *= 1',
    },
    {
      rule: 'a row is looked at again soon',
      from: 'const LOOK_AGAIN_MS = 50;',
      to: 'const LOOK_AGAIN_MS = 500;',
    },
    {
      rule: "a row is claimed as soon as its producer's turn has ended",
      from: 'clock.sleep(Math.min(pauseMs, longestMs))',
      to: 'clock.sleep(pauseMs)',
    },
    {
      rule: 'the last look is after the end of the turn',
      from: '+ 1 - now',
      to: '- now',
    },
    {
      rule: 'a relay that has no missed turn reports none',
      from: 'if (missed.length === 0) return;',
      to: '',
    },
    {
      rule: 'each missed turn is counted',
      from: "telemetry.count('BusFailures', missed.length);",
      to: "telemetry.count('BusFailures');",
    },
    {
      rule: 'the longest turn of a producer is waited for',
      from: 'RECORDED_WITHIN_MS + AT_ONCE_TIMEOUT_MAX_MS',
      to: 'RECORDED_WITHIN_MS',
    },
    {
      rule: 'a failed read is logged',
      from: 'if (failure !== undefined) {',
      to: 'if (false) {',
    },
    {
      rule: 'reads that succeed log nothing',
      from: 'if (failure !== undefined) {',
      to: 'if (true) {',
    },
  ]),
  ...mutantsOf('relay/relay-stream.ts', unit('producer-turn', 'relay-stream'), [
    {
      rule: "a record's time is in seconds",
      from: 'Math.floor(Number(ApproximateCreationDateTime)) * 1_000',
      to: 'Math.floor(Number(ApproximateCreationDateTime))',
    },
    {
      rule: 'a record without a time counts as old',
      from: 'Number.isFinite(ApproximateCreationDateTime)',
      to: 'true',
    },
    {
      rule: 'rows of producers are claimed in their own time',
      from: 'publishClaimed(context, left, breaker, inTime)',
      to: 'publishClaimed(context, left.slice(0, 1), breaker, inTime)',
    },
    {
      rule: 'missed turns are reported',
      from: 'reportMissedTurns(context, claimed);',
      to: '',
    },
  ]),
];
