import { describe, expect, test } from 'vitest';
import type { MailroomInfo } from '../../../../../cli/page/server/protocol.ts';
import {
  createReadings,
  type Reading,
  type ReadingName,
  type ReadingRequest,
  readingRequest,
} from '../../../../../cli/page/server/readings.ts';
import { reportOf } from '../../../../../cli/terminal/terminal.ts';
import { PoisonMessage } from '../../../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../../../lambdas/runtime/consume/handler.ts';
import { capturedIo } from '../../../../support/captured-io.ts';
import { ThingHappened } from '../../../../support/runtime-rig.ts';
import { mailroomInMemory } from '../../support/mailroom-in-memory.ts';
import { memoryDeployment } from '../../support/memory-deployment.ts';
import { runInMemory } from '../../support/run-in-memory.ts';
import { runningUi } from '../../support/running-ui.ts';

const HOSTILE = '</script><script>alert(1)</script>\u001b[2J\u202e';

/** A Mailroom with one rejected message, whose error and data are hostile. */
async function rejectedMailroom() {
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async () => {
      throw new PoisonMessage(HOSTILE);
    }),
  ]);
  const [event] = await mailroom.outbox.commit({
    events: [ThingHappened.create({ aggregateId: HOSTILE, data: { n: 424_242 } })],
  });
  await mailroom.publish();
  await mailroom.drain();
  return { mailroom, eventId: event?.eventId ?? '' };
}

/** Reads a request such as `why?id=order-1&since=6h`. */
function requested(text: string) {
  const [name = '', query] = text.split('?');
  return readingRequest(name as ReadingName, [...new URLSearchParams(query)]);
}

describe('the command of a reading', () => {
  test.each([
    ['why?since=6h&id=order 1', ['why', 'order 1', '--since', '6h']],
    ['why?id=01a1fba6&payload=1', ['why', '01a1fba6', '--payload']],
    [
      'messages?state=failed&consumer=payments&by=cause&limit=50',
      ['messages', 'list', '--failed', '--consumer', 'payments', '--by', 'cause', '--limit', '50'],
    ],
    ['dlq?source=consumer:payments&limit=1000', ['dlq', 'list', 'consumer:payments', '--limit', '1000']],
    ['dlq-show?id=5f0a1a0c&source=dead', ['dlq', 'show', 'dead', '5f0a1a0c']],
    ['doctor', ['doctor']],
    ['audit?since=7d', ['audit', '--since', '7d']],
    ['audit?repair=1&since=7d', ['audit', '--since', '7d', '--repair']],
    [
      'redrive-plan?source=consumer:payments&cause=BankError&limit=1000',
      ['dlq', 'redrive', 'consumer:payments', '--cause', 'BankError', '--limit', '1000'],
    ],
    ['discard-plan?id=5f0a1a0c&source=dead', ['dlq', 'discard', 'dead', '5f0a1a0c']],
    [
      'discard-plan?source=consumer:payments&cause=BankError&reject=1&effectsChecked=1',
      ['dlq', 'discard', 'consumer:payments', '--cause', 'BankError', '--reject', '--effects-checked'],
    ],
    ['operations?since=30d', ['operations', '--since', '30d']],
  ])('%s', (request, words) => {
    expect(requested(request).words).toEqual(words);
  });

  test.each([
    ['why', 'The parameter id is missing.'],
    ['why?id=', 'The parameter id is "", which must have 1 to 500 characters.'],
    [`why?id=${'x'.repeat(501)}`, 'must have 1 to 500 characters'],
    ['why?id=--endpoint=http://evil.example', 'must not begin with a hyphen'],
    ['dlq-show?source=dead&id=-h', 'The parameter id is "-h", which must not begin with a hyphen.'],
    ['audit?since=--apply', 'must not begin with a hyphen'],
    [
      'audit?since=1h&apply=1',
      'The parameter apply is not a parameter of audit; its parameters: since, repair.',
    ],
    [
      'redrive-plan?source=dead&apply=1',
      'The parameter apply is not a parameter of redrive-plan; its parameters: source, id, cause, limit.',
    ],
    ['discard-plan?source=dead&cause=--apply', 'must not begin with a hyphen'],
    ['doctor?id=x', 'The parameter id is not a parameter of doctor; its parameters: none.'],
    ['why?id=a&id=b', 'The parameter id is given twice; give it once.'],
    ['messages?state=apply', 'The parameter state is "apply", which must be failed or rejected or waiting.'],
    ['why?id=a&payload=yes', 'The parameter payload is "yes", which must be 1.'],
    ['why?id=a&__proto__=b', 'is not a parameter of why'],
  ])('%s is refused: %s', (request, message) => {
    expect(() => requested(request)).toThrow(message);
  });
});

test('a reading returns the document of the command, its exit code and the command to paste', async () => {
  const { mailroom, eventId } = await rejectedMailroom();
  const { get } = await runningUi({ mailroom });
  const reading = (await get(`/api/readings/why?id=${eventId}`)).json<Reading>();
  const { code, out } = await runInMemory(mailroom, ['why', eventId, '--json']);
  expect(code).toBe(1);
  expect(reading).toMatchObject({
    exitCode: 1,
    command: `npx cdk-mailroom why ${eventId} --stage dev`,
    document: JSON.parse(out),
    at: mailroom.clock.now(),
  });
});

test('a hostile row reaches the page as JSON that no browser renders', async () => {
  const { mailroom, eventId } = await rejectedMailroom();
  const { get } = await runningUi({ mailroom });
  for (const path of [
    `why?id=${eventId}`,
    'messages?state=rejected',
    'dlq',
    `dlq-show?source=consumer:worker&id=${eventId}`,
    'redrive-plan?source=consumer:worker',
    `discard-plan?source=consumer:worker&id=${eventId}`,
  ]) {
    const { status, headers, text, json } = await get(`/api/readings/${path}`);
    expect([status, headers['content-type']]).toEqual([200, 'application/json']);
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(json<Reading>().exitCode).toBeLessThan(2);
    // Control characters are escapes, as JSON demands.
    expect(text).not.toContain('\u001b');
  }
  const { text } = await get(`/api/readings/why?id=${eventId}`);
  expect(text).toContain('alert(1)');
});

test('the plans of a redrive and a discard are read without changing anything', async () => {
  const { mailroom, eventId } = await rejectedMailroom();
  const { get } = await runningUi({ mailroom });
  const redrive = (await get('/api/readings/redrive-plan?source=consumer:worker&limit=1000')).json<Reading>();
  expect(redrive.command).toBe('npx cdk-mailroom dlq redrive consumer:worker --limit 1000 --stage dev');
  expect(redrive.document).toMatchObject({ count: 1, applied: false, deadLetters: [{ eventId }] });
  const discard = (
    await get(`/api/readings/discard-plan?source=consumer:worker&id=${eventId}`)
  ).json<Reading>();
  expect(discard.document).toMatchObject({ applied: false, deadLetters: [{ eventId, outcome: 'discard' }] });
  const listed = (await get('/api/readings/dlq')).json<Reading>();
  expect(JSON.stringify(listed.document)).toContain(eventId);
});

test('payloads are read only if the command shows them', async () => {
  const { mailroom, eventId } = await rejectedMailroom();
  const hidden = await runningUi({ mailroom });
  const refused = await hidden.get(`/api/readings/why?id=${eventId}&payload=1`);
  expect([refused.status, refused.json().code]).toEqual([403, 'PAYLOADS_HIDDEN']);
  for (const path of [
    `why?id=${eventId}`,
    'dlq',
    `dlq-show?source=consumer:worker&id=${eventId}`,
    'redrive-plan?source=consumer:worker',
    'messages',
  ])
    expect((await hidden.get(`/api/readings/${path}`)).text).not.toContain('424242');
  const shown = await runningUi({ mailroom, showsPayloads: true });
  expect((await shown.get(`/api/readings/why?id=${eventId}`)).text).not.toContain('424242');
  expect((await shown.get(`/api/readings/why?id=${eventId}&payload=1`)).text).toContain('424242');
});

test.each([
  ['nothing?', 404, 'NOT_FOUND'],
  ['constructor?', 404, 'NOT_FOUND'],
  ['why?', 400, 'BAD_ARGUMENT'],
  ['why?id=--help', 400, 'BAD_ARGUMENT'],
  ['audit?since=1h&apply=1', 400, 'BAD_ARGUMENT'],
])('the reading %s is refused', async (path, status, code) => {
  const { get } = await runningUi();
  const response = await get(`/api/readings/${path}`);
  expect([response.status, response.json().code]).toEqual([status, code]);
});

test('a parameter that cannot be read is refused; what the command refuses is its own error and exit code', async () => {
  const { get } = await runningUi();
  const refused = await get('/api/readings/audit?since=never');
  expect([refused.status, refused.json().code]).toEqual([400, 'BAD_ARGUMENT']);
  expect(refused.json().message).toContain('The parameter since is "never", which is not valid.');
  const reading = (await get('/api/readings/why?id=order-1')).json<Reading>();
  expect(reading).toMatchObject({ exitCode: 3, document: null, error: { code: 'NO_SUCH_EVENT' } });
});

test('a reading that is requested several times at once runs once; a few run at once', async () => {
  const waiting: (() => void)[] = [];
  const started: string[] = [];
  const read = createReadings(
    memoryDeployment(mailroomInMemory([]), capturedIo().io, {}),
    new AbortController().signal,
  );
  const request = (id: string): ReadingRequest => ({
    words: ['why', id],
    run: async () => {
      started.push(id);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return reportOf({ id }, '', String) as never;
    },
  });
  const readings = ['a', 'a', 'a', 'b', 'c', 'd', 'e', 'f'].map((id) => read(request(id)));
  await expect.poll(() => waiting.length, { timeout: 60_000 }).toBe(4);
  let released = 0;
  while (released < 6) {
    await expect.poll(() => waiting.length, { timeout: 60_000 }).toBeGreaterThan(released);
    expect(waiting.length - released).toBeLessThanOrEqual(4);
    waiting[released]?.();
    released += 1;
  }
  for (const { error } of await Promise.all(readings)) expect(error).toBeNull();
  expect(started.sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  const again = read(request('a'));
  await expect.poll(() => waiting.length, { timeout: 60_000 }).toBe(7);
  waiting[6]?.();
  expect((await again).document).toEqual({ id: 'a' });
});

test('no error contains credentials or a stack', async () => {
  const leak =
    'The request signature does not match. x-amz-security-token:FwoGZXIvYXdzEXAMPLE//////////token x-id: ASIAIOSFODNN7EXAMPLE';
  const mailroom = mailroomInMemory([]);
  const failing = {
    ...mailroom,
    table: { ...mailroom.table, query: () => Promise.reject(new Error(leak)) },
  };
  const plans = {
    make: () => Promise.reject(new Error(leak)),
    apply: () => {
      throw new TypeError('x is not a function');
    },
    stop: () => {
      throw new Error(leak);
    },
    runs: () => [],
  };
  const { get, change } = await runningUi({ mailroom: failing, plans, allowsChanges: true });
  const responses = [
    await get('/api/readings/operations'),
    await change('/api/plans'),
    await change('/api/plans/x/apply'),
    await change('/api/runs/x/stop'),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 502, 500, 502]);
  expect(responses[0]?.text).toContain('signature does not match');
  for (const { text } of responses) {
    expect(text).not.toMatch(/FwoG|token x|ASIA/);
    expect(text).not.toMatch(/\.ts:\d|node_modules| at /);
  }
});

test('the page is told the Mailroom, its consumers and what it may do', async () => {
  const { get } = await runningUi({ allowsChanges: true });
  expect((await get('/api/mailroom')).json<MailroomInfo>()).toEqual({
    stack: 'mailroom-dev',
    region: 'eu-west-1',
    account: '111122223333',
    isLocal: false,
    allowsChanges: true,
    showsPayloads: false,
    consumers: [{ name: 'worker', events: ['ThingHappened of things'], forwardsTo: null }],
    sources: ['dead', 'stream', 'rule:worker', 'consumer:worker'],
    isDemo: false,
  });
});
