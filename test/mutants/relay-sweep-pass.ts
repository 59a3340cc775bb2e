import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The sweep relay: which minutes it reads, and when it ends. */
export const relaySweepPassMutants: readonly Mutant[] = [
  ...mutantsOf('relay/sweep-pass.ts', unit('sweep-state', 'relay-sweep'), [
    {
      rule: 'the stored state is the time at which the pass started',
      from: 'start.moveTo(to)',
      to: 'start.moveTo(clock.now())',
    },
    {
      rule: 'the state moves only past minutes that were read whole',
      from: 'if (!whole) return false;',
      to: '',
    },
    {
      rule: 'an ordinary pass leaves a pointer to each minute that still has PENDING rows',
      from: 'consistent: false, pointers: true',
      to: 'consistent: false, pointers: false',
      killers: unit('unsettled-minutes'),
    },
    {
      rule: 'unsettled minutes get their share of a pass',
      from: '(endsBy - startedAt) * RANGE_SHARE',
      to: '(endsBy - startedAt)',
      killers: unit('unsettled-minutes'),
    },
    {
      rule: 'a pass is complete only if it read the unsettled minutes too',
      from: 'swept && settled',
      to: 'swept',
      killers: unit('unsettled-minutes'),
    },
    {
      rule: 'every page of the DEAD pointers is counted',
      from: 'cursor = page.cursor;',
      to: 'cursor = undefined;',
      killers: unit('unsettled-minutes'),
    },
  ]),
  ...mutantsOf('relay/sweep-state.ts', unit('sweep-state'), [
    {
      rule: 'without a state the sweep starts at the creation of the table',
      from: 'if (sweptTo === undefined) return table.createdAt();',
      to: 'if (sweptTo === undefined) return now;',
    },
    {
      rule: 'a state in the future is ignored',
      from: 'if (sweptTo <= now + FUTURE_MAX_MS) return sweptTo;',
      to: 'return sweptTo;',
    },
    {
      rule: 'a state in the future is corrected',
      from: "'(sweptTo = :read AND sweptTo > :future)'",
      to: "'(sweptTo = :read AND sweptTo > :future AND attribute_not_exists(PK))'",
    },
    {
      rule: 'the state never moves back',
      from: 'OR sweptTo < :to OR',
      to: 'OR attribute_exists(PK) OR sweptTo < :to OR',
    },
    {
      rule: 'a state in the future is corrected only if it is the one that was read',
      from: '(sweptTo = :read AND',
      to: '((attribute_exists(PK) OR sweptTo = :read) AND',
    },
    {
      rule: 'a state of the wrong type is overwritten',
      from: 'NOT attribute_type(sweptTo, :N) OR',
      to: '(NOT attribute_type(sweptTo, :N) AND attribute_not_exists(PK)) OR',
    },
    {
      rule: 'a number of shards of the wrong type is overwritten',
      from: 'NOT attribute_type(shards, :N) OR',
      to: '(NOT attribute_type(shards, :N) AND attribute_not_exists(PK)) OR',
    },
    {
      rule: 'a higher number of shards is stored',
      from: 'OR shards < :shards',
      to: 'OR (shards < :shards AND attribute_not_exists(PK))',
    },
    {
      rule: 'every shard that was ever used is read',
      from: 'if (known >= config.shards) return known;',
      to: 'if (known >= config.shards) return config.shards;',
    },
    {
      rule: 'the stored number of shards never decreases',
      from: 'OR shards < :shards',
      to: 'OR attribute_exists(PK) OR shards < :shards',
    },
    {
      rule: 'a higher number of shards that another sweep stored is used',
      from: 'return Math.max(config.shards, numberOr(written?.shards, 0));',
      to: 'return config.shards;',
    },
    {
      rule: 'a range is read in every shard that was ever used',
      from: 'Math.max(stored, atLeast)',
      to: 'atLeast',
      killers: unit('sweep-range', 'audit'),
    },
    {
      rule: 'whoever reads a range once reads the number of shards strongly consistently',
      from: 'get(SWEEP_STATE_KEY, { consistent: true }); const stored',
      to: 'get(SWEEP_STATE_KEY); const stored',
      killers: unit('sweep-range', 'audit'),
    },
  ]),
  ...mutantsOf('relay/sweep-minutes.ts', unit('sweep-minutes', 'relay-sweep'), [
    {
      rule: 'a minute is read for the last time at the age of 1024 minutes',
      from: '[1, 4, 16, 64, 256, 1024]',
      to: '[1, 4, 16, 64, 256]',
    },
    {
      rule: 'a minute is first read one minute after its end',
      from: '[1, 4, 16, 64, 256, 1024]',
      to: '[0, 4, 16, 64, 256, 1024]',
    },
    {
      rule: 'a crossing at the very end of a pass belongs to that pass',
      from: 'minute + MINUTE_MS + ageMs <= now',
      to: 'minute + MINUTE_MS + ageMs < now',
    },
    {
      rule: 'a crossing at the very start of a pass belongs to the pass before',
      from: 'if (at > since)',
      to: 'if (at >= since)',
      equivalent: 'The loop starts at a minute whose crossing is always later than the start.',
    },
    {
      rule: 'the youngest minutes reach back to the first age',
      from: '[2, 1, 0]',
      to: '[1, 0]',
    },
  ]),
  ...mutantsOf('relay/sweep-range.ts', unit('sweep-range'), [
    {
      rule: 'a range is read strongly consistently, because it is read once',
      from: '{ consistent: true, pointers: true }',
      to: '{ consistent: false, pointers: true }',
    },
    {
      rule: 'a minute of a range that still has PENDING rows gets a pointer',
      from: '{ consistent: true, pointers: true }',
      to: '{ consistent: true, pointers: false }',
    },
    {
      rule: 'a range counts as swept only as far as it was read whole',
      from: 'if (!whole) break;',
      to: '',
    },
    {
      rule: 'a range includes the minute in which it starts',
      from: 'Math.floor(since / MINUTE_MS) * MINUTE_MS',
      to: 'Math.ceil(since / MINUTE_MS) * MINUTE_MS',
    },
  ]),
  ...mutantsOf('relay/sweep-tally.ts', unit('relay-turns', 'relay-sweep', 'sweep-state'), [
    {
      rule: 'the sweep stops a margin before its function is stopped',
      from: 'now < tally.endsBy - END_MARGIN_MS',
      to: 'now < tally.endsBy',
    },
    {
      rule: 'the sweep stops when the bus is given up',
      from: '!tally.breaker.isGivenUp() &&',
      to: '',
      killers: unit('relay-sweep-breaker'),
    },
    {
      rule: 'the last call of a sweep leaves time for its mark',
      from: 'endsBy - publishTimeoutMs - MARK_MS',
      to: 'endsBy - publishTimeoutMs',
    },
    {
      rule: 'the last call of a sweep ends before its function is stopped',
      from: 'endsBy - publishTimeoutMs - MARK_MS',
      to: 'endsBy - MARK_MS',
    },
  ]),
  ...mutantsOf('relay/relay-sweep.ts', unit('relay-sweep'), [
    {
      rule: 'a sweep that loops ends before its function is stopped',
      from: 'Math.min(startedAt + MINUTE_MS, endsBy - END_MARGIN_MS)',
      to: 'startedAt + MINUTE_MS',
    },
  ]),
];
