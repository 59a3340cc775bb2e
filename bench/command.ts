import pMap from 'p-map';
import { runMailroom } from '../cli/program.ts';
import { EXIT, type Io } from '../cli/terminal/io.ts';
import { mintEventId, outboxKeyOf } from '../lambdas/runtime/store/event-id.ts';
import { failedKey, inboxKey, rejectedKey } from '../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../lambdas/runtime/store/row-schema.ts';
import type { StorableItem, Table } from '../lambdas/runtime/store/table.ts';
import { startEngine } from '../localstack/engine.ts';
import { freePort } from '../localstack/free-port.ts';
import { handmadeMailroom, SMALL_SOURCE } from '../test/local/support/handmade-mailroom.ts';
import type { FigureTable, Part, PartSettings } from './part.ts';
import { openSlowEndpoint } from './slow-endpoint.ts';

/** The period over which the events are spread. */
const SPREAD_MS = 50 * 60_000;

/** Runs of each command; the median counts. */
const RUNS = 3;

const TYPE = 'Sold';

/** A Mailroom whose commands are measured, in its own region. */
interface MeasuredMailroom {
  /** The name of its table of figures. */
  readonly name: string;
  readonly title: string;
  readonly region: string;
  readonly consumers: readonly string[];
  readonly shards: number;
  readonly events: number;
}

const BUSY: MeasuredMailroom = {
  name: 'command',
  title: 'Reading commands on 2,000 recent events, 2 consumers and 2 shards',
  region: 'ap-south-1',
  consumers: ['ledger', 'mailer'],
  shards: 2,
  events: 2_000,
};

/** As many consumers and shards as an order system has, and its events on a quiet day. */
const ORDERS: MeasuredMailroom = {
  name: 'command-orders',
  title: 'The same on 100 recent events, 5 consumers and 8 shards',
  region: 'ap-south-2',
  consumers: ['payments', 'stock', 'shipping', 'mailer', 'ledger'],
  shards: 8,
  events: 100,
};

const EVENTS_QUICK = 100;

/** The time of one request to AWS from an operator's machine, milliseconds. */
const REQUEST_MS = 30;

interface CommandFigure {
  readonly command: string;
  readonly ms: number;
  /** The requests to AWS, which take the time: on a local engine, one process answers all of them. */
  readonly requests: number;
  /** The most requests of which each began after the one before it was answered. */
  readonly chain: number;
  /** The time of the chain at 30 ms a request. */
  readonly awsMs: number;
}

/** Measures the commands that only read, on a local engine. The start of Node.js is not included. */
export const command: Part = {
  name: 'command',
  title: 'the reading commands, on 2,000 recent events, and on the shape of an order system',
  run: async (settings) => {
    const engine = await startEngine({ port: await freePort(), env: {}, onProgress: settings.say });
    try {
      const busy = await measure(engine.endpoint, settings, BUSY, commandLines);
      const orders = await measure(engine.endpoint, settings, ORDERS, orderLines);
      const tables = [commandTable(BUSY, busy), commandTable(ORDERS, orders)];
      return { json: { command: busy, commandOrders: orders }, tables };
    } finally {
      await engine.stop();
    }
  },
};

/** The commands, with the id of an event. */
const commandLines = (eventId: string) => [
  'status',
  `why ${eventId}`,
  `why ${eventId.slice(0, 18)}`,
  'why sale-7',
  'why sale-7 --since 24h',
  `logs ${eventId}`,
  'describe ledger',
  'events list',
  'messages list',
  'messages list --by cause',
  'messages list --waiting',
  'dlq list',
  'audit --since 1h',
  'operations',
];

const orderLines = (eventId: string) => [
  'status',
  `why ${eventId}`,
  'why sale-7',
  'doctor',
  'events list',
  'dlq list',
  'audit --since 1h',
  'audit --since 3d',
];

async function measure(
  endpoint: string,
  { say, quick }: PartSettings,
  { region, consumers, shards, ...chosen }: MeasuredMailroom,
  linesOf: (eventId: string) => readonly string[],
): Promise<CommandFigure[]> {
  const small = await handmadeMailroom(endpoint, region, consumers, [TYPE], undefined, shards);
  const events = quick ? EVENTS_QUICK : chosen.events;
  say(`writing ${events} events and the rows of ${consumers.length} consumers`);
  const eventId = await fill(small.table, { consumers, shards, events });
  const slow = await openSlowEndpoint(endpoint);
  const figures: CommandFigure[] = [];
  for (const line of linesOf(eventId)) {
    const runs: number[] = [];
    for (let nth = 0; nth < RUNS; nth += 1) {
      const startedAt = performance.now();
      await run(line.split(' '), endpoint, region);
      runs.push(performance.now() - startedAt);
    }
    const ms = Math.round(runs.toSorted((a, b) => a - b)[Math.floor(RUNS / 2)] ?? 0);
    await run(line.split(' '), slow.url, region);
    const { requests, chain } = slow.taken();
    const shown = line.replace(eventId, '<eventId>').replace(eventId.slice(0, 18), '<prefix>');
    figures.push({ command: shown, ms, requests, chain, awsMs: chain * REQUEST_MS });
    say(`${shown}: ${ms} ms, ${requests} requests, ${chain} one after another`);
  }
  slow.close();
  return figures;
}

/** Writes published events: of 100, one is unclaimed, two failed and one was rejected; the others are processed. */
async function fill(
  table: Table,
  { consumers, shards, events }: Pick<MeasuredMailroom, 'consumers' | 'shards' | 'events'>,
): Promise<string> {
  const now = Date.now();
  const ids = Array.from({ length: events }, (_, n) =>
    mintEventId(now - SPREAD_MS + Math.floor((n / events) * SPREAD_MS), shards),
  );
  const published = { schema: SCHEMA, status: 'PUBLISHED', source: SMALL_SOURCE, type: TYPE };
  const marked = { publishedAt: now - 60_000, publishedBy: 'stream', attempts: 0, leaseUntil: 0 };
  await pMap(
    ids,
    async (eventId, n) => {
      const envelope = JSON.stringify({ eventId, type: TYPE, aggregateId: `sale-${n}`, data: { n } });
      const rows: StorableItem[] = [{ ...outboxKeyOf(eventId), ...published, ...marked, envelope }];
      for (const consumer of consumers) rows.push(...messageRows(consumer, eventId, n, now));
      await pMap(rows, (Item) => table.write({ Put: { Item } }));
    },
    { concurrency: 32 },
  );
  return ids[Math.floor(events / 2)] ?? '';
}

function messageRows(
  consumer: string,
  eventId: string,
  n: number,
  claimedAt: number,
): readonly StorableItem[] {
  const common = { schema: SCHEMA, fence: 'f', type: TYPE, attempts: 1, claimedAt };
  const row = { ...inboxKey(consumer, eventId), ...common };
  const fingerprint = `${consumer} BankError: The bank answered #`;
  const failure = { lastError: 'The bank answered 500', fingerprint };
  switch (n % 100) {
    case 1:
      return [];
    case 2:
    case 3: {
      const expiresAt = Math.ceil(claimedAt / 1_000) + 86_400;
      return [
        { ...row, ...failure, status: 'FAILED', retryAt: claimedAt + 60_000 },
        { ...failedKey(consumer, eventId), schema: SCHEMA, failedAt: claimedAt, expiresAt },
      ];
    }
    case 4: {
      const rejected = { ...failure, rejectedAt: claimedAt, reason: 'ATTEMPTS_EXHAUSTED' };
      return [
        { ...row, ...rejected, status: 'REJECTED' },
        { ...rejectedKey(consumer, eventId), ...rejected, schema: SCHEMA },
      ];
    }
    default:
      return [{ ...row, status: 'PROCESSED', processedAt: claimedAt }];
  }
}

/** @throws if the command failed; 1, action required, is a result */
async function run(words: readonly string[], endpoint: string, region: string): Promise<void> {
  let err = '';
  const io: Io = {
    env: {},
    outIsTerminal: false,
    errIsTerminal: false,
    outSize: () => undefined,
    out: () => {},
    err: (text) => {
      err += text;
    },
    signal: new AbortController().signal,
    exitCode: EXIT.ok,
  };
  const code = await runMailroom([...words, '--endpoint', endpoint, '--region', region], io);
  if (code > EXIT.attention) throw new Error(`mailroom ${words.join(' ')} ended with ${code}: ${err}`);
}

function commandTable({ name, title }: MeasuredMailroom, figures: readonly CommandFigure[]): FigureTable {
  return {
    name,
    title,
    head: ['command', 'ms', 'requests', 'one after another', 'ms at 30 ms a request'],
    rows: figures.map(({ command: line, ms, requests, chain, awsMs }) => [
      `\`${line}\``,
      ms,
      requests,
      chain,
      awsMs,
    ]),
  };
}
