import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The sweep relay: what it does with a minute. */
export const relaySweepMutants: readonly Mutant[] = [
  ...mutantsOf(
    'relay/partition-sweep.ts',
    unit('relay-sweep', 'relay-sweep-failures', 'unsettled-minutes', 'relay-turns'),
    [
      {
        rule: 'the sweep leaves a leased row alone',
        from: 'row.leaseUntil + LEASE_MARGIN_MS < now',
        to: 'true',
      },
      {
        rule: 'a row is due only a clock margin after its lease has ended',
        from: 'row.leaseUntil + LEASE_MARGIN_MS < now',
        to: 'row.leaseUntil < now',
      },
      {
        rule: 'a due row is claimed before it is published',
        from: 'const { claimed, failed } = await relay.claim(group);',
        to: 'const [claimed, failed] = [group, []];',
      },
      {
        rule: 'a row that could not be marked counts as left PENDING',
        from: 'if (!report.unmarked.includes(row)) settled.add(row.eventId);',
        to: 'settled.add(row.eventId);',
      },
      {
        rule: 'an unreadable row keeps its minute unsettled',
        from: 'left += unreadable;',
        to: '',
      },
      {
        rule: 'an unreadable row keeps the pointer of its minute',
        from: 'found += unreadable;',
        to: '',
        equivalent:
          'The row counts as left, so the pointer has a fresh token and is not deleted under the old one.',
      },
      {
        rule: 'a leased row keeps its minute unsettled',
        from: 'if (settled.has(row.eventId)) continue; left += 1;',
        to: 'if (settled.has(row.eventId) || !due.includes(row)) continue; left += 1;',
      },
      {
        rule: 'a minute with PENDING rows keeps its pointer',
        from: 'found += 1;',
        to: '',
        equivalent:
          'If rows are left, the pointer has a fresh token and stays; if all rows were marked, it goes one pass earlier.',
      },
      {
        rule: 'a minute is read as consistently as its caller asks',
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
        rule: 'a row that the bus failed to take waits for a backoff',
        from: 'leaseUntil: now + backoffMs(1, backoff, backoff, random)',
        to: 'leaseUntil: now',
      },
      {
        rule: 'a row that the bus failed to take is released',
        from: '...report.failed.map(({ row, error })',
        to: '...report.failed.slice(0, 0).map(({ row, error })',
      },
      {
        rule: 'a skipped row is released',
        from: '[...report.skipped, ...report.leaseTooShort]',
        to: '[...report.leaseTooShort]',
        killers: unit('relay-sweep-breaker'),
      },
      {
        rule: 'a row whose lease ran short is released',
        from: '[...report.skipped, ...report.leaseTooShort]',
        to: '[...report.skipped]',
      },
      {
        rule: 'no call starts that could outlive the invocation',
        from: '() => clock.now() < tally.lastPublishAt',
        to: '() => true',
      },
      {
        rule: 'no row is claimed when the time is up',
        from: 'i < due.length && goesOn(tally, clock.now())',
        to: 'i < due.length',
      },
      {
        rule: 'a row of a source that is cut off is not claimed',
        from: '.filter((row) => !breaker.isOpen(row.entry.source))',
        to: '',
        killers: unit('relay-sweep-breaker'),
      },
    ],
  ),
  ...mutantsOf('relay/shard-sweep.ts', unit('unsettled-minutes', 'relay-sweep', 'sweep-state'), [
    {
      rule: 'a minute that still has PENDING rows gets a pointer',
      from: 'if (pointers && left > 0) await unsettledMinutes.put(shard, minute);',
      to: '',
    },
    {
      rule: 'the pointer of a minute that is still unsettled gets a fresh token',
      from: 'if (left > 0) await unsettledMinutes.put(shard, minute); if (found',
      to: 'if (found',
    },
    {
      rule: 'a pointer is deleted only if its minute was clean',
      from: 'if (found > 0) return;',
      to: '',
      equivalent:
        'If rows are left, the pointer has a fresh token and stays; if all rows were marked, it goes one pass earlier.',
    },
    {
      rule: 'only a strongly consistent read finds a minute clean',
      from: 'sweepPartition(shard, minute, true, tally)',
      to: 'sweepPartition(shard, minute, false, tally)',
    },
    {
      rule: 'a minute that failed makes the pass incomplete',
      from: 'catch (error) { whole = false;',
      to: 'catch (error) {',
    },
    {
      rule: 'a minute that was left out makes the pass incomplete',
      from: 'if (!goesOn(tally, clock.now())) { whole = false;',
      to: 'if (!goesOn(tally, clock.now())) {',
      killers: unit('relay-sweep-breaker'),
    },
    {
      rule: 'a pass that gave up the bus or ran out of time is incomplete',
      from: 'return whole && goesOn(tally, clock.now());',
      to: 'return whole;',
      killers: unit('relay-sweep-breaker'),
    },
  ]),
  ...mutantsOf('relay/unsettled-minutes.ts', unit('unsettled-minutes'), [
    {
      rule: 'a pointer is deleted only under the token that was read',
      from: "'#token = :token'",
      to: "'attribute_exists(PK) OR #token = :token'",
    },
    {
      rule: 'a pointer without a token is deleted only while it has none',
      from: "'attribute_not_exists(#token)'",
      to: "'attribute_exists(PK) OR attribute_not_exists(#token)'",
    },
    {
      rule: 'each put of a pointer writes a fresh token',
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
