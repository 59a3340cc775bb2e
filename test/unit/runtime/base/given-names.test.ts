import { describe, expect, test } from 'vitest';
import { nameProblems, requireGiven } from '../../../../lambdas/runtime/base/given-names.ts';
import * as bridges from '../../../../lambdas/runtime/bridge.ts';
import { createOncePerKey } from '../../../../lambdas/runtime/http.ts';
import * as runtime from '../../../../lambdas/runtime/index.ts';
import * as mysql from '../../../../lambdas/runtime/mysql.ts';
import * as postgres from '../../../../lambdas/runtime/postgres.ts';
import * as sources from '../../../../lambdas/runtime/sources.ts';
import { explore, memoryRelay } from '../../../../testing/index.ts';

test('missing and unknown names are reported, and what is undefined counts as absent', () => {
  const names = { mailroom: 'required', dashboard: 'optional' } as const;
  expect(nameProblems({ mailroom: 1, dashboard: undefined, other: undefined }, names)).toEqual([]);
  expect(nameProblems(undefined, names)).toEqual(['mailroom is missing.']);
  expect(nameProblems({ mailroom: null, table: 1 }, names, 'props.')).toEqual([
    'props.mailroom is missing.',
    'props.table is not a property. Properties: mailroom, dashboard.',
  ]);
  expect(nameProblems({ mailroom: 1, dashboard: null }, names, 'props.')).toEqual([
    'props.dashboard is null. Set it or omit it.',
  ]);
});

test('an object with more than a function reads is accepted', () => {
  expect(() =>
    requireGiven('createOutbox', { config: 0, table: '', bus: 1 }, 'config', 'table'),
  ).not.toThrow();
});

/** The functions that take one object, and the members without which they cannot work. */
const FUNCTIONS: readonly [string, unknown, readonly string[]][] = [
  ['createConsumer', runtime.createConsumer, ['config', 'table', 'queue', 'handlers']],
  ['createOutbox', runtime.createOutbox, ['config', 'table']],
  ['dynamoTable', runtime.dynamoTable, ['client', 'tableName']],
  ['eventBridgeBus', runtime.eventBridgeBus, ['client', 'busName']],
  ['sqsQueue', runtime.sqsQueue, ['client', 'queueUrl']],
  ['bridge', bridges.bridge, ['to', 'events']],
  ['sqsTarget', bridges.sqsTarget, ['client']],
  ['snsTarget', bridges.snsTarget, ['client']],
  ['kinesisTarget', bridges.kinesisTarget, ['client']],
  ['kafkaTarget', bridges.kafkaTarget, ['client', 'topic']],
  ['jetStreamTarget', bridges.jetStreamTarget, ['connect', 'jetstream', 'headers', 'subject']],
  ['rabbitTarget', bridges.rabbitTarget, ['connect', 'exchange']],
  ['consumeJetStream', sources.consumeJetStream, ['consumer', 'inbox', 'handler', 'deadLetter']],
  ['consumeRabbit', sources.consumeRabbit, ['connection', 'queue', 'inbox', 'handler']],
  ['createInboxProcessor', sources.createInboxProcessor, ['config', 'table']],
  ['createSourceHandler', sources.createSourceHandler, ['inbox', 'handler', 'deadLetter']],
  ['kafkaRun', sources.kafkaRun, ['consumer', 'inbox', 'handler', 'deadLetter']],
  ['createPostgresOutbox', postgres.createPostgresOutbox, ['config', 'database']],
  [
    'createPostgresConsumer',
    postgres.createPostgresConsumer,
    ['config', 'database', 'outbox', 'queue', 'handlers'],
  ],
  ['createPostgresInboxProcessor', postgres.createPostgresInboxProcessor, ['config', 'database', 'outbox']],
  ['createPostgresRelay', postgres.createPostgresRelay, ['config', 'database', 'bus']],
  ['createMysqlOutbox', mysql.createMysqlOutbox, ['config', 'database']],
  ['createMysqlRelay', mysql.createMysqlRelay, ['config', 'database', 'bus']],
  ['createOncePerKey', createOncePerKey, ['client', 'tableName', 'operation']],
  ['memoryRelay', memoryRelay, ['table', 'bus']],
];

describe('called by a program in JavaScript', () => {
  test.each(FUNCTIONS)('%s names what is missing', async (name, called, required) => {
    const call = called as (given?: unknown) => unknown;
    for (const given of [[], [undefined], [{ [required[0] ?? '']: null }]]) {
      const error = await Promise.resolve()
        .then(() => call(...given))
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: 'BAD_ARGUMENT',
        message: expect.stringMatching(new RegExp(`^${name}: ${required.join(', ')} (?:is|are) missing\\.`)),
      });
    }
  });

  test('explore names what is missing and what does not exist', async () => {
    const given = { event: {}, otherTable: { Lines: ['id'] } };
    await expect(explore({} as never, given as never)).rejects.toMatchObject({
      code: 'BAD_ARGUMENT',
      message: expect.stringMatching(
        /^explore: check is missing\. otherTable is not a property\. Properties: event, others, check, /,
      ),
    });
    await expect(explore({} as never, undefined as never)).rejects.toThrow(
      'explore: event is missing. check is missing.',
    );
  });
});
