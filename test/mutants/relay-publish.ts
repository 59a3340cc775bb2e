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
      rule: 'every published event is marked',
      from: 'report.unmarked.push(...(await mark(waiting)));',
      to: '',
    },
    {
      rule: "a row is published only while the relay's own deadline allows it",
      from: 'mayPublish(row) && outlastsPublish(row)',
      to: 'outlastsPublish(row)',
    },
    {
      rule: 'a row is published only if its lease outlasts the call',
      from: 'mayPublish(row) && outlastsPublish(row)',
      to: 'mayPublish(row)',
    },
    {
      rule: 'a call ends a clock margin before the lease does',
      from: 'config.publishTimeoutMs + LEASE_MARGIN_MS',
      to: 'config.publishTimeoutMs',
    },
    {
      rule: 'the lease covers the timeout of a call',
      from: 'config.publishTimeoutMs + LEASE_MARGIN_MS',
      to: 'LEASE_MARGIN_MS',
    },
    {
      rule: 'the lease is checked again right before each call',
      from: 'const sent = rows.filter(ours);',
      to: 'const sent = rows;',
    },
    {
      rule: 'a row whose lease ran short is reported',
      from: 'report.leaseTooShort.push(...rows.filter((row) => !sent.includes(row)));',
      to: '',
    },
    {
      rule: 'a skipped row is reported',
      from: 'report.skipped.push(...batch.filter((row) => breaker.isOpen(row.entry.source)));',
      to: '',
    },
    {
      rule: 'nothing is sent for a source that the breaker has cut off',
      from: 'let rows = batch.filter((row) => !breaker.isOpen(row.entry.source));',
      to: 'let rows = [...batch];',
    },
    {
      rule: 'only the entries that failed are sent again',
      from: 'rows = left.map(({ row }) => row);',
      to: '',
    },
    {
      rule: 'a call that the bus failed is retried',
      from: 'attempt >= PUBLISH_TRIES',
      to: 'attempt >= 1',
    },
    {
      rule: 'a call without permission is not retried',
      from: 'if (left.length === 0 || answer.final || attempt',
      to: 'if (left.length === 0 || attempt',
    },
    {
      rule: 'an entry without permission stops the retries',
      from: "answer.final ||= fault === 'access';",
      to: '',
    },
    {
      rule: 'a whole call without permission stops the retries',
      from: "answer.final = fault === 'access';",
      to: '',
    },
    {
      rule: 'an entry without permission stops the retries even if it was sent alone',
      from: 'whole.final ||= one.final;',
      to: '',
    },
    {
      rule: 'a row that the bus failed to take is reported',
      from: 'report.failed.push(...left);',
      to: '',
    },
    {
      rule: 'the breaker records the result of each call',
      from: 'breaker.record({ took: sources(published), failed: sources(left.map(({ row }) => row)) });',
      to: '',
    },
    {
      rule: 'the result of each entry is read',
      from: 'if (result.ok) {',
      to: 'if (true) {',
    },
    {
      rule: 'an entry without a result was not published',
      from: 'results[i] ?? { ok: false,',
      to: 'results[i] ?? { ok: true,',
    },
    {
      rule: 'a failure of the bus counts no attempt',
      from: 'else answer.busFailed.push(failed);',
      to: 'else answer.failed.push(failed);',
    },
    {
      rule: 'a failure of unknown cause counts an attempt',
      from: "else if (fault === 'unknown') answer.failed.push(failed);",
      to: '',
    },
    {
      rule: 'a failure of unknown cause does not make an event DEAD at once',
      from: "else if (fault === 'unknown') answer.failed.push(failed);",
      to: "else if (fault === 'unknown') answer.refused.push(failed);",
    },
    {
      rule: 'a call that is refused as invalid is split into single entries',
      from: "if (fault === 'event' && rows.length > 1) return oneByOne(rows, ours);",
      to: '',
    },
    {
      rule: 'a failed call makes an event DEAD only if it was refused as invalid',
      from: "(fault === 'event' ? answer.refused : answer.busFailed)",
      to: 'answer.refused',
    },
    {
      rule: 'the lease is checked again before each single entry',
      from: 'if (!ours(row)) {',
      to: 'if (false) {',
    },
  ]),
  ...mutantsOf('relay/entry-batches.ts', unit('entry-batches'), [
    {
      rule: 'a call has at most ten entries',
      from: 'last.length >= PUT_EVENTS_ENTRIES_MAX ||',
      to: '',
    },
    {
      rule: 'a call stays below its limit of bytes',
      from: '|| bytes > bytesLeft',
      to: '',
    },
  ]),
  ...mutantsOf('relay/bus-breaker.ts', unit('bus-breaker'), [
    {
      rule: 'a source that keeps failing is cut off',
      from: '>= SOURCE_FAILURES_MAX,',
      to: '> 1_000_000,',
    },
    {
      rule: 'when the bus is given up, every source is cut off',
      from: 'isOpen: (source) => isGivenUp() ||',
      to: 'isOpen: (source) =>',
    },
    {
      rule: 'a published event clears the failures of its source',
      from: 'for (const source of took) failures.delete(source);',
      to: '',
    },
    {
      rule: 'a call that published something of a source is not a failure of that source',
      from: 'if (!took.has(source)) failures.set',
      to: 'failures.set',
    },
    {
      rule: 'a published event clears the failures in a row',
      from: 'if (took.size > 0) inARow = 0; else if (news)',
      to: 'if (took.size === 0 && news)',
    },
    {
      rule: 'a source that is cut off does not count against the bus',
      from: 'else if (news) inARow += 1;',
      to: 'else inARow += 1;',
    },
  ]),
  ...mutantsOf('relay/publish-fault.ts', unit('relay-stream-failures', 'relay-sweep-failures'), [
    {
      rule: 'an entry that is refused for its content is the fault of the event',
      from: "if (EVENT_CODES.test(code)) return 'event';",
      to: '',
    },
    {
      rule: 'an entry without permission is not the fault of the event',
      from: "if (ACCESS_CODES.test(code)) return 'access';",
      to: '',
    },
    {
      rule: 'a throttled entry is not the fault of the event',
      from: "return BUS_CODES.test(code) ? 'bus' : 'unknown';",
      to: "return 'unknown';",
    },
    {
      rule: 'a failure of unknown cause is not the fault of the bus',
      from: "return BUS_CODES.test(code) ? 'bus' : 'unknown';",
      to: "return 'bus';",
    },
    {
      rule: 'a call without permission is the fault of the configuration',
      from: "return ACCESS_CODES.test(code) ? 'access' : 'bus';",
      to: "return 'bus';",
    },
  ]),
];
