import { type Mutant, mutantsOf } from './mutant.ts';

/** Ordered consumers: the gate, the last sequence, and what operators do to it. */
// biome-ignore format: a line for each mutant
export const orderMutants: readonly Mutant[] = [
  ...mutantsOf('store/last-sequence.ts', 'order-gate order-operator order-of-two-services', [
    ['an ordered message has a usable sequence', "typeof sequence !== 'number' || !Number.isSafeInteger(sequence) || sequence < 1", "typeof sequence !== 'number'"],
    ['sequences begin at 1', '|| sequence < 1', '|| sequence < 0'],
    ['a group shares its number', '(order.group ?? type)', 'type'],
    ['the last sequence is raised only from the one that was read', "condition: '#last = :seenLast'", "condition: '(#last = :seenLast OR attribute_exists(PK))'"],
    ['the first sequence is raised only where there is none', "{ condition: 'attribute_not_exists(PK)', values: {} }", "{ condition: '(attribute_not_exists(PK) OR attribute_exists(PK))', values: {} }"],
    ['a service has its own last numbers', 'const of = { consumer, source, group', "const of = { consumer, source: '', group"],
    ['an event whose names no key can have has no place', 'return problem === undefined ? { place', 'return true ? { place'],
    ['a superseded message does not run', 'if (sequence <= last) return', 'if (sequence < 0) return'],
    ['another event under the last sequence is rejected', "eventId === ownId ? 'applied' : 'repeated'", "'applied'"],
    ['the same event again is a duplicate', "eventId === ownId ? 'applied' : 'repeated'", "'repeated'"],
    ['a number that was set by hand repeats no event', 'sequence === last && eventId !== undefined', 'sequence === last'],
    ['a strict message waits for its predecessor', "mode === 'strict' && sequence > last + 1", 'false'],
    ['a latest message does not wait', "mode === 'strict' && sequence > last + 1", 'sequence > last + 1'],
    ['an operator leaves no event of an earlier number', "...(eventId === undefined && { remove: ['eventId'] }),", ''],
    ['only the next number is passed over', 'seen.last === order.sequence - 1', 'seen.last < order.sequence', 'Each caller has found out before whether a number is missing.'],
    ['a number that is next is passed over', 'seen.last === order.sequence - 1', 'false'],
    ['a last sequence of a newer schema is not read', 'isKnownSchema(schema) && Number', 'Number'],
    ['a commit that an event overtook is told by the last sequence', "code === 'ConditionalCheckFailed' || code === 'TransactionConflict'", 'false'],
    ['a conflict on the last sequence is told by it, too', "|| code === 'TransactionConflict'", ''],
    ['a seed is exactly the action that begins a sequence', 'return isExactly(', 'return true; isExactly('],
    ['the last sequence is read strongly consistently', "table.get({ PK: key, SK: 'LAST' }, { consistent: true })", "table.get({ PK: key, SK: 'LAST' })"],
    ['the last sequence is a whole number', 'Number.isSafeInteger(last) && Number(last) >= 0', 'Number(last) >= 0'],
    ['the last sequence is not negative', 'Number.isSafeInteger(last) && Number(last) >= 0', 'Number.isSafeInteger(last)'],
    ['a seed begins at 1', '!Number.isSafeInteger(last) || Number(last) < 1', '!Number.isSafeInteger(last)'],
    ['a seed is a whole number', '!Number.isSafeInteger(last) || Number(last) < 1', 'Number(last) < 1'],
  ]),
  ...mutantsOf('store/keys.ts', 'numbered-names order-gate', [
    ['a torn text is in no key', 'if (torn !== undefined) return', 'if (false) return'],
    ['a key has at most 2,048 bytes', 'bytes <= PARTITION_KEY_MAX_BYTES', 'true'],
  ]),
  ...mutantsOf('events/event.ts', 'numbered-names', [
    ['the names of a numbered event fit into every key', 'sequence && bytes > NUMBERED_NAMES_MAX_BYTES', 'false'],
    ['the names of other events may be longer', 'sequence && bytes >', 'bytes >'],
    ['the names of an event are whole', 'if (hasLoneSurrogate(text)) throw bad(', 'if (false) throw bad('],
  ]),
  ...mutantsOf('outbox/event-draft.ts', 'outbox', [
    ['the texts of an event are whole', " && value !== '' && !hasLoneSurrogate(value)", " && value !== ''"],
  ]),
  ...mutantsOf('consume/order-gate.ts', 'order-gate', [
    ['a message that waits is rejected at its last receive', 'receives >= (config.maxReceives ?? Number.POSITIVE_INFINITY)', 'false'],
    ['a message waits twice as long each time', '2 ** Math.min(receives - 1, 10)', '1'],
    ['a message that waits is counted', "telemetry.count('MessagesOutOfOrder');", ''],
    ['an overtaken run passes the gate again', 'if (!(error instanceof Overtaken)) throw error;', 'throw error;'],
    ['a message that is overtaken again and again goes back to its queue', 'tries === GATE_TRIES ||', ''],
    ['the rejections of a consumer that skips raise the number', "config.order.onReject === 'skip'", 'false'],
    ['the rejections of a consumer that blocks leave the number', "config.order?.mode === 'strict' && config.order.onReject === 'skip'", 'true'],
    ['a message that waits in vain is not passed over', "isNext && config.order?.mode === 'strict'", "config.order?.mode === 'strict'"],
    ['a strict consumer knows its last receive', "order?.mode !== 'strict' || maxReceives !== undefined", 'true'],
    ['a strict consumer has one order', "if (ofConsumer?.mode === 'strict') {", 'if (false) {'],
    ['an order needs a sequence', 'if (!isNumbered(definition)) {', 'if (false) {'],
    ['an event without a sequence in its definition is not ordered', 'isNumbered(definition) ? ofConsumer : undefined', 'ofConsumer'],
    ['a message waits for a minute at most', 'Math.min(WAIT_MAX_S, 2 ** Math.min(receives - 1, 10))', '2 ** Math.min(receives - 1, 10)'],
    ['an overtaken run needs time for another one', '|| delivery.endsBy - clock.now() < TRY_MIN_MS', ''],
    ['a repeated number keeps its place', 'failUnclaimed(passed, repeated(order.sequence, seen.eventId))', 'failUnclaimed(received, repeated(order.sequence, seen.eventId))'],
    ['a message that waits in vain keeps its place', 'await wait(passed, order, seen)', 'await wait(received, order, seen)'],
    ["a handler's order takes precedence over the order of its consumer", "Remove the handler's order.`, ); } return order;", "Remove the handler's order.`, ); } return ofConsumer ?? order;"],
  ]),
  ...mutantsOf('inbox/inbox-completion.ts', 'order-gate', [
    ['a completion without a commit raises the number', "isProcessed, applied(inbox.clock, claim.message))", 'isProcessed, [])'],
    ['a completion that an event overtook runs again', 'throw isLastRefused(error) ? new Overtaken(inbox.clock.now()) : error;', 'throw error;'],
    ['a superseded message names the number that superseded it', '...processed(inbox), supersededBy }', '...processed(inbox) }'],
    ['the handler does not see the refusal of the number', 'if (place !== undefined && isLastRefused(error)) return', 'if (false) return'],
  ]),
  ...mutantsOf('inbox/inbox-history.ts', 'order-gate', [
    ['a superseded message is absorbed, however old it is', 'return place !== undefined && isSuperseded(place) ? undefined :', 'return'],
    ['a message that is next may have run before the order', 'place !== undefined && isSuperseded(place)', 'place !== undefined'],
  ]),
  ...mutantsOf('consume/claimed-run.ts', 'order-gate', [
    ['the effects of a superseded message are reported', 'reportEffectsOfSuperseded(claimed);', ''],
    ['a lease that a superseded message lost is counted', "if (result.claim.takenOver) telemetry.count('LeasesExpired'); // Before the write", '// Before the write'],
    ['the effects of a superseded message are reported before it ends', 'reportEffectsOfSuperseded(claimed); const lost = await writeEnd(claimed, () => inbox.supersede(result.claim, by)); if (lost !== undefined) return lost;', 'const lost = await writeEnd(claimed, () => inbox.supersede(result.claim, by)); if (lost !== undefined) return lost; reportEffectsOfSuperseded(claimed);'],
    ['a message is superseded also beside others', 'const options = { alone: true, endsBy', 'const options = { alone: false, endsBy'],
    ['a superseded message has no hint', "await removeHint(claimed); return { kind: 'done' };", "return { kind: 'done' };"],
  ]),
  ...mutantsOf('inbox/inbox-claim.ts', 'inbox-claim', [
    ['a claim without an order removes an earlier one', 'remove: [...(remove ?? []), ...unplaced],', 'remove,'],
  ]),
  ...mutantsOf('inbox/inbox-writes.ts', 'order-gate', [
    ['a message without an order has none of an earlier claim', "{ set: {}, remove: ['order'] }", '{ set: {}, remove: [] }'],
    ['a message has its place in its row', '{ set: { order: place.order }, remove: [] }', '{ set: {}, remove: [] }'],
    ['an ordered completion is written only under its claim', 'await transactRow(inbox, eventId, change, mine(claim), others)', 'await transactRow(inbox, eventId, change, { ...mine(claim), condition: `(${mine(claim).condition} OR attribute_exists(PK))` }, others)'],
  ]),
  ...mutantsOf('consume/leased-context.ts', 'order-gate', [
    ['an overtaken run starts no effect', 'if (run.state.blocked instanceof Overtaken) throw run.state.blocked;', ''],
    ['a commit that an event overtook counts no attempt', "if (error instanceof Overtaken) take(run, { is: 'blocked', error });", ''],
  ]),
  ...mutantsOf('inbox/order-operator.ts', 'order-operator', [
    ['a skip passes over the next number only', 'seen.last === place.sequence - 1)', 'true)'],
    ['a seed only raises a number', 'seen.last < place.sequence)', 'true)'],
    ['a seed raises any lower number', 'seen.last < place.sequence)', '!seen.exists)'],
    ['a change of a sequence is recorded', "await recordOperation(deps, { ...note, command, subject: `${place.key} ${place.sequence}` });", ''],
  ]),
  ...mutantsOf('cli/reports/dead-letters/redrive-order.ts', 'passed-over', [
    ["the consumer's function knows the place of its message", 'placeAt(index) ?? ', ''],
  ]),
  ...mutantsOf('consume/check-messages.ts', 'passed-over', [
    ['the check of a message says its place', '...(order !== undefined && { order })', ''],
  ]),
  ...mutantsOf('inbox/settle-message.ts', 'order-operator order-gate', [
    ['a strict message is not settled before its predecessor', 'seen.last < sequence - 1', 'false'],
    ['the work of an old event does not lower the latest number', 'seen.last < sequence ?', 'true ?'],
    ['a discarded message is not the latest state', "if (mode === 'latest' && status === 'DISCARDED') return { raise: [] };", ''],
    ['the row knows its place better than the request', '(isPast ? undefined : own) ?? given', 'given ?? (isPast ? undefined : own)'],
    ['a place of another order does not count', '(isPast ? undefined : own)', 'own'],
    ['a strict place counts only at a strict consumer', "(own?.mode === 'strict') !== isStrict", "own?.mode !== 'strict' && isStrict"],
    ['another place counts only at a consumer without a strict order', "(own?.mode === 'strict') !== isStrict", "own?.mode === 'strict' && !isStrict"],
    ['an event that takes the place of another has its number', 'order === undefined || note.replacedBy !== undefined', 'order === undefined'],
    ['force passes over its number', 'decideMessage(inbox, decision, NOT_FINAL, { raise: place.raise })', 'decideMessage(inbox, decision, NOT_FINAL)'],
    ['the raise of the last number is one of the own actions of a decision', 'OWN_ACTIONS + raise.length', 'OWN_ACTIONS'],
    ['an order that was changed by hand counts only with a key', "typeof order?.key === 'string' && Number.isSafeInteger(order.sequence)", 'Number.isSafeInteger(order?.sequence)'],
    ['an order that was changed by hand counts only with a whole number', "typeof order?.key === 'string' && Number.isSafeInteger(order.sequence)", "typeof order?.key === 'string'"],
    ['effects refuse a decision before its order does', "if (effects.length > 0 && !areChecked(effectsChecked, started)) return { status: 'effects-unchecked', effects }; if ('missing' in place) return { status: 'out-of-order', missing: place.missing };", "if ('missing' in place) return { status: 'out-of-order', missing: place.missing }; if (effects.length > 0 && !areChecked(effectsChecked, started)) return { status: 'effects-unchecked', effects };"],
  ]),
  ...mutantsOf('cli/reports/dead-letters/resend.ts', 'order-decisions', [
    ['a resent message leaves its number to the event in its place', 'replacedBy: newEventId,', ''],
    ['a resent message that is superseded was not processed', "progress.state !== 'superseded'", 'true'],
  ]),
  ...mutantsOf('cli/reports/dead-letters/resend-plan.ts', 'order-decisions', [
    ['a message whose number was passed over is not resent', "if (verdict?.verdict === 'runs') await refusePassedOver(table, consumer, deadLetter);", ''],
  ]),
  ...mutantsOf('cli/reports/messages/place-of-message.ts', 'order-decisions place-of-message ordered-events', [
    ['a number counts only if the definition of its event declares it', ' && event.sequence === true', ''],
    ['the place of an earlier order does not count', "own !== undefined && (own.mode === 'strict') === isStrict(consumer)", 'own !== undefined'],
    ['the last run of a message has its place', "if (own !== undefined && (own.mode === 'strict') === isStrict(consumer)) return own;", ''],
    ['the body of a dead letter has the place of its message', 'body === undefined ? undefined : deliveredIn(body)', 'undefined'],
    ['the outbox row of its event has the place of a message', 'if (row !== undefined) return eventOf(row);', ''],
    ['the dead letter of a message that an operator names has its place', 'if (own !== undefined) return deliveredIn(own.received.body);', ''],
    ['an event that was sent in place of another has its place', 'if (resent?.consumer !== consumer.name)', 'if (resent !== null)'],
  ]),
  ...mutantsOf('cli/reports/dead-letters/standing.ts', 'passed-over', [
    ['a superseded message is not handled', "if (supersededBy(standing) !== undefined) return 'superseded';", ''],
  ]),
  ...mutantsOf('cli/reports/dead-letters/redrive-steps.ts', 'passed-over redrive-steps', [
    ['a superseded message is not done', 'if (supersededBy(standing) !== undefined) return SUPERSEDED;', ''],
    ['the dead letter of an ordered message stays until its message has ended', 'if (isOrdered || unsentReplacement', 'if (unsentReplacement'],
    ['the dead letter of an ordered message that has ended goes', 'if (isOrdered && hasEnded && received !== undefined) await queues.remove(url, received);', ''],
    ['the dead letter of a superseded message stays', "progress.state === 'done' || progress.state === 'back'", "progress.state !== 'waiting'"],
  ]),
  ...mutantsOf('cli/reports/dead-letters/redrive-plan.ts', 'passed-over', [
    ['a message whose number was passed over would not run', 'if (over !== undefined) return { ...deadLetter, ...over };', ''],
  ]),
  ...mutantsOf('cli/reports/dead-letters/redrive-order.ts', 'order-redrive', [
    ['a strict consumer gets redriven messages in order', '(a.place?.ahead ?? 0) - (b.place?.ahead ?? 0)', '0'],
  ]),
  ...mutantsOf('cli/reports/dead-letters/redrive-order.ts', 'ordered-events', [
    ['dead letters of one aggregate have a turn each, the lowest number first', 'same.sort((a, b) => a.place.sequence - b.place.sequence);', ''],
  ]),
  ...mutantsOf('cli/reports/messages/order-of-aggregate.ts', 'ordered-events', [
    ['order show lists the events of one aggregate', 'row && place?.key === key', 'row && place'],
  ]),
  ...mutantsOf('cli/commands/dlq-discard.ts', 'ordered-events', [
    ['a strict consumer discards the numbers of an aggregate one after another', 'inTurns(source, plan)', 'plan.map((step) => [step])'],
  ]),
  ...mutantsOf('cli/commands/messages-decisions.ts', 'order-decisions', [
    ['a message without a row is resolved at its place', 'order: placed(place),', ''],
    ['a message is resolved in the order that its consumer has', '...{ ...made, effectsChecked: checked, by, isStrict: isStrict(entry) },', '...{ ...made, effectsChecked: checked, by },'],
    ['a message that was passed over is not allowed to run', 'if (sequence > last) return;', 'return;'],
  ]),
  ...mutantsOf('cli/reports/dead-letters/discard.ts', 'order-decisions', [
    ['a dead letter without a row is discarded at its place', 'order: placed(place),', ''],
    ['a dead letter is discarded in the order that its consumer has', 'isStrict: isStrict(consumer),', ''],
    ['a dead letter whose predecessor was not applied stays', "if (settled.status === 'out-of-order') return", 'if (false) return'],
  ]),
  ...mutantsOf('consume/operator-commit.ts', 'order-gate order-of-two-services', [
    ['a formal rejection has the place of its message', 'const order = placeOf(ctx, handler, delivery.content.envelope);', 'const order = undefined;'],
    ['a place of an earlier strict order does not count for the function', "return config.order?.mode === 'strict';", 'return true;'],
    ['a manual fix finds the handler of its event by service and type', 'const handler = handlers.get(refText({ source, type }));', 'const handler = [...handlers.values()].find((one) => one.definition.type === type);'],
    ['a manual fix of a message without a row has the place of its event', 'const order = ordered && placeInOrder(consumer, ordered, cause ?? {});', 'const order = undefined;'],
  ]),
  ...mutantsOf('inbox/inbox-admission.ts', 'order-too-old', [
    ['a superseded message is absorbed, although it was rejected as too old', ' || (message.place && isSuperseded(message.place))', ''],
    ['a message that was rejected as too old runs only if it is allowed', '(message.place && isSuperseded(message.place))', 'message.place'],
  ]),
  ...mutantsOf('inbox/inbox-rejection.ts', 'order-gate order-too-old', [
    ['a rejection as too old passes over no number', '|| reason === TOO_OLD) return [];', ') return [];'],
    ['a rejection without an order removes an earlier one', "'outOfTime', ...unplaced],", "'outOfTime'],"],
    ['a rejection that skips is one transaction with its number', '[...skip, { Put', '[{ Put'],
    ['a rejection looks again when the last number has moved', 'if (skip.length === 0 || look === LOOKS || !isLastRefused(error)) throw error;', 'throw error;'],
    ['a rejection looks three times at most', 'look === LOOKS ||', ''],
    ['a rejection looks again only when the last number refused it', '|| !isLastRefused(error)) throw', ') throw'],
  ]),
  ...mutantsOf('inbox/inbox-operator.ts', 'order-operator', [
    ['a decision whose number was applied meanwhile is made again', "if (raise.length > 0 && isLastRefused(error, RAISED_AT)) return 'changed';", ''],
  ]),
  ...mutantsOf('consume/dynamo-inbox.ts', 'order-gate', [
    ['the last number is one of the own actions of a commit', 'place === undefined ? own : own + 1', 'own'],
  ]),
];
