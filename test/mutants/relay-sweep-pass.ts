import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The sweep relay: which minutes it reads, and when it ends. */
export const relaySweepPassMutants: readonly Mutant[] = [
  ...mutantsOf('relay/sweep-pass.ts', unit('sweep-state', 'relay-sweep'), [
    {
      rule: 'the state is the time at which the pass started',
      from: 'moveSweptTo(context, start, to)',
      to: 'moveSweptTo(context, start, context.clock.now())',
    },
    {
      rule: 'the state moves only over minutes that were read whole',
      from: 'moves = whole && moves && (await',
      to: 'moves = moves && (await',
    },
    {
      rule: 'the state moves past no step after one that it stays before',
      from: 'moves = whole && moves && (await',
      to: 'moves = settled && (await',
    },
    {
      rule: 'a step that fails does not hold up the newer ones',
      from: 'if (!settled && !goesOn(tally, context.clock.now())) return false;',
      to: 'if (!settled) return false;',
      killers: unit('relay-sweep-steps', 'relay-sweep-failures', 'sweep-state'),
    },
    {
      rule: 'a pass that left a step out is incomplete, also when the bus came back meanwhile',
      from: 'return whole;',
      to: 'return true;',
      killers: unit('relay-sweep-breaker'),
    },
    {
      rule: 'a pass of which a step failed is incomplete',
      from: '&& tally.failures === 0',
      to: '',
    },
    {
      rule: 'a minute that an age meets gets a pointer where something is left',
      from: 'consistent: false, pointers: true',
      to: 'consistent: false, pointers: false',
      killers: unit('unsettled-minutes'),
    },
    {
      rule: 'the unsettled minutes have their share of the time of a pass',
      from: '(endsBy - startedAt) * RANGE_SHARE',
      to: '(endsBy - startedAt)',
      killers: unit('unsettled-minutes'),
    },
    {
      rule: 'a pass is complete only when the unsettled minutes were read too',
      from: 'swept && settled',
      to: 'swept',
      killers: unit('unsettled-minutes', 'relay-sweep-breaker', 'relay-sweep-steps'),
    },
  ]),
  ...mutantsOf('relay/sweep-state.ts', unit('sweep-state'), [
    {
      rule: 'without a state the sweep reads from the creation of the table',
      from: 'sweptTo ?? (await table.createdAt())',
      to: 'sweptTo ?? now',
    },
    {
      rule: 'a state in the future is not believed',
      from: 'if (sweptTo !== undefined && sweptTo > now + FUTURE_MAX_MS) {',
      to: 'if (false) {',
    },
    {
      rule: 'a state in the future is put right',
      from: "'(sweptTo = :read AND sweptTo > :future)'",
      to: "'(sweptTo = :read AND sweptTo > :future AND attribute_not_exists(PK))'",
    },
    {
      rule: 'the state never moves back',
      from: 'OR sweptTo < :to OR',
      to: 'OR attribute_exists(PK) OR sweptTo < :to OR',
    },
    {
      rule: 'a state is put right only where it is the one that was read',
      from: '(sweptTo = :read AND',
      to: '((attribute_exists(PK) OR sweptTo = :read) AND',
    },
    {
      rule: 'a shard that was ever used is read',
      from: 'if (known >= config.shards) return known;',
      to: 'if (known >= config.shards) return config.shards;',
    },
    {
      rule: 'the number of shards never goes down',
      from: 'OR shards < :shards',
      to: 'OR attribute_exists(PK) OR shards < :shards',
    },
    {
      rule: 'a higher number of shards that another sweep wrote is read',
      from: 'return Math.max(config.shards, numberOr(written?.shards, 0));',
      to: 'return config.shards;',
    },
    {
      rule: 'whoever reads a range reads every shard that was ever used',
      from: 'return Math.max(sweepStateOf(item).shards ?? 0, atLeast);',
      to: 'return atLeast;',
      killers: unit('sweep-range', 'audit'),
    },
    {
      rule: 'the number of shards is read strongly consistently by whoever reads a range once',
      from: 'table.get(SWEEP_STATE_KEY, { consistent: true }); return Math.max(',
      to: 'table.get(SWEEP_STATE_KEY); return Math.max(',
      killers: unit('sweep-range', 'audit'),
    },
  ]),
  ...mutantsOf('relay/sweep-minutes.ts', unit('sweep-minutes', 'relay-sweep'), [
    {
      rule: 'a minute is read for the last time at an age of 1024 minutes',
      from: '[1, 4, 16, 64, 256, 1024]',
      to: '[1, 4, 16, 64, 256]',
    },
    {
      rule: 'a minute is read only when it is over for a minute',
      from: '[1, 4, 16, 64, 256, 1024]',
      to: '[0, 4, 16, 64, 256, 1024]',
    },
    {
      rule: 'a minute whose age was passed right at the end of a pass is read by that pass',
      from: 'minute + MINUTE_MS + ageMs <= now',
      to: 'minute + MINUTE_MS + ageMs < now',
    },
    {
      rule: 'the youngest minutes reach back to the first age',
      from: '[2, 1, 0]',
      to: '[1, 0]',
    },
  ]),
  ...mutantsOf('relay/sweep-range.ts', unit('sweep-range'), [
    {
      rule: 'a range is read strongly consistently: it is read once',
      from: '{ consistent: true, pointers: true }',
      to: '{ consistent: false, pointers: true }',
    },
    {
      rule: 'a minute of a range that is left unsettled gets a pointer',
      from: '{ consistent: true, pointers: true }',
      to: '{ consistent: true, pointers: false }',
    },
    {
      rule: 'a range is swept only as far as it was read whole',
      from: 'if (!settled || tally.failures > 0) break;',
      to: 'if (tally.failures > 0) break;',
    },
    {
      rule: 'a range is not swept past a minute that failed, though it has a pointer',
      from: 'if (!settled || tally.failures > 0) break;',
      to: 'if (!settled) break;',
    },
    {
      rule: 'a range begins with the minute in which its first moment is',
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
      rule: 'the last publish of a sweep leaves time for its mark',
      from: 'endsBy - publishTimeoutMs - MARK_MS',
      to: 'endsBy - publishTimeoutMs',
    },
    {
      rule: 'the last publish of a sweep is over before its function is stopped',
      from: 'endsBy - publishTimeoutMs - MARK_MS',
      to: 'endsBy - MARK_MS',
    },
  ]),
  ...mutantsOf('relay/sweep-tally.ts', unit('unsettled-minutes', 'relay-sweep', 'sweep-state'), [
    {
      rule: 'a minute that could not be swept makes the pass incomplete',
      from: 'return false;',
      to: 'return true;',
    },
  ]),
  ...mutantsOf('store/table-requests.ts', unit('unsettled-minutes'), [
    {
      rule: 'every page of a partition is read',
      from: 'cursor = page.cursor;',
      to: 'cursor = undefined;',
    },
  ]),
  ...mutantsOf('relay/relay-sweep.ts', unit('relay-sweep'), [
    {
      rule: 'a sweep that runs several times a minute ends before its function is stopped',
      from: 'Math.min(startedAt + MINUTE_MS, endsBy - END_MARGIN_MS)',
      to: 'startedAt + MINUTE_MS',
    },
  ]),
];
