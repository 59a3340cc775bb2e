import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { STRICT_GROUP } from '../../lambdas/runtime/base/order.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { seedSequence, skipSequence } from '../../lambdas/runtime/operations/order-operations.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import type { LastSequence } from '../../lambdas/runtime/store/last-sequence.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { refuseUnreached } from '../deployment/inbox-home.ts';
import { type ChangeText, changeText, type Place, placeOf } from '../deployment/place.ts';
import { eventsText } from '../reports/order/order-block.ts';
import { type OrderedAggregate, orderReader } from '../reports/order/order-of-aggregate.ts';
import { sourceOf, strictConsumer } from '../reports/order/strict-consumer.ts';
import { applyWords, type ChangeOptions } from '../terminal/change.ts';
import { shell } from '../terminal/shell.ts';
import type { OperatorChange } from './change.ts';

/** `skip` passes over the next number of an aggregate, `seed` raises its last number. */
type OrderStep = 'skip' | 'seed';

export interface OrderChange extends ChangeOptions {
  readonly consumer: string;
  readonly source?: string;
  readonly type: string;
  readonly id: string;
  readonly sequence: number;
}

/** An aggregate, and the number that it gets. */
interface OrderPlan {
  readonly place: Place;
  /** The key of its last number. */
  readonly key: string;
  readonly name: string;
  readonly document: ReturnType<typeof documentOf>;
  readonly planned: Omit<ChangeText, 'place'>;
}

/** `mailroom order skip`. */
export const skip = changing('skip');

/** `mailroom order seed`. */
export const seed = changing('seed');

function changing(
  to: OrderStep,
): OperatorChange<OrderChange, OrderPlan, number, OrderPlan['document'] & { readonly applied: boolean }> {
  return {
    plan: async (deployment, options) => {
      const { consumer, type: aggregateType, id: aggregateId, sequence } = options;
      const entry = strictConsumer(deployment, consumer);
      refuseUnreached(entry, deployment.database?.engine);
      const source = sourceOf(entry, options.source);
      const { PK: key } = lastKey({ consumer, group: STRICT_GROUP, source, aggregateType, aggregateId });
      const before = await deployment.stored.inbox.lastSequence(key);
      const name = `${aggregateType} ${aggregateId} at ${consumer}`;
      const refusal = refusalOf(to, before, sequence);
      if (refusal !== undefined) throw refused(name, refusal);
      const place = await placeOf(deployment);
      const passed =
        to === 'skip' || options.apply
          ? ''
          : await passedOverText(deployment, entry, { source, aggregateType, aggregateId }, sequence);
      const means =
        to === 'skip'
          ? `Would pass over number ${sequence} of ${name}: its event is never applied, and number ${sequence + 1} is next. A redrive leaves its dead letter.`
          : `Would set the last number of ${name} from ${before.last} to ${sequence}: number ${sequence + 1} is next, and no event from ${before.last + 1} to ${sequence} is ever applied.${passed}`;
      const sourceWords = options.source === undefined ? [] : ['--source', options.source];
      const next = shell`${['order', to, consumer, aggregateType, aggregateId, String(sequence), ...sourceWords, ...applyWords(options)]}`;
      const planned = { text: `${means} Nothing was changed. To ${to} it:`, next };
      return { place, key, name, document: documentOf(options, source, before), planned };
    },
    apply: async (deployment, { key, name, document: { sequence } }, { reason }) => {
      const note = { by: await deployment.operator(), reason };
      const change = to === 'skip' ? skipSequence : seedSequence;
      const { status, last } = await change(deployment, { key, sequence }, note);
      if (status === 'refused') throw refused(name, `its last number is ${last} now`);
      return last;
    },
    result: (_deployment, { plan: { document }, made }) => ({
      json: { ...document, last: made ?? document.last, applied: made !== undefined },
    }),
    text: (deployment, { plan: { place, name, document, planned }, made: last }) => {
      if (last === undefined) return changeText({ place, ...planned }, deployment);
      const { consumer, sequence } = document;
      const dead =
        to === 'skip'
          ? ` A dead letter of number ${sequence} itself is superseded: the redrive leaves it, and you can discard it.`
          : '';
      const text = `The last number of ${name} is ${last}.${dead} Redrive what was rejected meanwhile:`;
      return changeText({ place, text, next: shell`dlq redrive ${`consumer:${consumer}`}` }, deployment);
    },
  };
}

function documentOf(
  { consumer, type: aggregateType, id: aggregateId, sequence }: OrderChange,
  source: string,
  { last }: LastSequence,
) {
  return { consumer, source, aggregateType, aggregateId, sequence, last };
}

/** Names the events that a seed would pass over, as far as they are found. */
async function passedOverText(
  deployment: Deployment,
  entry: ConsumerEntry,
  aggregate: OrderedAggregate,
  upTo: number,
): Promise<string> {
  const reader = orderReader({ ...deployment, now: deployment.clock.now() });
  const { holder, waiting } = await reader.read(entry, aggregate);
  const passed = [...(holder === undefined ? [] : [holder]), ...waiting].filter(
    ({ sequence }) => sequence <= upTo,
  );
  return passed.length === 0 ? '' : ` Of these, ${passed.length} were found: ${eventsText(passed)}.`;
}

function refusalOf(to: OrderStep, { last }: LastSequence, sequence: number): string | undefined {
  if (to === 'seed')
    return sequence > last ? undefined : `its last number is ${last}, and a seed only raises it`;
  return last === sequence - 1
    ? undefined
    : `its last number is ${last}, so only number ${last + 1} can be skipped`;
}

function refused(name: string, why: string): MailroomError {
  return new MailroomError('BAD_ARGUMENT', `${name}: ${why}. Nothing was changed.`);
}
