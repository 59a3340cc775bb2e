import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { seed, skip } from '../changes/order.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { aggregateName, blockOf, waitingText } from '../reports/order/order-block.ts';
import {
  type AggregateEvent,
  type AggregateOrder,
  orderReader,
} from '../reports/order/order-of-aggregate.ts';
import { sourceOf, strictConsumer } from '../reports/order/strict-consumer.ts';
import { countArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { prose } from '../terminal/prose.ts';
import { reportOf } from '../terminal/terminal.ts';
import { time } from '../terminal/times.ts';
import { changing, reporting } from './command.ts';
import { reasonOption } from './options.ts';

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

function changeCommand(io: Io, to: 'skip' | 'seed', description: string, number: string): Command {
  return new Command(to)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .argument('<type>', 'the type of the aggregate, such as Account')
    .argument('<id>', 'its id')
    .argument('<sequence>', number, countArgument)
    .addOption(sourceOption())
    .option('--apply', `${to} it`)
    .addOption(reasonOption())
    .action(changing(io, to === 'skip' ? skip : seed, 'consumer', 'type', 'id', 'sequence'));
}
