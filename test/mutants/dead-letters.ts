import { type Mutant, mutantsOf } from './mutant.ts';

/** Redrive, discard and resend. */
// biome-ignore format: a line for each mutant
export const deadLettersMutants: readonly Mutant[] = [
  ...mutantsOf('cli/changes/resend/send-in-place.ts', 'resend interrupted-resend', [
    ['the old event is discarded before the event in its place is sent', 'await takeOver(deps, replacement, note); await deps.queues.send(replacement.consumer.queue, replacement.body);', 'await deps.queues.send(replacement.consumer.queue, replacement.body); await takeOver(deps, replacement, note);'],
    ['only the event that the row of the old one names is sent', 'if (named !== newEventId) throw', 'if (named === undefined) throw'],
    ['an event whose old one was not discarded in its favor is not sent', 'throw cannot(`Event ${eventId} is ${status} at ${consumer.name} since the plan. Nothing was sent.`);', 'return;'],
    ['an effect of the old event that was started after the plan stops the resend', 'if (isDeepStrictEqual(effectsOf(row), effectsOf(planned))) return;', 'return;'],
    ['a resend is done only if the new event itself was processed', "if (row?.status === 'PROCESSED') return { state: 'done' };", "if (row !== undefined) return { state: 'done' };"],
  ]),
  ...mutantsOf('cli/changes/resend/resend-plan.ts', 'resend interrupted-resend', [
    ['an old event that was processed, or that a worker holds, is not replaced', 'refuseSettled(deployment, deadLetter, consumer);', ''],
    ['an event whose replacement was received is not replaced again', 'if (last.row === undefined) return', 'if (last.row !== null) return'],
    ['a replacement that was never received can be replaced', 'if (last.row === undefined) return { replaced: events, newEventId: idAfter(last) };', ''],
    ['a resend of the same data is the same event, also when it is repeated', 'if (idAfter(before) === last.eventId)', 'if (last.eventId === undefined)'],
    ['the last of the replaced events is discarded, not the first', 'replaced: replaced.at(-1) ?? replaced[0],', 'replaced: replaced[0],'],
    ['effects of the replaced events are not repeated under other keys', 'if (!repeatEffects) refuseEffects(event, consumer, now);', ''],
    ['an effect of a replaced event that may still run is waited for', 'refuseRunningEffects(event, consumer, now);', ''],
    ['effects of every replaced event count', 'of replacing.replaced) {', 'of replacing.replaced.slice(-1)) {'],
    ['data that the filter of the consumer excludes is not sent', 'refuseFiltered(deployment, source, { source: bus, type: envelope.type }, data);', ''],
    ['an event in place of another one is judged by its own row', 'row: await readInbox(table, consumer.name, newEventId, true),', 'row: undefined,'],
  ]),
  ...mutantsOf('cli/changes/resend/send-in-place.ts', 'resend interrupted-resend', [
    ['only an interrupted resend is completed without its dead letter', "if (settled(standing, clock.now()) !== 'unsent') return undefined;", ''],
    ['the record of a resend names its consumer and events in attributes', '...{ source: source.name, consumer: consumer.name, eventId, newEventId },', ''],
    ['an interrupted resend is found by the id of the new event', 'if (resent?.consumer === source.consumer.name)', 'if (resent === null)'],
  ]),
  ...mutantsOf('cli/reports/findings/acknowledgements.ts', 'acknowledged-causes ack', [
    ['an acknowledgement covers its own finding only', 'finding === id &&', 'finding !== undefined &&'],
    ['an acknowledgement ends when its finding counts more', '(count ?? 1) <= (upTo ?? 1)', '(count ?? 1) > 0'],
  ]),
  ...mutantsOf('cli/reports/status/status-findings.ts', 'status-findings finding ack', [
    ['findings with one id are counted', 'finding.count ?? (same > 1 ? same : null)', 'finding.count'],
  ]),
  ...mutantsOf('cli/deployment/resent-event.ts', 'operator-reasons', [
    ['an event is in place of another one by an attribute', 'known.replacedBy', "/as (\\S+): /.exec(known.discardedReason ?? '')?.[1]"],
  ]),
  ...mutantsOf('cli/reports/dead-letters/standing.ts', 'standing redrive-plan redrive-steps resend interrupted-resend', [
    ['an event whose replacement was not received is not handled', "if (unsentReplacement(standing) !== undefined) return 'unsent';", ''],
    ['a replacement without a row was not received', 'if (last !== undefined && last.row === undefined) return last.eventId;', ''],
    ['a replacement that was not read counts as not received', 'return replacementOf(last === undefined ? row : last.row);', 'return undefined;'],
    ['the replacements are followed to the last one', 'next = replacementOf(replacement.row);', 'next = undefined;'],
    ['a replacement whose row cannot be read is not handled', "inboxState(last.row, now).is === 'unreadable' ? 'unreadable' : 'handled'", "'handled'"],
    ['a replaced event is handled by a replacement in any state', 'if (last !== undefined) return inboxState', 'if (last !== undefined && now < 0) return inboxState'],
  ]),
  ...mutantsOf('cli/changes/redrive/redrive-steps.ts', 'standing redrive-plan redrive-steps resend interrupted-resend', [
    ['a redrive keeps a dead letter whose event was replaced meanwhile', 'unsentReplacement(await standingOf(deadLetter)) !== undefined) return;', 'false) return;'],
    ['a redriven event whose replacement was not received is not done', 'if (isHandled(standing)) return', "if (now.status === 'PROCESSED' || now.status === 'DISCARDED') return"],
    ['an attempt that was not counted is not the same failure again', "now.status === 'FAILED' && sameCause && now.attempts > 0", "now.status === 'FAILED' && sameCause"],
  ]),
  ...mutantsOf('cli/reports/dead-letters/redrive-plan.ts', 'redrive-plan unswept-shards', [
    ['the redrive of a discarded batch looks for its events in every shard', ', shards: SHARDS_MAX };', ' };'],
  ]),
  ...mutantsOf('cli/commands/dlq-redrive.ts', 'unswept-shards', [
    ['the command of a redrive sweeps every shard of the plan', '{ ...range, until', '{ since: range.since, until'],
  ]),
  ...mutantsOf('cli/changes/discard/discard-one.ts', 'resend interrupted-resend', [
    ['a discard discards the replacement that was not received', 'const eventId = replacement ?? inboxId(deadLetter);', 'const eventId = inboxId(deadLetter);'],
    ['a discard keeps a dead letter whose event was replaced meanwhile', "if (unsentReplacement(standing) !== undefined) return { outcome: 'unsent' };", ''],
    ['a discard leaves the event in place of another one once that was received', 'unlessReceived: replacement !== undefined', 'unlessReceived: false'],
    ['a discard reports a DEAD event of a newer version as unreadable', "if (row !== undefined && isUnreadable(row)) return 'unreadable';", "if (row === undefined) return 'unreadable';"],
  ]),
  ...mutantsOf('cli/changes/discard/discard-one.ts', 'repeated-decisions', [
    ['a repeated discard of a DEAD event reports its first run', "return row?.status === 'DISCARDED' ? 'discarded' : 'handled';", "return 'handled';"],
    ['a rejected function has committed only if the row has its commit', "status === 'discarded' && row.commitId === REJECTED_COMMIT", "status === 'discarded'"],
    ['a rejected function that has committed is reported', "status === 'discarded' && row.commitId === REJECTED_COMMIT", 'false'],
  ]),
  ...mutantsOf('cli/commands/messages-decisions.ts', 'repeated-decisions', [
    ['a fix of a message that is final is reported by its function', 'if (isOver && fix === undefined) return', 'if (isOver) return'],
  ]),
  ...mutantsOf('cli/changes/settle/applied-resolution.ts', 'repeated-decisions', [
    ['a fix was committed only if its function says so', "fixResult(deployment, made, fix, result.status === 'resolved')", 'fixResult(deployment, made, fix, true)'],
    ['a question about a final message is not recorded as a decision', 'isFinal(state) ? await deployment.operator() : await record(', 'false ? await deployment.operator() : await record('],
  ]),
  ...mutantsOf('cli/changes/settle/fix-file.ts', 'repeated-decisions', [
    ['a fix that its function would refuse is not recorded', 'for (const event of given.events) draftOf(event, service);', ''],
    ['an external event is the cause of a fix', 'if (isExternalEventId(eventId)) return { eventId, correlationId: eventId };', 'if (isExternalEventId(eventId)) return undefined;'],
  ]),
  ...mutantsOf('cli/reports/dead-letters/standing.ts', 'settled-unread', [
    ['what was settled under the id of its body is not redriven', "if (standing.isSettledUnread) return 'handled';", ''],
  ]),
  ...mutantsOf('inbox/inbox-state.ts', 'settled-unread', [
    ['a message that was resolved while it could not be read does not run', "return state.is === 'processed' || state.is === 'discarded';", "return state.is === 'discarded';"],
    ['a message that was discarded while it could not be read does not run', "return state.is === 'processed' || state.is === 'discarded';", "return state.is === 'processed';"],
  ]),
  ...mutantsOf('inbox/inbox-history.ts', 'settled-unread', [
    ['only a message with a mark is looked up under the id of its body', 'if (!marks.has(unreadableMark(id))) return false;', 'if (marks.has(unreadableMark(id))) return false;'],
    ['a mark leaves a history that a consumer can read', "retentions: 'if_not_exists(retentions, :none)'", "retentions: ':none'"],
    ['the marks stay when a retention is recorded', 'return { ...found, ...key, schema: SCHEMA, retentions, changedAt };', 'return { ...key, schema: SCHEMA, retentions, changedAt };'],
  ]),
  ...mutantsOf('inbox/inbox-operator.ts', 'settled-unread', [
    ['an unreadable message is marked before it is settled', 'if (isUnreadableId(eventId)) await markUnreadable(inbox, eventId);', ''],
  ]),
  ...mutantsOf('cli/changes/discard/discard-one.ts', 'unreadable-rows', [
    ['the row of a message that could not be read is settled only if it is rejected', "readable(await readInbox(deps.table, name, unread, true))?.status !== 'REJECTED'", 'false'],
    ['the row of a message that could not be read names the event that was redriven', 'await discardMessage(deps, { consumer: name,', 'if (eventId === unread) await discardMessage(deps, { consumer: name,'],
  ]),
  ...mutantsOf('cli/changes/resend/resend-plan.ts', 'resend interrupted-resend', [
    ['the same data has the same id', 'SHARDS_MAX, () => digest.subarray(0, 16)', 'SHARDS_MAX'],
    ['other data has another id', 'eventId, sorted(data)]', 'eventId]'],
    ['another consumer has another id', "['resend', consumer, eventId,", "['resend', eventId,"],
    ['the order of members is not other data', '{ members: members.sort(([a], [b]) => (a < b ? -1 : 1)) }', '{ members }'],
    ['an event in place of another one becomes too old with it', 'mintEventId(eventIdTime(eventId),', 'mintEventId(Date.now(),'],
  ]),
];
