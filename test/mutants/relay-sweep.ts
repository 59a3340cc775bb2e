import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The sweep relay: what it does with a minute. */
export const relaySweepMutants: readonly Mutant[] = [
  ...mutantsOf(
    'relay/partition-sweep.ts',
    unit('relay-sweep', 'relay-sweep-failures', 'unsettled-minutes', 'relay-turns'),
    [
      {
        rule: 'the sweep publishes declared sources only',
        from: 'const rows = read.filter(declared.has);',
        to: 'const rows = read;',
        killers: ['test/attack/forged-events.test.ts'],
      },
      {
        rule: 'the minute of an event with an undeclared source stays unsettled',
        from: 'left += strangers.length;',
        to: '',
        killers: ['test/attack/forged-events.test.ts'],
      },
      {
        rule: 'events with an undeclared source are counted',
        from: 'undeclared += strangers.length;',
        to: '',
        killers: ['test/attack/forged-events.test.ts'],
      },
      {
        rule: 'a row under a lease is left alone',
        from: 'row.leaseUntil + CLOCK_SKEW_MS < now',
        to: 'true',
      },
      {
        rule: 'a row is due a clock margin after its lease has ended',
        from: 'row.leaseUntil + CLOCK_SKEW_MS < now',
        to: 'row.leaseUntil < now',
      },
      {
        rule: 'a row that is due is claimed before it is published',
        from: 'const { claimed, failed } = await relay.claim(group);',
        to: 'const [claimed, failed] = [group, []];',
      },
      {
        rule: 'a row that could not be marked is left PENDING',
        from: 'if (!report.unmarked.includes(row)) settled.add(row.eventId);',
        to: 'settled.add(row.eventId);',
      },
      {
        rule: 'a row that cannot be read keeps its minute unsettled',
        from: 'left += unreadable;',
        to: '',
      },
      {
        rule: 'a row under a lease keeps its minute unsettled',
        from: 'if (settled.has(row.eventId)) continue; left += 1;',
        to: 'if (settled.has(row.eventId) || !due.includes(row)) continue; left += 1;',
      },
      {
        rule: 'a minute is read as consistently as its reader needs',
        from: 'consistent, cursor,',
        to: 'cursor,',
      },
      {
        rule: 'every page of a minute is read',
        from: 'cursor = page.cursor;',
        to: 'cursor = undefined;',
        killers: unit('unsettled-minutes'),
      },
      {
        rule: 'a row that the bus did not take is due again after a backoff',
        from: 'leaseUntil: now + backoffMs(1, backoff, backoff, random)',
        to: 'leaseUntil: now',
      },
      {
        rule: 'a row that the bus did not take is released',
        from: '...report.failed.map(({ row, error })',
        to: '...report.failed.slice(0, 0).map(({ row, error })',
      },
      {
        rule: 'a row that was skipped does not keep its claim',
        from: '[...report.skipped, ...report.leaseTooShort]',
        to: '[...report.leaseTooShort]',
        killers: unit('relay-sweep-breaker'),
      },
      {
        rule: 'a row whose lease ran short does not keep its claim',
        from: '[...report.skipped, ...report.leaseTooShort]',
        to: '[...report.skipped]',
      },
      {
        rule: 'no publish begins when it could outlive the invocation',
        from: '() => clock.now() < tally.lastPublishAt',
        to: '() => true',
      },
      {
        rule: 'no group is claimed when there is no time for it',
        from: 'i < due.length && goesOn(tally, clock.now())',
        to: 'i < due.length',
      },
      {
        rule: 'a row of a source that the bus does not take is not claimed',
        from: '.filter((row) => !breaker.isOpen(row.entry.source))',
        to: '',
        killers: unit('relay-sweep-breaker'),
      },
    ],
  ),
  ...mutantsOf('relay/shard-sweep.ts', unit('relay-sweep-steps'), [
    {
      rule: 'unsettled minutes take turns: those that never settle do not keep the others out',
      from: 'const first = Math.floor(now / MINUTE_MS) % Math.max(1, pointers.length);',
      to: 'const first = now * 0;',
    },
  ]),
  ...mutantsOf('relay/partition-sweep.ts', unit('relay-sweep-steps'), [
    {
      rule: 'a minute is not clean before its last page was read',
      from: 'return cursor === undefined ? left : left + 1;',
      to: 'return left;',
    },
  ]),
  ...mutantsOf('relay/shard-sweep.ts', unit('unsettled-minutes', 'relay-sweep', 'sweep-state'), [
    {
      rule: 'a minute with something left gets a pointer',
      from: 'if (clean || !pointers) return read;',
      to: 'return read;',
    },
    {
      rule: 'a minute that has neither been read whole nor got a pointer makes the pass incomplete',
      from: 'if (!(await work(item))) done = false;',
      to: 'await work(item);',
    },
    {
      rule: 'a shard is not given up for one minute that fails',
      from: 'if (!(await work(item))) done = false;',
      to: 'if (!(await work(item))) { done = false; return; }',
      killers: unit('relay-sweep-steps'),
    },
    {
      rule: 'a minute that is unsettled still gets a fresh token',
      from: 'if (left > 0) await unsettledMinutes.put(shard, minute); else',
      to: 'if (left === 0)',
    },
    {
      rule: 'a pointer goes only when its minute is clean',
      from: 'if (left > 0) await unsettledMinutes.put(shard, minute); else await',
      to: 'await',
      killers: unit('relay-sweep-steps'),
    },
    {
      rule: 'a minute is found clean only by a strongly consistent read',
      from: 'sweepPartition(shard, minute, true, tally)',
      to: 'sweepPartition(shard, minute, false, tally)',
    },
    {
      rule: 'a minute that could not be swept makes the pass incomplete',
      from: 'stepFailed(telemetry, tally, step, error); return false;',
      to: 'stepFailed(telemetry, tally, step, error); return true;',
    },
    {
      rule: 'a minute for which there was no time makes the pass incomplete',
      from: 'if (!goesOn(tally, clock.now())) { done = false;',
      to: 'if (!goesOn(tally, clock.now())) {',
      killers: unit('relay-sweep-breaker'),
    },
    {
      rule: 'a pass in which the bus was given up or the time ran out is incomplete',
      from: 'return done && goesOn(tally, clock.now());',
      to: 'return done;',
      killers: unit('relay-sweep-breaker'),
    },
  ]),
  ...mutantsOf('relay/unsettled-minutes.ts', unit('unsettled-minutes'), [
    {
      rule: 'a pointer is removed only under the token that was read',
      from: "'#token = :token'",
      to: "'attribute_exists(PK) OR #token = :token'",
    },
    {
      rule: 'a pointer without a token is removed only while it has none',
      from: "'attribute_not_exists(#token)'",
      to: "'attribute_exists(PK) OR attribute_not_exists(#token)'",
    },
    {
      rule: 'a pointer gets a fresh token each time it is put',
      from: 'token: mintToken(random)',
      to: "token: 'the same'",
    },
    {
      rule: 'every page of the pointers is read',
      from: 'cursor = page.cursor;',
      to: 'cursor = undefined;',
    },
  ]),
];
