import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { eventReports, traceText, verdictText } from '../../cli/reports/why/trace-text.ts';
import { type Handler, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { type AnyEventDefinition, defineEvent } from '../../lambdas/runtime/events/event.ts';
import { PoisonMessage, RetryLater } from '../../lambdas/runtime/index.ts';
import type { Redact } from '../../lambdas/runtime/internals.ts';
import { powertoolsTelemetry, type Telemetry } from '../../lambdas/runtime/observe/telemetry.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { lambdaContext } from '../../testing/index.ts';
import { consumerConfig, rig, runThrough } from '../support/runtime-rig.ts';
import { mailroomInMemory, worker } from '../unit/cli/support/mailroom-in-memory.ts';
import { why } from '../unit/cli/support/why-rig.ts';

/** A card's number, a number that is one, a name that looks like a word of a program, and an e-mail address. */
const CARD = '4111111111111111';
const SECRETS = [CARD, 'adalovelace', 'ada@example.org'];

/** What gives a secret away: half a card's number, too, where a text was cut before it was looked through. */
const TRACES = [CARD.slice(0, 8), 'adalovelace', 'ada@example.org'];

/** A Standard Schema by hand, which quotes everything that it is given, also where a vendor names the kind. */
const handWritten: StandardSchemaV1<unknown, unknown> = {
  '~standard': {
    version: 1,
    vendor: 'by-hand',
    validate: (value) => ({
      issues: Object.entries(value as Record<string, unknown>).map(([key, inner]) => ({
        message: `${key} must not be ${JSON.stringify(inner)}`,
        path: [key, { key: String(inner) }, Number(inner)],
        code: 'adalovelace',
        type: String(inner),
      })),
    }),
  },
};

const amount = { amount: -1 };

/** Validators, and payloads with secrets in values, in keys, and in keys within keys. */
const SCHEMAS: readonly (readonly [string, StandardSchemaV1, readonly unknown[]])[] = [
  [
    'zod',
    z.strictObject({
      amount: z.int().min(0).max(5),
      card: z.optional(z.literal('none')),
      cards: z.optional(z.record(z.string().max(2), z.record(z.string(), z.number()))),
      lines: z.optional(z.array(z.object({ price: z.number() }))),
    }),
    payloads(),
  ],
  [
    'zod/mini',
    mini.strictObject({
      amount: mini.int().check(mini.minimum(0)),
      card: mini.optional(mini.literal('none')),
      cards: mini.optional(mini.record(mini.string(), mini.record(mini.string(), mini.number()))),
      lines: mini.optional(mini.array(mini.object({ price: mini.number() }))),
    }),
    payloads(),
  ],
  [
    'valibot',
    v.strictObject({
      amount: v.pipe(v.number(), v.minValue(0)),
      card: v.optional(v.literal('none')),
      cards: v.optional(v.record(v.pipe(v.string(), v.maxLength(2)), v.record(v.string(), v.number()))),
      lines: v.optional(v.array(v.object({ price: v.number() }))),
    }),
    payloads(),
  ],
  [
    'arktype',
    type({
      '+': 'reject',
      amount: 'number >= 0',
      'card?': '"none"',
      'cards?': { '[string]': { '[string]': 'number' } },
      'lines?': type({ price: 'number' }).array(),
    }),
    payloads(),
  ],
  ['a Standard Schema by hand', handWritten, [{ [CARD]: 'adalovelace', 'ada@example.org': CARD }]],
];

function payloads(): readonly unknown[] {
  return [
    { ...amount, card: CARD },
    { ...amount, card: Number(CARD) },
    { ...amount, [CARD]: 1, adalovelace: 1, 'ada@example.org': 1 },
    { ...amount, cards: { [CARD]: { adalovelace: 'ada@example.org' } } },
    { ...amount, cards: { adalovelace: { [CARD]: CARD } } },
    { ...amount, lines: [{ price: 1 }, { price: CARD }] },
    { ...amount, lines: CARD },
    CARD,
  ];
}

/** Everything that is written to the process's outputs while `run` runs. */
async function written(run: () => Promise<unknown>): Promise<string> {
  let text = '';
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((chunk) => {
      text += String(chunk);
      return true;
    });
  }
  try {
    await run();
  } finally {
    vi.restoreAllMocks();
  }
  return text;
}

function expectNoSecret(text: string): void {
  for (const trace of TRACES) expect(text.toLowerCase()).not.toContain(trace);
}

/** A definition for a schema, and a handler that is not reached. */
function definitionOf(schema: StandardSchemaV1, exposeIssues?: boolean): AnyEventDefinition {
  return defineEvent({
    source: 'things',
    type: 'ThingHappened',
    version: 1,
    aggregateType: 'Thing',
    schema,
    exposeIssues,
  });
}

/** Delivers a payload to a consumer until the message is settled. @returns all that it stored, logged and counted */
async function consume(
  handler: Handler,
  data: unknown,
  options: { readonly redact?: Redact; readonly version?: number } = {},
): Promise<{ readonly rows: string; readonly output: string; readonly commands: string }> {
  const mailroom = mailroomInMemory([]);
  const { clock, queue, memory, table } = mailroom;
  const telemetry: Telemetry = powertoolsTelemetry(consumerConfig);
  const { redact } = options;
  const handle = createConsumer({
    config: consumerConfig,
    table,
    queue,
    handlers: [handler],
    clock,
    telemetry,
    redact,
  });
  const eventId = mintEventId(clock.now(), 2);
  const envelope = {
    eventId,
    type: 'ThingHappened',
    version: options.version ?? 1,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    occurredAt: clock.now(),
    correlationId: 'chain',
    data,
  };
  const body = { 'detail-type': 'ThingHappened', source: 'things', detail: envelope };
  let commands = '';
  const output = await written(async () => {
    queue.send(body);
    for (let round = 0; round < 30 && queue.messages().length > 0; round += 1) {
      await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
      await clock.advance(900_000);
    }
    const bodies = [JSON.stringify(body)];
    const checks = await handle({ mailroomCheck: { bodies } } as never, lambdaContext({ clock }));
    const { trace, verdict } = await why(mailroom, eventId);
    commands = [JSON.stringify(checks), verdictText(verdict), traceText(trace)].join('\n');
    commands += JSON.stringify(eventReports(trace, false));
  });
  expect(mailroom.queue.deadLetters()).toHaveLength(1);
  expect(commands).toContain(worker.name);
  return { rows: JSON.stringify(memory.items()), output, commands };
}

describe.each(SCHEMAS)('a payload that %s refuses', (_vendor, schema, data) => {
  test.each(data.map((one) => [one]))(
    'is in no row, log, metric or command when it is consumed: %j',
    async (one) => {
      for (const make of [leased, transactional]) {
        const { rows, output, commands } = await consume(
          make(definitionOf(schema), async () => ({})),
          one,
        );
        expectNoSecret(rows + output + commands);
        expect(rows).toContain('INVALID_PAYLOAD');
        expect(output).toContain('INVALID_PAYLOAD');
      }
    },
  );

  test.each(data.map((one) => [one]))('is in no error when it is written: %j', async (one) => {
    const { memory, clock } = rig();
    const outbox = createOutbox({ config: consumerConfig, table: memory, clock });
    const event = definitionOf(schema).create({ aggregateId: 'a', data: one as never });
    const error = await outbox.commit({ events: [event] }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'INVALID_PAYLOAD' });
    expectNoSecret(`${(error as Error).message} ${(error as Error).stack} ${JSON.stringify(error)}`);
  });

  test('a definition may allow an error to show its payload', async () => {
    const last = data.findLast((one) => JSON.stringify(one).includes('adalovelace'));
    const { rows } = await consume(
      leased(definitionOf(schema, true), async () => {}),
      last,
    );
    expect(rows).toMatch(/adalovelace/i);
  });
});

test.each([
  ['zod', z.object({ lines: z.array(z.object({ price: z.number() })) }), 'invalid_type (expected number)'],
  [
    'zod/mini',
    mini.object({ lines: mini.array(mini.object({ price: mini.number() })) }),
    'invalid_type (expected number)',
  ],
  ['valibot', v.object({ lines: v.array(v.object({ price: v.number() })) }), 'number'],
  ['arktype', type({ lines: type({ price: 'number' }).array() }), 'domain'],
])('an error says where and of which kind: %s', async (_vendor, schema, kind) => {
  const { rows } = await consume(
    leased(definitionOf(schema), async () => {}),
    { lines: [{ price: 1 }, { price: CARD }] },
  );
  expect(rows).toContain(`data.lines.1.price: ${kind}`);
});

test.each([
  ['the code', { code: 'adalovelace' }],
  ['the type that it expected', { code: 'invalid_type', expected: 'adalovelace' }],
])('an issue that a refinement of zod made is not shown with %s from data', async (_what, issue) => {
  const schema = z.looseObject({}).superRefine((_data, context) => {
    context.addIssue({ message: 'no', input: undefined, ...issue } as never);
  });
  const { rows, output, commands } = await consume(
    leased(definitionOf(schema), async () => {}),
    {},
  );
  expectNoSecret(rows + output + commands);
  expect(rows).toContain('INVALID_PAYLOAD');
});

test.each(['name', 'code'])(
  'an error that a schema throws is not shown with a %s from data',
  async (member) => {
    const validate = () => {
      throw Object.assign(new RangeError('no'), { [member]: 'adalovelace' });
    };
    const schema: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'by-hand', validate } };
    const { rows, output, commands } = await consume(
      leased(definitionOf(schema), async () => {}),
      {},
    );
    expectNoSecret(rows + output + commands);
    expect(rows).toContain('RangeError');
  },
);

test('an error thrown by a schema or an upcast is not shown', async () => {
  const parse = () => JSON.parse(`{"card": "${CARD}" adalovelace}`) as never;
  const throws: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'by-hand', validate: parse } };
  const upcasts = defineEvent({
    source: 'things',
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    schema: z.object({}),
    upcast: parse,
  });
  for (const definition of [definitionOf(throws), upcasts]) {
    const { rows, output, commands } = await consume(
      leased(definition, async () => {}),
      {},
    );
    expectNoSecret(rows + output + commands);
    expect(rows).toContain('SyntaxError');
  }
});

describe('what a handler throws', () => {
  const definition = definitionOf(z.looseObject({}));
  const redact: Redact = (text) => SECRETS.reduce((left, secret) => left.replaceAll(secret, '#'), text);
  const secret = `no charge for ${SECRETS.join(' ')}`;
  const long = `${'.'.repeat(990)}${CARD}`;
  /** An error whose message was changed after its stack had been made. */
  const changed = (message: string) => {
    const error = new Error(`failed\n    at ${CARD} (file:1:1)`);
    expect(error.stack).toContain(CARD);
    return Object.assign(error, { message });
  };
  const THROWN: readonly (readonly [string, () => unknown])[] = [
    ['an error', () => new Error(secret)],
    [
      'an error with causes',
      () => new Error('failed', { cause: new Error(secret, { cause: new Error(secret) }) }),
    ],
    ['an error that is cut', () => new Error(long)],
    ['a poison message', () => new PoisonMessage(secret)],
    ['a delay with a cause', () => new RetryLater(0, new Error(secret))],
    ['a text', () => secret],
    ['an object', () => ({ message: secret, code: 'BAD' })],
    ['a name', () => Object.assign(new Error('failed'), { name: 'adalovelace' })],
    ['a code', () => Object.assign(new Error('failed'), { code: 'adalovelace' })],
    ['lines of a stack whose message was emptied', () => changed('')],
    ['lines of a stack whose message was shortened', () => changed('fail')],
    ['lines that look like a stack', () => new Error(`failed\n    at ${CARD} (file:1:1)`)],
  ];

  test.each(THROWN)('rows, logs, metrics and commands redact it: %s', async (_what, thrown) => {
    for (const make of [leased, transactional]) {
      const handler = make(definition, async () => {
        throw thrown();
      });
      const { rows, output, commands } = await consume(handler, {}, { redact });
      expectNoSecret(rows + output + commands);
      expect(output).toContain('A message was rejected');
    }
  });

  test('keeps its name, its code and the calls of its stack', async () => {
    const handler = leased(definition, async () => {
      throw Object.assign(new TypeError(secret), { code: 'NO_CHARGE' });
    });
    const { rows, output } = await consume(handler, {}, { redact });
    expect(rows).toContain('NO_CHARGE: no charge for # # #');
    expect(output).toContain('TypeError');
    expect(output).toMatch(/at .*payload-privacy\.test\.ts:\d+/);
  });

  test('a redaction that fails shows nothing, and the message is settled', async () => {
    const handler = leased(definition, async () => {
      throw new Error(secret);
    });
    for (const broken of [
      () => {
        throw new Error(secret);
      },
      () => undefined as never,
    ]) {
      const { rows, output, commands } = await consume(handler, {}, { redact: broken });
      expectNoSecret(rows + output + commands);
      expect(rows).toContain('redact option threw');
    }
  });

  test('an error is stored and logged unchanged without the option', async () => {
    const handler = leased(definition, async () => {
      throw new Error(secret);
    });
    const { rows, output } = await consume(handler, {});
    expect(rows).toContain(secret);
    expect(output).toContain(secret);
  });
});
