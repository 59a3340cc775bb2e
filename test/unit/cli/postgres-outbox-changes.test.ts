import { describe, expect, test } from 'vitest';
import { combinedOutboxChanges, type OutboxChanges } from '../../../cli/changes/outbox-changes.ts';
import { changeEvents, postgresOutboxChanges } from '../../../cli/deployment/postgres-outbox-changes.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';

const EVENT_ID = mintEventId(Date.now(), 1);
const clock = { sleep: async () => {} };
const NOTE = { by: 'ada', reason: 'fixed' };

const LOST = new Error('Connection terminated unexpectedly');
const failure = (code: string) => Object.assign(new Error(code), { code });

/** A database that answers the changes with these errors, and then with the id of the event. */
function database(...errors: readonly (Error | 'none')[]) {
  const tokens: unknown[] = [];
  const query = async (_text: string, values: readonly unknown[] = []) => {
    tokens.push(values[2]);
    const error = errors[tokens.length - 1];
    if (error instanceof Error) throw error;
    return { rows: error === 'none' ? [] : [{ id: EVENT_ID }] };
  };
  return { sql: { query }, tokens };
}

const requeue = (sql: Parameters<typeof changeEvents>[0]['database']) =>
  changeEvents({ database: sql, sleep: clock.sleep }, 'requeue', [EVENT_ID], 'fixed');

describe('a change of an event in PostgreSQL', () => {
  test.each([
    ['a lost connection', LOST],
    ['a server that stops', failure('57P01')],
    ['a deadlock', failure('40P01')],
  ])('is repeated after %s, with the same token', async (_name, error) => {
    const { sql, tokens } = database(error, error);
    expect(await requeue(sql)).toEqual([EVENT_ID]);
    expect(tokens).toHaveLength(3);
    expect(new Set(tokens).size).toBe(1);
  });

  test('is unknown if an answer was lost and no later one came, whatever the last error is', async () => {
    const lock = failure('55P03');
    for (const errors of [
      [LOST, LOST, LOST, LOST, LOST],
      [failure('57P01'), lock, lock, lock, lock],
      [LOST, failure('42501')],
    ])
      await expect(requeue(database(...errors).sql)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
  });

  test('was not made if there was no connection, which is reported at once', async () => {
    for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']) {
      const unreachable = new MailroomError('UNREACHABLE', 'no answer', { cause: failure(code) });
      const { sql, tokens } = database(unreachable);
      await expect(requeue(sql)).rejects.toBe(unreachable);
      expect(tokens).toHaveLength(1);
      await expect(requeue(database(LOST, unreachable).sql)).rejects.toMatchObject({
        code: 'COMMIT_UNKNOWN',
      });
    }
    const reset = new MailroomError('UNREACHABLE', 'no answer', { cause: failure('ECONNRESET') });
    expect(await requeue(database(reset).sql)).toEqual([EVENT_ID]);
  });

  test('was not made if every try was rolled back', async () => {
    for (const code of ['55P03', '42501', '57P03']) {
      const refused = Array.from({ length: 5 }, () => failure(code));
      await expect(requeue(database(...refused).sql)).rejects.toMatchObject({ code });
    }
  });
});

describe('an event of a Mailroom with both stores', () => {
  const table = (): OutboxChanges & { readonly asked: string[] } => {
    const asked: string[] = [];
    const answer = async (eventId: string) => asked.push(eventId) > 0;
    return {
      asked,
      requeue: answer,
      discard: answer,
      markResent: answer,
      publishAgain: async (eventId) => ((await answer(eventId)) ? 'on-request' : 'absent'),
    };
  };

  test('is changed in the table only if the database does not have it', async () => {
    for (const [has, answers] of [
      ['true', [false, false, 'queued']],
      ['false', [true, true, 'on-request']],
    ] as const) {
      const query = async (text: string) => ({ rows: text.includes('EXISTS') ? [{ has }] : [] });
      const dynamo = table();
      const changes = combinedOutboxChanges(
        postgresOutboxChanges({ database: { query }, sleep: clock.sleep }),
        dynamo,
      );
      expect([
        await changes.requeue(EVENT_ID, NOTE),
        await changes.discard(EVENT_ID, NOTE),
        await changes.publishAgain(EVENT_ID, 1, NOTE),
      ]).toEqual(answers);
      expect(dynamo.asked).toHaveLength(has === 'true' ? 0 : 3);
    }
  });
});
