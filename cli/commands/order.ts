import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { STRICT_GROUP } from '../../lambdas/runtime/base/order.ts';
import { seedSequence, skipSequence } from '../../lambdas/runtime/inbox/order-operator.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { type LastSequence, readLastSequence } from '../../lambdas/runtime/store/last-sequence.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { changeText, placeOf } from '../deployment/place.ts';
import { aggregateName, blockOf, eventsText, waitingText } from '../reports/order/order-block.ts';
import {
  type AggregateEvent,
  type AggregateOrder,
  numberingServices,
  type OrderedAggregate,
  orderReader,
} from '../reports/order/order-of-aggregate.ts';
import { isStrict } from '../reports/order/place-of-message.ts';
import { countArgument } from '../terminal/arguments.ts';
import { applyWords, type ChangeOptions, reasonOption, reasonToApply } from '../terminal/change.ts';
import type { Io } from '../terminal/io.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { reportOf } from '../terminal/terminal.ts';
import { time } from '../terminal/times.ts';
import { reporting } from './command.ts';

/** `mailroom order`. */
export function orderCommand(io: Io): Command {
  return new Command('order')
    .description(
      'Shows what holds up the aggregates of a consumer with a strict order, and sets their last numbers.',
    )
    .addCommand(
      new Command('show')
        .description(
          'Shows the last applied number of an aggregate, and the events that hold it up; without one, of all that are held up.',
        )
        .argument('<consumer>', 'the name of the consumer')
        .argument('[type]', 'the type of the aggregate, such as Account')
        .argument('[id]', 'its id')
        .addOption(sourceOption())
        .action(reporting(io, show, 'consumer', 'type', 'id')),
    )
    .addCommand(
      changeCommand(
        io,
        'skip',
        'Shows what passing over the next number of an aggregate would mean. With --apply, passes over it: its event is never applied, and later ' +
          'events go on.',
        'the next number',
      ),
    )
    .addCommand(
      changeCommand(
        io,
        'seed',
        'Shows what raising the last number of an aggregate would mean, and which events would be passed over. With --apply, raises it: its consumer ' +
          'goes on with the next number.',
        'the number of the last event that the state of the consumer contains',
      ),
    );
}

function sourceOption(): Option {
  return new Option(
    '--source <service>',
    'the service that numbers the aggregate; needed only if the consumer takes numbered events of several',
  );
}

interface ShownAggregate {
  readonly consumer: string;
  readonly source?: string;
  readonly type?: string;
  readonly id?: string;
}

async function show(
  deployment: Deployment,
  { consumer, type: aggregateType, id: aggregateId, source: given }: ShownAggregate,
) {
  const entry = strictConsumer(deployment, consumer);
  if (aggregateType !== undefined && aggregateId === undefined) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `The aggregate "${aggregateType}" has no id. Give the type and the id, or neither.`,
    );
  }
  const reader = orderReader({ ...deployment, now: deployment.clock.now() });
  const { items, more } =
    aggregateType === undefined || aggregateId === undefined
      ? await reader.readAll(entry)
      : {
          items: [await reader.read(entry, { source: sourceOf(entry, given), aggregateType, aggregateId })],
          more: false,
        };
  const aggregates = items.map((order) => orderJson(deployment, consumer, order));
  return reportOf({ consumer, aggregates, more }, aggregates, (seen) =>
    [
      ...(seen.length === 0
        ? [
            prose(
              `${consumer}: no rejected message is out of order. Messages that still wait for a predecessor are not listed; name their aggregate.`,
            ),
          ]
        : []),
      ...seen.flatMap(({ text, next }) => [prose(text), ...(next === null ? [] : [`  ${next}`])]),
      ...(more ? [prose('Not all rejected messages were read.')] : []),
    ].join('\n'),
  );
}

/** An aggregate as in the JSON document of docs/cli-json.md. */
function orderJson(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  consumer: string,
  order: AggregateOrder,
) {
  const { last, at, eventId, missing, holder, waiting } = order;
  const isHeldUp = holder !== undefined || waiting.length > 0;
  const block = blockOf(consumer, order);
  const when = at === undefined ? '' : ` at ${time(at)}`;
  const applied =
    last === 0
      ? 'no event was applied'
      : eventId === undefined
        ? `number ${last} was set or passed over${when}`
        : `number ${last} was applied last${when} (event ${eventId})`;
  const held = isHeldUp
    ? `${block.text}${waitingText(order)} ${block.todo}`
    : `Number ${missing} is next, and nothing was found that waits for it.`;
  return {
    source: order.source,
    aggregateType: order.aggregateType,
    aggregateId: order.aggregateId,
    last,
    exists: order.exists,
    at: at ?? null,
    eventId: eventId ?? null,
    missing,
    holder: holder === undefined ? null : numberedJson(holder),
    waiting: waiting.map(numberedJson),
    text: `${aggregateName(order)}: ${applied}. ${held}`,
    next: isHeldUp ? commandLine(block.next) : null,
  };
}

function numberedJson({ sequence, eventId, type, state, reason }: AggregateEvent) {
  return { sequence, eventId, type: type ?? null, state, reason: reason ?? null };
}

/** @throws `BAD_ARGUMENT` */
function strictConsumer(deployment: Deployment, name: string): ConsumerEntry {
  const entry = deployment.consumer(name);
  if (isStrict(entry)) return entry;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `The consumer ${name} has no strict order, so no event of it waits for another. If this has changed, deploy its stack.`,
  );
}

/** @throws `BAD_ARGUMENT` if the service is not given and the consumer takes numbered events of several, or of none by this name */
function sourceOf(entry: ConsumerEntry, given: string | undefined): string {
  const services = numberingServices(entry);
  const [only = ''] = services;
  if (given === undefined ? services.length === 1 : services.includes(given)) return given ?? only;
  const problem = given === undefined ? 'Its service is not named' : `No service "${given}" numbers it`;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `${problem}: ${entry.name} takes numbered events of ${services.join(', ')}. Name one with --source.`,
  );
}

type OrderStep = 'skip' | 'seed';

interface OrderChange extends ChangeOptions {
  readonly consumer: string;
  readonly source?: string;
  readonly type: string;
  readonly id: string;
  readonly sequence: number;
}

function changeCommand(io: Io, to: OrderStep, description: string, number: string): Command {
  return new Command(to)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .argument('<type>', 'the type of the aggregate, such as Account')
    .argument('<id>', 'its id')
    .argument('<sequence>', number, countArgument)
    .addOption(sourceOption())
    .option('--apply', `${to} it`)
    .addOption(reasonOption())
    .action(
      reporting<OrderChange>(
        io,
        (deployment, options) => changeOrder(deployment, to, options),
        'consumer',
        'type',
        'id',
        'sequence',
      ),
    );
}

async function changeOrder(deployment: Deployment, to: OrderStep, options: OrderChange) {
  const reason = reasonToApply(options);
  const { consumer, type: aggregateType, id: aggregateId, sequence } = options;
  const entry = strictConsumer(deployment, consumer);
  const source = sourceOf(entry, options.source);
  const { PK: key } = lastKey({ consumer, group: STRICT_GROUP, source, aggregateType, aggregateId });
  const before = await readLastSequence(deployment, key);
  const sourceWords = options.source === undefined ? [] : ['--source', options.source];
  const name = `${aggregateType} ${aggregateId} at ${consumer}`;
  const refusal = refusalOf(to, before, sequence);
  if (refusal !== undefined) throw refused(name, refusal);
  const place = await placeOf(deployment);
  const document = { consumer, source, aggregateType, aggregateId, sequence, last: before.last };
  if (reason === undefined) {
    const means =
      to === 'skip'
        ? `Would pass over number ${sequence} of ${name}: its event is never applied, and number ${sequence + 1} is next. A redrive leaves its dead letter.`
        : `Would set the last number of ${name} from ${before.last} to ${sequence}: number ${sequence + 1} is next, and no event from ${before.last + 1} to ${sequence} is ever applied.${await passedOverText(deployment, entry, { source, aggregateType, aggregateId }, sequence)}`;
    const next = shell`${['order', to, consumer, aggregateType, aggregateId, String(sequence), ...sourceWords, ...applyWords(options)]}`;
    const text = `${means} Nothing was changed. To ${to} it:`;
    return reportOf({ ...document, applied: false }, undefined, () =>
      changeText({ place, text, next }, deployment),
    );
  }
  const note = { by: await deployment.operator(), reason };
  const change = to === 'skip' ? skipSequence : seedSequence;
  const { status, last } = await change(deployment, { key, sequence }, note);
  if (status === 'refused') throw refused(name, `its last number is ${last} now`);
  const dead =
    to === 'skip'
      ? ` A dead letter of number ${sequence} itself is superseded: the redrive leaves it, and you can discard it.`
      : '';
  const text = `The last number of ${name} is ${last}.${dead} Redrive what was rejected meanwhile:`;
  const next = shell`dlq redrive ${`consumer:${consumer}`}`;
  return reportOf({ ...document, last, applied: true }, undefined, () =>
    changeText({ place, text, next }, deployment),
  );
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
