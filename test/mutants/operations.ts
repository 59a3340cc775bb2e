import { type Mutant, mutantsOf } from './mutant.ts';

/** The audit, and the decisions of operators. */
// biome-ignore format: a line for each mutant
export const operationsMutants: readonly Mutant[] = [
  ...mutantsOf('operations/audit/audit-walk.ts', 'audit audit-verdict audit-repair', [
    ['an event minted before the range is left out', 'mintedAt < since ||', ''],
    ['an event minted after the range is left out', '|| mintedAt >= until', ''],
    ['only a published event is expected at its consumers', "if (row.status !== 'PUBLISHED') return undefined;", ''],
    ['an event that was sent again is on its way from then on', 'Math.max(publishedAt, resentAt ?? 0)', 'publishedAt'],
    ['a message that is overdue is looked for', 'else if (!isUnreadable(row) && isOverdue(row, overdueAt))', 'else if (!isUnreadable(row) && overdueAt < 0)'],
    ['an event is judged by its own inbox row', 'enterAt(walk, consumer, event, rows[index]);', 'enterAt(walk, consumer, event, rows[0]);'],
    ['every batch of inbox rows is read', 'from < expected.length;', 'from < 1;'],
    ['every page of a minute is audited', 'if (cursor !== undefined && !walk.hasTimeLeft()) return false;', 'break;'],
    ['a row with the envelope of another event is unreadable', 'envelope === undefined || envelope.eventId !== eventId', 'envelope === undefined'],
    ['the audit stops reading when its time is up', 'if (!walk.hasTimeLeft()) return false; for', 'for'],
    ['the audit reports how far it has read', 'if (whole.includes(false)) break;', ''],
  ]),
  ...mutantsOf('operations/audit/audit-ledger.ts', 'audit', [
    ['an audit that does not add up fails', 'if (sum === expected)', 'if (true)'],
  ]),
  ...mutantsOf('operations/audit/audit.ts', 'audit audit-verdict', [
    ['a message is overdue only after the grace period', 'overdueAt: startedAt - graceMs', 'overdueAt: startedAt', 'The verdict on a message with a row checks the grace period again.'],
    ['an incomplete audit is reported as incomplete', 'if (seenUntil < until)', 'if (false)'],
    ['the walk leaves time for the verdicts', '(endsBy - startedAt) * WALK_SHARE', '(endsBy - startedAt)'],
  ]),
  ...mutantsOf('operations/audit/audit-doubles.ts', 'audit', [
    ['events without a cause are not doubled', "if (typeof causationId !== 'string') return;", ''],
    ['events with different sequences are not doubled', 'sequence ?? null, data', 'data'],
    ['events with different data are not doubled', 'sequence ?? null, data]', 'sequence ?? null]'],
    ['events of different aggregates are not doubled', 'source, type, aggregateId, sequence', 'source, type, sequence'],
    ['events of different causes are not doubled', '[causationId, source, type, aggregateId, sequence', '[source, type, aggregateId, sequence'],
  ]),
  ...mutantsOf('operations/audit/audit-handler.ts', 'audit-handler', [
    ['the scheduled audit leaves the youngest events to its next run', 'until: now - YOUNGEST_MS', 'until: now'],
    ['the scheduled audit looks back further where a busy queue hides losses', 'const since = now - blindMs - config.sinceMs;', 'const since = now - config.sinceMs;'],
    ['the scheduled audit ends before its function is stopped', 'context.getRemainingTimeInMillis() - END_MARGIN_MS', 'context.getRemainingTimeInMillis()'],
  ]),
  ...mutantsOf('operations/audit/audit-deliveries.ts', 'audit-deliveries', [
    ['an event whose state is unknown is not counted as delivered or late', '|| UNKNOWN.has(standing)', ''],
    ['an event that is not processed counts only once it is late', 'if (!isProcessed && committedAt + (slo?.latencyMs ?? graceMs) >= now) return;', ''],
    ['a message that was processed late missed the SLO', 'if (slo !== undefined && tookMs <= slo.latencyMs)', 'if (slo !== undefined)'],
    ['a budget is not smaller for the rounding of binary fractions', 'Number(((published * (100 - slo.percentile)) / 100).toPrecision(12))', '(published * (1 - slo.percentile / 100))'],
  ]),
  ...mutantsOf('operations/audit/audit-delivery-metrics.ts', 'audit-handler', [
    ['a period that the run read only in part is not emitted: its start', 'from >= since && ', ''],
    ['a period that the run read only in part is not emitted: its end', 'from + everyMs <= readUntil', 'from <= readUntil'],
    ['an SLO is emitted only where the last run that reads a period can judge it', 'sinceMs - 2 * everyMs', 'sinceMs'],
  ]),
  ...mutantsOf('operations/audit/audit-queue-age.ts', 'audit-queue-age', [
    ['the oldest message is at least as old as the receives of a message can last', 'Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)))', 'at.getTime() - ageS * 1_000'],
    ['the oldest message is at least as old as its metric says', 'Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)))', 'now - (await receivesMs(url))'],
    ['without a metric the age of the oldest message is unknown', 'if (at === undefined || ageS === undefined) return undefined;', 'if (at === undefined || ageS === undefined) return now;'],
  ]),
  ...mutantsOf('operations/audit/audit-drift.ts', 'audit-drift', [
    ['a rule with another target has drifted', 'queueArn === undefined || rule.targets.some(({ arn }) => arn === queueArn)', 'true'],
    ['a disabled rule has drifted', 'rule.enabled ?', 'true ?'],
    ['a rule that matches other events than declared has drifted', 'takesExactly(rule.pattern, events) ?', 'true ?'],
  ]),
  ...mutantsOf('operations/audit/audit-repair.ts', 'audit-repair', [
    ['a repair sends an event only to the consumer that misses it', 'missing.filter((event) => event.consumer === consumer.name)', '[...missing]'],
    ['a repair is recorded', "await recordOperation(deps, { ...note, command: 'audit --repair', subject });", ''],
    ['a repair marks the event as sent again', '(await markResent(deps, eventId)) === undefined', 'false'],
    ['a repair sends the envelope as it was committed, however it is stored', 'deliveredEvent(row,', 'deliveredEvent((await markResent(deps, eventId)) as never,'],
  ]),
  ...mutantsOf('operations/audit/audit-verdict.ts', 'audit-verdict audit', [
    ['an event with a dead letter is not missing', 'if (dead.eventIds.has(event.eventId)) return', 'if (false) return'],
    ['an event within the grace may still be on its way', 'event.sentAt + deps.graceMs > lookedAt ||', ''],
    ['an event may be among the dead letters that could not be looked at', '|| !dead.complete', ''],
    ['while the queue is not empty and its age is unknown, an event may be in it', 'oldestAt === undefined ||', ''],
    ['an event younger than the oldest message may be in the queue', '|| sentAt + CLOCK_MARGIN_MS >= oldestAt', ''],
    ['a message may bear a time a clock margin before its publish', 'sentAt + CLOCK_MARGIN_MS >= oldestAt', 'sentAt >= oldestAt'],
    ['a message that has a row is gone only when the queue is empty', 'return row !== undefined || oldestAt', 'return oldestAt'],
    ['an event that may be in the queue is not missing', "if (!mayBeQueued(received)) return ledger.judge(consumer.name, event, 'missing');", "return ledger.judge(consumer.name, event, 'missing');"],
    ['no age proves that a message is gone that was received before', 'oldestAt !== undefined && doubtful.every(({ row }) => row === undefined)', 'oldestAt !== undefined'],
    ['events beyond the messages of the queue are missing', 'Math.max(0, events - queued)', '0'],
    ['the audit is conclusive when the last inconclusive event can be', 'Math.max(latest, sentAt)', 'latest || sentAt'],
    ['how full the queue is is looked at before the dead letters are', 'const before = await heldBy(queues, consumer.queue); const dead = await deadLettersOf(queues, consumer);', 'const dead = await deadLettersOf(queues, consumer); const before = await heldBy(queues, consumer.queue);'],
    ['how full the queue is is looked at once more after the dead letters were', 'Math.max(before, await heldBy(queues, consumer.queue))', 'before'],
    ['an event is missing only by a strongly consistent read', 'event.eventId), { consistent: true })', 'event.eventId))'],
    ['a row that came since says where its event is', 'if (row !== undefined && (isUnreadable(row) || !isOverdue(row, lookedAt - deps.graceMs))) return', 'if (false) return'],
    ['a message that was claimed since is not missing', '(isUnreadable(row) || !isOverdue(row, lookedAt - deps.graceMs))', 'isUnreadable(row)'],
    ['an event whose inbox row may have expired is unproven', '!isExpired(event) &&', ''],
    ['an event from before the declaration is unproven', '(deps.earlier || (await declaration.covers(event)))', 'true'],
    ['an event from before the declaration is expected where it is asked for', '(deps.earlier || (await declaration.covers(event)))', '(await declaration.covers(event))'],
    ['the dead letters of the dead-letter queue are looked at', 'of deadLettersTo(consumer)', "of deadLettersTo(consumer).filter(({ kind }) => kind === 'rule')"],
    ['the dead letters of the undelivered queue are looked at', 'of deadLettersTo(consumer)', "of deadLettersTo(consumer).filter(({ kind }) => kind === 'consumer')"],
    ['dead letters that were not received make the look incomplete', 'complete &&= deadLetters.length >= total;', ''],
    ['messages in flight are in the queue', 'return waiting + inFlight;', 'return waiting;'],
    ['an event that there was no time to judge is not missing', 'if (!hasTimeLeft()) {', 'if (false) {'],
  ]),
  ...mutantsOf('operations/dead-letters.ts', 'audit-verdict dead-letters', [
    ['a dead letter that was read is made visible again', 'await pMap(received, (letter) => queues.show(queue.url, letter), { concurrency: SHOWN_AT_ONCE });', ''],
    ['hidden dead letters are counted', 'const total = waiting + inFlight;', 'const total = waiting;'],
  ]),
  ...mutantsOf('operations/audit/audit-declaration.ts', 'audit-declaration audit-verdict', [
    ['a rule that was changed matches only a minute later', 'since + RULE_DELAY_MS', 'since'],
  ]),
  ...mutantsOf('operations/message-operations.ts', 'message-operations', [
    ['a message whose effects are unchecked is not settled', 'if (effects.length > 0 && !effectsChecked)', 'if (false)'],
    ['force does not settle a message whose effects are unchecked', 'if (force && effectsChecked && ', 'if (force && '],
    ['an effect that starts between the read and the write refuses the decision', 'asSeen(readable(row), effectsChecked)', 'asSeen(readable(row), true)'],
    ['why a message was not allowed is read strongly consistently', 'if (await allowMessage({ table, clock, random, consumer }, note)) return; const row = readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));', 'if (await allowMessage({ table, clock, random, consumer }, note)) return; const row = readInboxRow(await table.get(inboxKey(consumer, eventId)));'],
  ]),
  ...mutantsOf('operations/directory-parts.ts', 'directory', [
    ['an alias does not complete the ARN of another account', "if (path === 'alias' && entry.alias !== undefined) return `${entry.function}:${entry.alias}`;", ''],
  ]),
  ...mutantsOf('operations/subscriptions.ts', 'audit audit-declaration', [
    ['a consumer must see the events of its sources only', 'event.source !== source || event.type', 'event.type'],
    ['a consumer must see the events of its types only', '|| event.type !== type', ''],
    ['a consumer need not see the events that its filter leaves out', 'matchesFilter(filter, payload)', 'true'],
    ['a filter leaves out no event whose payload is unknown', 'payload === undefined ||', ''],
  ]),
  ...mutantsOf('operations/sqs-queues.ts', 'sqs-queues', [
    ['a receive that brings nothing does not show that the queue is empty', 'empty < EMPTY_RECEIVES', 'empty < 1'],
    ['a dead letter that is received twice is one', "found.set(message.MessageId ?? '', queueMessageOf(message))", "found.set(message.ReceiptHandle ?? '', queueMessageOf(message))"],
    ['hidden and delayed messages are in the queue', "number('ApproximateNumberOfMessagesNotVisible') + number('ApproximateNumberOfMessagesDelayed')", '0'],
  ]),
];
