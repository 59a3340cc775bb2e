import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The audit: what it reads and reports. */
export const auditMutants: readonly Mutant[] = [
  ...mutantsOf('operations/audit/audit-walk.ts', unit('audit', 'audit-verdict'), [
    {
      rule: 'an event minted before the range is left out',
      from: 'mintedAt < since ||',
      to: '',
    },
    {
      rule: 'an event minted after the range is left out',
      from: '|| mintedAt >= until',
      to: '',
    },
    {
      rule: 'only a published event is expected at its consumers',
      from: "if (row.status !== 'PUBLISHED') return undefined;",
      to: '',
    },
    {
      rule: 'an event that was sent again is on its way from then on',
      from: 'Math.max(publishedAt, row.resentAt ?? 0)',
      to: 'publishedAt',
      killers: unit('audit-repair'),
    },
    {
      rule: 'a message that is overdue is looked for',
      from: 'else if (!isUnreadable(row) && isOverdue(row, overdueAt))',
      to: 'else if (!isUnreadable(row) && overdueAt < 0)',
    },
    {
      rule: 'an event is judged by its own inbox row',
      from: 'enterAt(walk, consumer, event, rows[index]);',
      to: 'enterAt(walk, consumer, event, rows[0]);',
    },
    {
      rule: 'every batch of inbox rows is read',
      from: 'from < expected.length;',
      to: 'from < 1;',
    },
    {
      rule: 'every page of a minute is audited',
      from: 'if (cursor !== undefined && !walk.goesOn()) return false;',
      to: 'break;',
    },
    {
      rule: 'a row with the envelope of another event is unreadable',
      from: 'envelope === undefined || envelope.eventId !== eventId',
      to: 'envelope === undefined',
    },
    {
      rule: 'the audit stops reading when its time is up',
      from: 'if (!walk.goesOn()) return false; for',
      to: 'for',
    },
    {
      rule: 'the audit reports how far it has read',
      from: 'if (whole.includes(false)) break;',
      to: '',
    },
  ]),
  ...mutantsOf('store/dynamo-get-each.ts', unit('dynamo-table'), [
    {
      rule: 'a key that a batch left unread is not taken for absent',
      from: 'UnprocessedKeys?.[tableName]?.Keys ?? []',
      to: '[]',
    },
    {
      rule: 'a key that a batch left unread is read as consistently',
      from: 'SK: key.SK }, { consistent });',
      to: 'SK: key.SK });',
    },
    {
      rule: 'a batch names no key twice',
      from: '[...new Map(keys.map((key) => [idOf(key), key])).values()]',
      to: '[...keys]',
    },
  ]),
  ...mutantsOf('operations/audit/audit-ledger.ts', unit('audit'), [
    {
      rule: 'an audit that does not add up fails',
      from: 'if (sum === expected)',
      to: 'if (true)',
    },
  ]),
  ...mutantsOf('operations/audit/audit.ts', unit('audit', 'audit-verdict'), [
    {
      rule: 'a message is overdue only after the grace period',
      from: 'overdueAt: startedAt - graceMs',
      to: 'overdueAt: startedAt',
      equivalent: 'The verdict on a message with a row checks the grace period again.',
    },
    {
      rule: 'an incomplete audit is reported as incomplete',
      from: 'if (seenUntil < until)',
      to: 'if (false)',
    },
    {
      rule: 'the walk leaves time for the verdicts',
      from: '(endsBy - startedAt) * WALK_SHARE',
      to: '(endsBy - startedAt)',
    },
  ]),
  ...mutantsOf('operations/audit/audit-doubles.ts', unit('audit'), [
    {
      rule: 'events without a cause are not doubled',
      from: "if (typeof causationId !== 'string') return;",
      to: '',
    },
    {
      rule: 'events with different sequences are not doubled',
      from: 'sequence ?? null, data',
      to: 'data',
    },
    {
      rule: 'events with different data are not doubled',
      from: 'sequence ?? null, data]',
      to: 'sequence ?? null]',
    },
    {
      rule: 'events of different aggregates are not doubled',
      from: 'source, type, aggregateId, sequence',
      to: 'source, type, sequence',
    },
    {
      rule: 'events of different causes are not doubled',
      from: '[causationId, source, type, aggregateId, sequence',
      to: '[source, type, aggregateId, sequence',
    },
  ]),
  ...mutantsOf('operations/audit/audit-handler.ts', unit('audit-handler'), [
    {
      rule: 'the scheduled audit leaves the youngest events to its next run',
      from: 'until: now - YOUNGEST_MS',
      to: 'until: now',
    },
    {
      rule: 'the scheduled audit looks back further where a busy queue hides losses',
      from: 'const since = now - blindMs - config.sinceMs;',
      to: 'const since = now - config.sinceMs;',
    },
    {
      rule: 'the scheduled audit ends before its function is stopped',
      from: 'context.getRemainingTimeInMillis() - END_MARGIN_MS',
      to: 'context.getRemainingTimeInMillis()',
    },
  ]),
  ...mutantsOf('operations/audit/audit-deliveries.ts', unit('audit-deliveries'), [
    {
      rule: 'an event whose state is unknown is not counted as delivered or late',
      from: '|| UNKNOWN.has(standing)',
      to: '',
    },
    {
      rule: 'an event that is not processed counts only once it is late',
      from: 'if (!isProcessed && committedAt + (slo?.latencyMs ?? graceMs) >= now) return;',
      to: '',
    },
    {
      rule: 'a message that was processed late missed the SLO',
      from: 'if (slo !== undefined && tookMs <= slo.latencyMs)',
      to: 'if (slo !== undefined)',
    },
    {
      rule: 'a budget is not smaller for the rounding of binary fractions',
      from: 'Number(((published * (100 - slo.percentile)) / 100).toPrecision(12))',
      to: '(published * (1 - slo.percentile / 100))',
    },
  ]),
  ...mutantsOf('operations/audit/audit-delivery-metrics.ts', unit('audit-handler'), [
    {
      rule: 'a period that the run read only in part is not emitted: its start',
      from: 'from >= since && ',
      to: '',
    },
    {
      rule: 'a period that the run read only in part is not emitted: its end',
      from: 'from + everyMs <= readUntil',
      to: 'from <= readUntil',
    },
    {
      rule: 'an SLO is emitted only where the last run that reads a period can judge it',
      from: 'sinceMs - 2 * everyMs',
      to: 'sinceMs',
    },
  ]),
  ...mutantsOf('operations/audit/audit-queue-age.ts', unit('audit-queue-age'), [
    {
      rule: 'the oldest message is at least as old as the receives of a message can last',
      from: 'Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)))',
      to: 'at.getTime() - ageS * 1_000',
    },
    {
      rule: 'the oldest message is at least as old as its metric says',
      from: 'Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)))',
      to: 'now - (await receivesMs(url))',
    },
    {
      rule: 'without a metric the age of the oldest message is unknown',
      from: 'if (at === undefined || ageS === undefined) return undefined;',
      to: 'if (at === undefined || ageS === undefined) return now;',
    },
  ]),
  ...mutantsOf('bus/rule-pattern.ts', unit('rule-pattern'), [
    {
      rule: 'a pattern that takes fewer events has drifted',
      from: 'taken.size === declared.size &&',
      to: '',
    },
    {
      rule: 'a pattern with a further condition has drifted',
      from: '!Array.isArray(alternatives) || Object.keys(others).length > 0',
      to: '!Array.isArray(alternatives)',
    },
    {
      rule: 'a rule keeps each source with its own types',
      from: 'patterns.length === 1 && patterns[0] !== undefined ? patterns[0] : { $or: patterns }',
      to: "{ source: [...typesOf.keys()], 'detail-type': patterns.flatMap((one) => one['detail-type']) }",
    },
  ]),
  ...mutantsOf('operations/audit/audit-drift.ts', unit('audit-drift'), [
    {
      rule: 'a rule with another target has drifted',
      from: 'queue === undefined || deployed.targets.includes(queue.arn)',
      to: 'true',
    },
    {
      rule: 'a disabled rule has drifted',
      from: 'deployed.enabled ?',
      to: 'true ?',
    },
  ]),
  ...mutantsOf('operations/audit/audit-repair.ts', unit('audit-repair'), [
    {
      rule: 'a repair sends an event only to the consumer that misses it',
      from: 'missing.filter((event) => event.consumer === consumer.name)',
      to: '[...missing]',
    },
    {
      rule: 'a repair is recorded',
      from: "await recordOperation(deps, { ...note, command: 'audit --repair', subject });",
      to: '',
    },
    {
      rule: 'a repair marks the event as sent again',
      from: '(await markResent(deps, eventId)) === undefined',
      to: 'false',
    },
    {
      rule: 'a repair sends the envelope as it was committed, however it is stored',
      from: 'deliveredEvent(row,',
      to: 'deliveredEvent((await markResent(deps, eventId)) as never,',
    },
  ]),
];
