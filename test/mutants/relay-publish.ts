import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** Publishing, which both relays share. */
export const relayPublishMutants: readonly Mutant[] = [
  ...mutantsOf('relay/relay.ts', unit('relay-stream-failures', 'relay-stream', 'relay-turns'), [
    {
      rule: 'an event is published first and marked second',
      from: 'batchEntries(rows).map(async (batch) => {',
      to: 'batchEntries(rows).map(async (batch) => { await mark(batch);',
    },
    {
      rule: 'everything that is published is marked',
      from: 'await mark(waiting); return outcomes',
      to: 'return outcomes',
    },
    {
      rule: 'a row is published only while its relay still may',
      from: 'mayPublish(row) && outlastsPublish(row)',
      to: 'outlastsPublish(row)',
    },
    {
      rule: 'a row is published only while its lease outlasts the publish',
      from: 'mayPublish(row) && outlastsPublish(row)',
      to: 'mayPublish(row)',
    },
    {
      rule: 'a publish ends a clock margin before its lease does',
      from: 'config.publishTimeoutMs + CLOCK_SKEW_MS',
      to: 'config.publishTimeoutMs',
    },
    {
      rule: 'a call may take as long as its timeout under the lease',
      from: 'config.publishTimeoutMs + CLOCK_SKEW_MS',
      to: 'CLOCK_SKEW_MS',
    },
  ]),
  ...mutantsOf('relay/relay-context.ts', unit('relay-stream-failures', 'relay-stream', 'relay-turns'), [
    {
      rule: 'few failed calls are repeated at a time',
      from: 'retries: pLimit(RETRIES_AT_ONCE)',
      to: 'retries: pLimit(1_000)',
      killers: unit('relay-calls'),
    },
    {
      rule: 'calls are few until the bus has accepted one',
      from: 'Math.min(FIRST_CALLS, concurrency)',
      to: 'concurrency',
      killers: unit('relay-calls'),
    },
  ]),
  ...mutantsOf('relay/publish-batch.ts', unit('relay-stream-failures', 'relay-stream', 'relay-turns'), [
    {
      rule: 'right before each call, each row is asked whether it may still be published',
      from: 'const sent = rows.filter(ours);',
      to: 'const sent = rows;',
    },
    {
      rule: 'a row that may not be published any more is reported',
      from: "const answers = rows.filter((row) => !sent.includes(row)).map((row) => outcome(row, 'leaseTooShort'));",
      to: 'const answers: PublishOutcome<R>[] = [];',
    },
    {
      rule: 'a row that is skipped is reported',
      from: "const done = batch.filter((row) => !rows.includes(row)).map((row) => outcome(row, 'skipped'));",
      to: 'const done: PublishOutcome<R>[] = [];',
    },
    {
      rule: 'nothing is sent for a source that the bus does not take at the moment',
      from: 'const rows = batch.filter((row) => !breaker.isOpen(row.entry.source));',
      to: 'const rows = [...batch];',
    },
    {
      rule: 'only the entries that failed are sent again',
      from: 'retryBatch(context, again, breaker, ours)',
      to: 'retryBatch(context, tried, breaker, ours)',
    },
    {
      rule: 'a call that failed for the bus is made again',
      from: 'attempt < PUBLISH_TRIES',
      to: 'attempt < 1',
    },
    {
      rule: 'an entry that is not allowed is not sent again at once',
      from: "const again = tried.filter(({ is }) => is === 'bus');",
      to: "const again = tried.filter(({ is }) => is === 'bus' || is === 'access');",
    },
    {
      rule: 'a call that is not allowed because of one source is made again for each source',
      from: "if (fault !== 'access') return [rows];",
      to: 'return [rows];',
    },
    {
      rule: 'of a call that was made again for each source, the denied part is reported',
      from: 'answers.push(...(await putEntries(context, part, ours)));',
      to: "answers.push(...(await putEntries(context, part, ours)).filter(({ is }) => is !== 'access'));",
    },
    {
      rule: 'of a call that was made again in parts, what was published is marked',
      from: 'answers.push(...(await putEntries(context, part, ours)));',
      to: "answers.push(...(await putEntries(context, part, ours)).filter(({ is }) => is !== 'published'));",
    },
    {
      rule: 'a row that the bus did not take is reported',
      from: 'return [...done, ...again];',
      to: 'return done;',
    },
    {
      rule: 'a row that may not be published is reported',
      from: "done.push(...tried.filter(({ is }) => is !== 'bus')); if (again",
      to: "done.push(...tried.filter(({ is }) => is !== 'bus' && is !== 'access')); if (again",
    },
    {
      rule: 'a failed call is not repeated once other calls have stopped its source',
      from: 'const stopped = again.filter(({ row }) => breaker.isOpen(row.entry.source));',
      to: 'const stopped = again.slice(0, 0);',
      killers: unit('relay-calls'),
    },
    {
      rule: 'what was stopped before its call was repeated is reported',
      from: 'done.push(...stopped);',
      to: '',
      killers: unit('relay-calls'),
    },
    {
      rule: 'calls are many once the bus has accepted one',
      from: "if (done.some(({ is }) => is === 'published')) publishes.concurrency = concurrency;",
      to: '',
      killers: unit('relay-calls'),
    },
    {
      rule: 'the breaker is told of the sources that the bus did not take',
      from: "is === 'bus' || is === 'access');",
      to: "is === 'access');",
      killers: unit('relay-sweep-breaker'),
    },
    {
      rule: 'the breaker is told how each call ended',
      from: "breaker.record({ took: sourcesOf(rowsThat(done, 'published')), failed: sourcesOf(failed.map(({ row }) => row)), });",
      to: '',
    },
    {
      rule: "every entry's own result is read",
      from: 'if (result?.ok) return',
      to: 'return',
    },
    {
      rule: 'an entry without a result is not published',
      from: 'if (result?.ok) return',
      to: 'if (result?.ok ?? true) return',
    },
    {
      rule: 'a failure of the bus counts no attempt',
      from: "is === 'event' || is === 'unknown')",
      to: "is === 'event' || is === 'unknown' || is === 'bus')",
    },
    {
      rule: 'a failure of unknown cause counts an attempt',
      from: "is === 'event' || is === 'unknown')",
      to: "is === 'event')",
    },
    {
      rule: 'a failure of unknown cause does not make an event DEAD at once',
      from: "failEvent(context, row, error, is === 'event')",
      to: 'failEvent(context, row, error, true)',
    },
    {
      rule: 'a call that is refused as invalid is made once for each entry',
      from: "if (fault === 'event') return rows.map((row) => [row]);",
      to: '',
    },
    {
      rule: 'a call that fails as a whole makes no event DEAD unless it is refused as invalid',
      from: 'outcome(row, fault, asMailroomError(thrown))',
      to: "outcome(row, 'event', asMailroomError(thrown))",
    },
  ]),
  ...mutantsOf('relay/entry-batches.ts', unit('entry-batches'), [
    {
      rule: 'a call has at most ten entries',
      from: 'last.length >= PUT_EVENTS_ENTRIES_MAX ||',
      to: '',
    },
    {
      rule: 'a call is below its limit of bytes',
      from: '|| bytes > bytesLeft',
      to: '',
    },
  ]),
  ...mutantsOf('relay/bus-breaker.ts', unit('bus-breaker'), [
    {
      rule: 'a source that fails again and again is left alone',
      from: '>= SOURCE_FAILURES_MAX,',
      to: '> 1_000_000,',
    },
    {
      rule: 'when the bus is given up, no source is tried',
      from: 'isOpen: (source) => isGivenUp() ||',
      to: 'isOpen: (source) =>',
    },
    {
      rule: 'what the bus takes of a source clears its failures',
      from: 'for (const source of took) failures.delete(source);',
      to: '',
    },
    {
      rule: 'a source of which something was taken has not failed',
      from: 'if (!took.has(source)) failures.set',
      to: 'failures.set',
    },
    {
      rule: 'one call that is taken clears the failures in a row',
      from: 'if (took.size > 0) inARow = 0; else if (news)',
      to: 'if (took.size === 0 && news)',
    },
    {
      rule: 'a source that is left alone does not bring the others down',
      from: 'else if (news) inARow += 1;',
      to: 'else inARow += 1;',
    },
  ]),
  ...mutantsOf('relay/publish-fault.ts', unit('relay-stream-failures', 'relay-sweep-failures'), [
    {
      rule: 'an entry that is refused for what it is is the event’s fault',
      from: "if (EVENT_CODES.test(code)) return 'event';",
      to: '',
    },
    {
      rule: 'an entry that is not allowed is not the event’s fault',
      from: "if (ACCESS_CODES.test(code)) return 'access';",
      to: '',
    },
    {
      rule: 'an entry that is throttled is not the event’s fault',
      from: "return BUS_CODES.test(code) ? 'bus' : 'unknown';",
      to: "return 'unknown';",
    },
    {
      rule: 'an entry that fails for an unknown reason is not the fault of the bus',
      from: "return BUS_CODES.test(code) ? 'bus' : 'unknown';",
      to: "return 'bus';",
    },
    {
      rule: 'a call that is not allowed is the fault of the configuration',
      from: "return ACCESS_CODES.test(code) ? 'access' : 'bus';",
      to: "return 'bus';",
    },
  ]),
];
