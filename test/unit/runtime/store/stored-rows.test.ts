import { deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../../lambdas/runtime/base/units.ts';
import { inboxState, isOverdue } from '../../../../lambdas/runtime/inbox/inbox-state.ts';
import { mintEventId, outboxKeyOf } from '../../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { asRow } from '../../../../lambdas/runtime/store/row-schema.ts';
import {
  isUnreadable,
  readable,
  readInboxRow,
  readOutboxRow,
} from '../../../../lambdas/runtime/store/stored-rows.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const eventId = mintEventId(NOW, 8);
const key = inboxKey('payments', eventId);
const pending = {
  ...outboxKeyOf(eventId),
  schema: 1,
  status: 'PENDING',
  attempts: 0,
  leaseUntil: NOW,
  source: 'orders',
  type: 'OrderPlaced',
  envelope: '{}',
};

describe('a stored row', () => {
  test.each([
    [{ status: 'FAILED', schema: 2 }, 'its "schema" is 2, and this version reads up to 1'],
    [{ status: 'FAILED', schema: '1' }, 'its "schema" is not a whole number from 1'],
    [{ status: 'PARKED', schema: 7 }, 'its "schema" is 7, and this version reads up to 1'],
    [{}, 'it has no "status"'],
    [
      { status: 'PARKED' },
      'its "status" is "PARKED"; expected PROCESSING, PROCESSED, FAILED, REJECTED, DISCARDED',
    ],
    [
      { status: 7 },
      'its "status" is not a string; expected PROCESSING, PROCESSED, FAILED, REJECTED, DISCARDED',
    ],
    [
      { status: 'PROCESSING', leaseUntil: Number.NaN },
      'its "leaseUntil" is not a time in epoch milliseconds',
    ],
    [{ status: 'PROCESSING', leaseUntil: 9e15 }, 'its "leaseUntil" is not a time in epoch milliseconds'],
    [{ status: 'PROCESSING', claimedAt: -1 }, 'its "claimedAt" is not a time in epoch milliseconds'],
    [{ status: 'PROCESSING', attempts: 0.5 }, 'its "attempts" is not a whole number'],
    [{ status: 'REJECTED', lastError: null }, 'its "lastError" is not a string'],
    [{ status: 'REJECTED', rejectedIds: ['a'] }, 'its "rejectedIds" is not a set of strings'],
    [{ status: 'DISCARDED', replacedBy: 'the next one' }, 'its "replacedBy" is not the id of an event'],
    [{ status: 'PROCESSING', outOfTime: 'yes' }, 'its "outOfTime" is not true or false'],
  ])('an inbox row that is %j cannot be read, and the reason is named', (row, problem) => {
    expect(readInboxRow({ ...key, ...row })).toEqual({ ...key, unreadable: problem });
  });

  test.each([
    [{ leaseUntil: undefined }, 'it has no "leaseUntil"'],
    [{ envelope: undefined }, 'it has no "envelope"'],
    [
      { status: 'SCHEDULED' },
      'its "status" is "SCHEDULED"; expected PENDING, PUBLISHED, DEAD, DISCARDED, CANCELLED',
    ],
    [{ PK: 'OUTBOX#2026-01-01T12:01#00' }, 'its key is not that of an event'],
    [{ SK: 'EVENT#1' }, 'its key is not that of an event'],
    [{ encoding: 'zstd' }, 'its "encoding" is "zstd", and this version reads deflate-raw'],
    [{ schema: 2, encoding: 'zstd' }, 'its "schema" is 2, and this version reads up to 1'],
    [
      { encoding: 'deflate-raw', envelope: Buffer.from('??') },
      expect.stringMatching(/^its "envelope" cannot be inflated/),
    ],
    [{ envelope: deflateRawSync('{}') }, expect.stringContaining('its "envelope" is not')],
  ])('an outbox row that is %j cannot be read, and the reason is named', (row, problem) => {
    expect(readOutboxRow({ ...pending, ...row })).toMatchObject({ unreadable: problem });
  });

  test('an outbox row is read with its envelope as text, however that is stored', () => {
    const envelope = JSON.stringify({ note: 'ä😀'.repeat(9) });
    const compressed = { ...pending, envelope: deflateRawSync(envelope), encoding: 'deflate-raw' };
    expect(readOutboxRow(compressed)).toEqual({ ...pending, envelope });
    expect(readOutboxRow({ ...pending, envelope })).toEqual({ ...pending, envelope });
  });

  test('is read where the inbox acts on it: without a lease, a fence, an attempt or a schema', () => {
    const row = readInboxRow({ ...key, status: 'PROCESSING' });
    expect(row).toEqual({ ...key, schema: 1, status: 'PROCESSING', fence: '', attempts: 0 });
    const { leaseUntil: _, ...published } = { ...pending, status: 'PUBLISHED' };
    expect(readOutboxRow(published)).toMatchObject({
      status: 'PUBLISHED',
    });
  });

  test('has no attributes but those of its shape, so that none can pass for a reason', () => {
    const row = readInboxRow({ ...key, status: 'FAILED', unreadable: 'not at all' });
    expect(isUnreadable(row)).toBe(false);
    expect(row).not.toHaveProperty('unreadable');
  });

  test('a missing row is not an unreadable one', () => {
    expect(readInboxRow(undefined)).toBeUndefined();
    expect(isUnreadable(undefined)).toBe(false);
  });

  test.each([
    ['no map', []],
    ['a text', 'charge'],
    ['an entry that is not a map', { charge: 'COMPLETED' }],
    ['an unknown status', { charge: { ...effect, status: 'PAUSED' } }],
    ['no start', { charge: { ...effect, startedAt: undefined } }],
    ['one good entry and a bad one', { charge: effect, mail: { ...effect, run: '1' } }],
  ])('is unreadable with effects that are %s', (_what, effects) => {
    expect(readInboxRow({ ...key, status: 'FAILED', effects })).toMatchObject({
      unreadable: 'its "effects" is not a map of side effects',
    });
  });

  test('has its effects', () => {
    const effects = { charge: effect, constructor: { ...effect, status: 'RELEASED' } };
    expect(readInboxRow({ ...key, status: 'FAILED', effects })).toMatchObject({ effects });
  });
});

const effect = { status: 'IN_PROGRESS', fence: 'f', run: 1, endsBy: NOW, startedAt: NOW };

describe('an inbox row means', () => {
  const stateOf = (row: object | undefined) => inboxState(readInboxRow(row && { ...key, ...row }), NOW);

  test.each([
    ['absent', undefined],
    ['processed', { status: 'PROCESSED' }],
    ['discarded', { status: 'DISCARDED' }],
    ['rejected', { status: 'REJECTED' }],
    ['failed', { status: 'FAILED' }],
    ['leased', { status: 'PROCESSING', leaseUntil: NOW + 1 }],
    ['leased', { status: 'PROCESSING', leaseUntil: NOW - 2_000 }],
    ['abandoned', { status: 'PROCESSING', leaseUntil: NOW - 2_001 }],
    ['abandoned', { status: 'PROCESSING' }],
    ['unreadable', { status: 'PROCESSING', leaseUntil: 'soon' }],
    ['unreadable', {}],
  ])('%s: %j', (is, row) => {
    expect(stateOf(row).is).toBe(is);
  });

  test.each([
    ['leased', { status: 'PROCESSING', leaseUntil: NOW }],
    ['abandoned', { status: 'PROCESSING', leaseUntil: NOW - 1 }],
    ['abandoned', { status: 'PROCESSING', leaseUntil: 'soon' }],
    ['unreadable', { status: 'PARKED' }],
    ['unreadable', {}],
  ])('%s to a consumer, which reads it unchecked and needs no margin: %j', (is, row) => {
    expect(inboxState(asRow<InboxRow>({ ...key, ...row }), NOW, 0).is).toBe(is);
  });

  test.each([
    [true, { status: 'FAILED', retryAt: NOW - 1 }],
    [false, { status: 'FAILED', retryAt: NOW }],
    // A retry that no worker stores: the message was due from its claim on.
    [true, { status: 'FAILED', claimedAt: NOW - 1 }],
    [false, { status: 'FAILED', claimedAt: NOW }],
    [true, { status: 'FAILED', claimedAt: NOW - 1, retryAt: NOW + DAY_MS + 1 }],
    [false, { status: 'FAILED', claimedAt: NOW - 1, retryAt: NOW + DAY_MS }],
    [true, { status: 'FAILED' }],
    [true, { status: 'PROCESSING', leaseUntil: NOW - 1 }],
    [false, { status: 'PROCESSING', leaseUntil: NOW - 1, endsBy: NOW }],
    [true, { status: 'PROCESSING', claimedAt: NOW - 1 }],
    [false, { status: 'PROCESSING', claimedAt: NOW }],
    [true, { status: 'PROCESSING' }],
    [false, { status: 'PROCESSED' }],
  ])('a message is overdue, %s: %j', (overdue, stored) => {
    const row = readable(readInboxRow({ ...key, ...stored }));
    expect(row && isOverdue(row, NOW)).toBe(overdue);
  });
});
