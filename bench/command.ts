import { subscribe } from 'node:diagnostics_channel';
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

/** The events that are read, spread over the last 50 minutes. */
const EVENTS = 2_000;
const EVENTS_QUICK = 100;
const SPREAD_MS = 50 * 60_000;

/** Runs of each command; the median counts. */
const RUNS = 3;

const REGION = 'ap-south-1';
const TYPE = 'Sold';
const CONSUMERS = ['ledger', 'mailer'];

interface CommandFigure {
  readonly command: string;
  readonly ms: number;
  /** The requests to AWS, which take the time: on a local engine, one process answers all of them. */
  readonly requests: number;
}

let requests = 0;
subscribe('http.client.request.start', () => {
  requests += 1;
});

/** Measures the commands that only read, on a local engine. The start of Node.js is not included. */
export const command: Part = {
  name: 'command',
  title: 'the reading commands, on 2,000 recent events',
  run: async (settings) => {
    const engine = await startEngine({ port: await freePort(), env: {}, onProgress: settings.say });
    try {
      const figures = await measure(engine.endpoint, settings);
      return { json: { command: figures }, tables: [commandTable(figures)] };
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
  'log',
];

async function measure(endpoint: string, { say, quick }: PartSettings): Promise<CommandFigure[]> {
  const small = await handmadeMailroom(endpoint, REGION, CONSUMERS, [TYPE]);
  const events = quick ? EVENTS_QUICK : EVENTS;
  say(`writing ${events} events and the rows of ${CONSUMERS.length} consumers`);
  const eventId = await fill(small.table, small.config.shards, events);
  const figures: CommandFigure[] = [];
  for (const line of commandLines(eventId)) {
    const before = requests;
    const times: number[] = [];
    for (let nth = 0; nth < RUNS; nth += 1) {
      const startedAt = performance.now();
      await run(line.split(' '), endpoint);
      times.push(performance.now() - startedAt);
    }
    const ms = Math.round(times.sort((a, b) => a - b)[Math.floor(RUNS / 2)] ?? 0);
    const made = Math.round((requests - before) / RUNS);
    const shown = line.replace(eventId, '<eventId>').replace(eventId.slice(0, 18), '<prefix>');
    figures.push({ command: shown, ms, requests: made });
    say(`${shown}: ${ms} ms, ${made} requests`);
  }
  return figures;
}

/** Writes published events: of 100, one is unclaimed, two failed and one was rejected; the others are processed. */
async function fill(table: Table, shards: number, events: number): Promise<string> {
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
      for (const consumer of CONSUMERS) rows.push(...messageRows(consumer, eventId, n, now));
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
async function run(words: readonly string[], endpoint: string): Promise<void> {
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
  const code = await runMailroom([...words, '--endpoint', endpoint, '--region', REGION], io);
  if (code > EXIT.attention) throw new Error(`mailroom ${words.join(' ')} ended with ${code}: ${err}`);
}

function commandTable(figures: readonly CommandFigure[]): FigureTable {
  return {
    name: 'command',
    title: `Reading commands on ${EVENTS} recent events`,
    head: ['command', 'ms', 'requests'],
    rows: figures.map(({ command: line, ms, requests: made }) => [`\`${line}\``, ms, made]),
  };
}
