import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The sweep relay: what it does with a minute. */
export const relaySweepMutants: readonly Mutant[] = [
  ...mutantsOf(
    'relay/partition-sweep.ts',
    unit('relay-sweep', 'relay-sweep-failures', 'unsettled-minutes', 'relay-turns'),
    [
      {
        rule: 'the sweep publishes declared sources only',
        from: 'const ours = rows.filter(declared.has);',
        to: 'const ours = rows;',
        killers: ['test/attack/forged-events.test.ts'],
      },
      {
        rule: 'the minute of an event with an undeclared source stays unsettled',
        from: 'unreadable.length + undeclared.length + waiting.length',
        to: 'unreadable.length + waiting.length',
        killers: ['test/attack/forged-events.test.ts'],
      },
      {
        rule: 'events with an undeclared source are counted',
        from: 'undeclared: undeclared.length,',
        to: 'undeclared: 0,',
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
        from: 'const { claimed, failed } = await claimEvents(relay, group);',
        to: 'const [claimed, failed] = [group, [] as PendingRow[]];',
      },
      {
        rule: 'a row that could not be marked is left PENDING',
        from: "of rowsThat(outcomes, 'published')) settled",
        to: "of rowsThat(outcomes, 'published', 'unmarked')) settled",
      },
      {
        rule: 'a row that cannot be read keeps its minute unsettled',
        from: 'unreadable.length + undeclared.length + waiting.length',
        to: 'undeclared.length + waiting.length',
      },
      {
        rule: 'a row under a lease keeps its minute unsettled',
        from: 'const waiting = ours.filter(',
        to: 'const waiting = due.filter(',
      },
      {
        rule: 'a minute is read as consistently as its reader needs',
        from: "where: { status: 'PENDING' }, consistent };",
        to: "where: { status: 'PENDING' } };",
      },
      {
        rule: 'every page of a minute is read',
        from: 'if (!whole) break;',
        to: 'break;',
        killers: unit('unsettled-minutes'),
      },
      {
        rule: 'a row that the bus did not take is due again after a backoff',
        from: 'leaseUntil: now + backoffMs(1, backoff, backoff, relay.random)',
        to: 'leaseUntil: now',
      },
      {
        rule: 'a row that the bus did not take is released',
        from: ".filter(({ is }) => is === 'bus' || is === 'access')",
        to: '.filter(() => false)',
      },
      {
        rule: 'a row that was skipped does not keep its claim',
        from: "rowsThat(outcomes, 'skipped', 'leaseTooShort')",
        to: "rowsThat(outcomes, 'leaseTooShort')",
        killers: unit('relay-sweep-breaker'),
      },
      {
        rule: 'a row whose lease ran short does not keep its claim',
        from: "rowsThat(outcomes, 'skipped', 'leaseTooShort')",
        to: "rowsThat(outcomes, 'skipped')",
      },
      {
        rule: 'no publish begins when it could outlive the invocation',
        from: '() => clock.now() < tally.lastPublishAt',
        to: '() => true',
      },
      {
        rule: 'no group is claimed when there is no time for it',
        from: 'if (!goesOn(tally, clock.now())) break;',
        to: '',
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
      from: 'return whole ? { clean: left.rows === 0 } : { clean: false, stopped: walked };',
      to: 'return { clean: left.rows === 0 };',
    },
  ]),
  ...mutantsOf('relay/shard-sweep.ts', unit('unsettled-minutes', 'relay-sweep', 'sweep-state'), [
    {
      rule: 'a minute with something left gets a pointer',
      from: 'return clean || !how.pointers ? read : leave();',
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
      from: 'if (stopped?.after === undefined || !(await storeWalk(table, pointer, stopped, random))) await putPointer(context, partition);',
      to: 'if (stopped?.after !== undefined) await storeWalk(table, pointer, stopped, random);',
    },
    {
      rule: 'a pointer goes only when its minute is clean',
      from: 'if (clean) await removeUnsettled(table, pointer);',
      to: 'if (clean || stopped === undefined) await removeUnsettled(table, pointer);',
      killers: unit('relay-sweep-steps'),
    },
    {
      rule: 'a minute is found clean only by a strongly consistent read',
      from: 'const how = { consistent: true, from: walkedPart(pointer) };',
      to: 'const how = { consistent: false, from: walkedPart(pointer) };',
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
  ...mutantsOf('relay/partition-sweep.ts', unit('sweep-walks'), [
    {
      rule: 'a minute that takes more than one pass is continued where the pass before it stopped',
      from: 'const cursor = from.after === undefined ? undefined : { PK: pk, SK: from.after };',
      to: 'const cursor = undefined;',
    },
    {
      rule: 'what the first part of a walk left PENDING keeps the minute unsettled',
      from: 'let left = from.left;',
      to: 'let left = NOTHING_LEFT;',
    },
    {
      rule: 'a page of which not every row had its turn is read again',
      from: 'if (inTime || found.untried === 0) walked =',
      to: 'walked =',
    },
    {
      rule: 'a row whose lease ran short had no turn',
      from: 'tried += group.length - untried.length;',
      to: 'tried += group.length;',
    },
  ]),
  ...mutantsOf('relay/shard-sweep.ts', unit('sweep-walks'), [
    {
      rule: 'a walk keeps its place',
      from: 'stopped?.after === undefined || !(await storeWalk(table, pointer, stopped, random))',
      to: 'stopped !== pointer',
    },
    {
      rule: 'a minute with a pointer is left to its walk, which may take more than one pass',
      from: 'if (known[index]?.after !== undefined) return leave();',
      to: '',
    },
    {
      rule: 'a walk starts anew when its minute comes to an age',
      from: 'if (known[index]?.after !== undefined) return leave();',
      to: 'if (known[index]?.after !== undefined) return true;',
    },
    {
      rule: 'a minute whose pointer has no place is read at its age',
      from: 'if (known[index]?.after !== undefined) return leave();',
      to: 'if (index >= 0) return leave();',
      killers: unit('sweep-pointers'),
    },
  ]),
  ...mutantsOf('store/unsettled-minutes.ts', unit('sweep-walks'), [
    {
      rule: 'a walk keeps its place only under the token that was read',
      from: 'Put: { Item, ...asRead(pointer) }',
      to: 'Put: { Item }',
    },
    {
      rule: 'a walk stores what it left PENDING',
      from: '...(left.rows > 0 && { left: { ...left } }),',
      to: '',
    },
  ]),
  ...mutantsOf('store/unsettled-minutes.ts', unit('unsettled-minutes'), [
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
  ]),
];
