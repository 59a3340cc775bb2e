import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBusJournal } from './bus-journal.ts';
import { type Answer, type Call, type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { answerWhen, cut, forwardWhen, killAfter, killBefore, refuse, refuseEntries } from './faults.ts';

interface Body {
  readonly Entries?: readonly { readonly Detail: string }[];
}

let engine: Server;
let heard: { readonly path: string | undefined; readonly body: Body }[];
let answered: [Call, Answer][];
let proxy: FaultProxy;

/** An engine that takes every entry and answers with its number. */
beforeEach(async () => {
  heard = [];
  answered = [];
  engine = createServer(async (incoming, outgoing) => {
    const body = (await json(incoming)) as Body;
    heard.push({ path: incoming.url, body });
    const Entries = (body.Entries ?? []).map((_, i) => ({ EventId: `taken-${i}` }));
    outgoing.setHeader('content-type', 'application/json');
    outgoing.end(JSON.stringify({ FailedEntryCount: 0, Entries }));
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const { port } = engine.address() as AddressInfo;
  proxy = await startFaultProxy({
    endpoint: `http://127.0.0.1:${port}`,
    onAnswered: (call, answer) => void answered.push([call, answer]),
  });
});

afterEach(async () => {
  await proxy.close();
  engine.closeAllConnections();
  await new Promise((resolve) => engine.close(resolve));
});

function events(...ids: string[]): Body {
  return { Entries: ids.map((eventId) => ({ Detail: JSON.stringify({ eventId }) })) };
}

async function call(body: Body, { from = 'relay', pid = 4711, action = 'PutEvents' } = {}) {
  const response = await fetch(`${proxy.urlFor(from)}${pid}/`, {
    method: 'POST',
    headers: { 'x-amz-target': `AWSEvents.${action}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe('the fault proxy', () => {
  it('changes nothing without a fault, and identifies the caller', async () => {
    expect(await call(events('a'))).toEqual({
      status: 200,
      body: { FailedEntryCount: 0, Entries: [{ EventId: 'taken-0' }] },
    });
    expect(heard).toEqual([{ path: '/', body: events('a') }]);
    expect(answered[0]?.[0]).toEqual({ from: 'relay', pid: 4711, action: 'PutEvents', body: events('a') });
  });

  it('meets only the calls that match, and no more of them than it may', async () => {
    const fault = proxy.inject(
      { from: 'relay', action: 'PutEvents', times: 1 },
      refuse({ status: 500, code: 'InternalFailure' }),
    );
    expect((await call(events('a'), { from: 'sweep' })).status).toBe(200);
    expect((await call(events('a'), { action: 'GetItem' })).status).toBe(200);
    expect(await call(events('a'))).toMatchObject({ status: 500, body: { __type: 'InternalFailure' } });
    expect((await call(events('a'))).status).toBe(200);
    expect(fault.hits).toBe(1);
    expect(heard).toHaveLength(3);
  });

  it('lets the newest fault have a call, and the one before it when that is removed', async () => {
    proxy.inject({}, refuse({ status: 500, code: 'Older' }));
    const newer = proxy.inject({}, refuse({ status: 400, code: 'Newer' }));
    expect((await call(events('a'))).body.__type).toBe('Newer');
    newer.remove();
    newer.remove();
    expect((await call(events('a'))).body.__type).toBe('Older');
    proxy.clear();
    expect((await call(events('a'))).status).toBe(200);
  });

  it('refuses an entry and forwards the others, and the response lists them in order', async () => {
    proxy.inject(
      {},
      refuseEntries('MalformedDetail', ({ Detail = '' }) => Detail.includes('bad')),
    );
    expect((await call(events('a', 'bad', 'b'))).body).toMatchObject({
      FailedEntryCount: 1,
      Entries: [{ EventId: 'taken-0' }, { ErrorCode: 'MalformedDetail' }, { EventId: 'taken-1' }],
    });
    expect(heard).toEqual([{ path: '/', body: events('a', 'b') }]);
  });

  it('cuts a call off before it reaches the engine', async () => {
    proxy.inject({}, cut);
    await expect(call(events('a'))).rejects.toThrow();
    expect(heard).toEqual([]);
  });

  it.each([
    ['the answer', answerWhen, 1],
    ['the call', forwardWhen, 0],
  ])('keeps %s back until it may go on', async (_, keepsBack, reached) => {
    let looks = 0;
    const mayGoOn = () => {
      looks += 1;
      if (looks < 3) expect(heard).toHaveLength(reached);
      return looks === 3;
    };
    proxy.inject({}, keepsBack(mayGoOn));
    expect((await call(events('a'))).status).toBe(200);
    expect(looks).toBe(3);
    expect(heard).toHaveLength(1);
  });

  it.each([
    ['before the engine hears of the call', killBefore, 0],
    ['when the engine has done what the call asked for', killAfter, 1],
  ])('kills the caller %s, without an answer', async (_, kills, reached) => {
    const killed: [number, number][] = [];
    proxy.inject(
      {},
      kills(async (pid) => void killed.push([pid, heard.length])),
    );
    await expect(call(events('a'), { pid: 42 })).rejects.toThrow();
    expect(killed).toEqual([[42, reached]]);
    expect(heard).toHaveLength(reached);
  });
});

describe('the journal of the bus', () => {
  it('counts entries that the bus accepted, even if the publisher got no answer', async () => {
    proxy.inject(
      { times: 1 },
      killAfter(async () => {}),
    );
    await call(events('a', 'b')).catch(() => {});
    await call(events('a'));
    await call(events('c'), { action: 'PutItem' });

    const journal = createBusJournal();
    for (const [made, answer] of answered) journal.note(made, answer);
    expect(['a', 'b', 'c'].map((id) => journal.timesPublished(id))).toEqual([2, 1, 0]);
  });
});
