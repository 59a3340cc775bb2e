import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The stream relay. */
export const relayStreamMutants: readonly Mutant[] = [
  ...mutantsOf('relay/relay-stream.ts', unit('relay-stream', 'relay-stream-failures', 'relay-turns'), [
    {
      rule: 'the stream publishes declared sources only',
      from: 'const rows = group.filter(declared.has);',
      to: 'const rows = group;',
      killers: ['test/attack/forged-events.test.ts'],
    },
    {
      rule: 'a record is published without a claim only while it is fresh',
      from: '< FRESH_MS;',
      to: '< Number.POSITIVE_INFINITY;',
    },
    {
      rule: 'a record from the future is not fresh',
      from: 'Math.abs(context.clock.now() - row.recordedAt)',
      to: '(context.clock.now() - row.recordedAt)',
    },
    {
      rule: 'a record that ages while it waits is claimed first',
      from: 'publishEvents(context, fresh, breaker, isFresh)',
      to: 'publishEvents(context, fresh, breaker)',
    },
    {
      rule: 'a fresh record whose lease is nearly over is claimed',
      from: "[...late, ...rowsThat(outcomes, 'leaseTooShort')]",
      to: 'late',
    },
    {
      rule: 'a fresh record that the bus did not take is handed back',
      from: "unpublished: rowsThat(outcomes, 'bus', 'access', 'skipped')",
      to: "unpublished: rowsThat(outcomes, 'access', 'skipped')",
    },
    {
      rule: 'a fresh record that was skipped is handed back',
      from: "unpublished: rowsThat(outcomes, 'bus', 'access', 'skipped')",
      to: "unpublished: rowsThat(outcomes, 'bus', 'access')",
    },
    {
      rule: 'late records have the time of one claim',
      from: 'publishLate(context, group, breaker, () => clock.now() < lastPublishAt)',
      to: 'publishLate(context, group, breaker, () => true)',
    },
    {
      rule: 'a late record is claimed before it is published',
      from: 'const { claimed, failed } = await claimEvents( context, rows.filter((row) => !left.includes(row)), );',
      to: 'const failed: StreamRow[] = []; const claimed = rows.filter((row) => !left.includes(row));',
    },
    {
      rule: 'a late record whose turn does not come is not claimed',
      from: '|| !inTime());',
      to: ');',
    },
    {
      rule: 'a late record of a source that the bus does not take is not claimed',
      from: 'rows.filter((row) => breaker.isOpen(row.entry.source) || !inTime())',
      to: 'rows.filter(() => !inTime())',
    },
    {
      rule: 'a record is handed back only while its born lease lasts',
      from: 'bornLeaseUntil > clock.now()',
      to: 'true',
    },
    {
      rule: 'a record that comes again finds the lease of its image',
      from: 'await releaseEvents( context, back.map((row) => ({ row, leaseUntil: row.bornLeaseUntil })), );',
      to: '',
    },
    {
      rule: 'a late record that the bus did not take is handed back',
      from: "rowsThat(outcomes, 'bus', 'access', 'skipped', 'leaseTooShort')",
      to: "rowsThat(outcomes, 'access', 'skipped', 'leaseTooShort')",
    },
    {
      rule: 'a late record that was skipped is handed back',
      from: "rowsThat(outcomes, 'bus', 'access', 'skipped', 'leaseTooShort')",
      to: "rowsThat(outcomes, 'bus', 'access', 'leaseTooShort')",
    },
    {
      rule: 'a late record whose lease ran short is handed back',
      from: "rowsThat(outcomes, 'bus', 'access', 'skipped', 'leaseTooShort')",
      to: "rowsThat(outcomes, 'bus', 'access', 'skipped')",
    },
    {
      rule: 'a late record whose turn did not come is handed back',
      from: '[...left, ...failed, ...back].map',
      to: '[...failed, ...back].map',
    },
    {
      rule: 'a late record whose claim has an unknown outcome is handed back',
      from: '[...left, ...failed, ...back].map',
      to: '[...left, ...back].map',
    },
    {
      rule: 'a batch is handed back only after a pause: the mapping counts how often it brings it',
      from: 'Math.max(HAND_BACK_MS, untilNoLongerFresh(youngest, clock.now()))',
      to: 'untilNoLongerFresh(youngest, clock.now())',
    },
    {
      rule: 'a batch is handed back only when none of its records is fresh any more',
      from: 'Math.max(HAND_BACK_MS, untilNoLongerFresh(youngest, clock.now()))',
      to: 'HAND_BACK_MS',
    },
    {
      rule: 'a batch is handed back a clock margin after its records were fresh',
      from: 'FRESH_MS + CLOCK_SKEW_MS',
      to: 'FRESH_MS',
    },
    {
      rule: 'a row that comes twice in a batch is published once',
      from: 'if (seen.has(row.key.SK)) continue;',
      to: '',
    },
    {
      rule: 'only the birth of a row is published',
      from: "record?.eventName !== 'INSERT' ||",
      to: '',
    },
    {
      rule: 'a fresh record whose producer publishes at once is not published without a claim',
      from: 'row.producerUntil === undefined &&',
      to: '',
      killers: unit('producer-turn'),
    },
    {
      rule: "a record is claimed only after its producer's turn",
      from: 'afterProducers(context, ofProducers).then(',
      to: 'Promise.resolve(ofProducers).then(',
      killers: unit('producer-turn'),
    },
  ]),
];
