import { test } from 'vitest';
import { leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../lambdas/runtime/event.ts';
import { inboxKey } from '../../../lambdas/runtime/rows.ts';
import { lambdaContext } from '../../../lambdas/runtime/testing.ts';
import type { Table } from '../../../lambdas/runtime/table.ts';
import { bench, ThingHappened, runThrough } from '../../support/runtime-bench.ts';
import { consumer, domainRow, inboxRow, mortal, type Parts, send, CONSUMER } from './consumer-rig.ts';

const named = (name: string) => Object.assign(new Error('of AWS'), { name });
function patched(parts: Parts, patch: Partial<Record<keyof Table, (call: any) => any>>): Table {
  return new Proxy(parts.memory, {
    get: (target, name) => {
      const call = Reflect.get(target, name) as any;
      const p = (patch as any)[name];
      return p ? p(call) : call;
    },
  });
}
const D = { maxAttempts: 10, visibilityTimeoutMs: 180_000 };
/** as drain, but a function stops at 30 s: whole batch fails */
async function drainKill(parts: Parts, handlers: any, table: Table, change: any, rounds = 200, until = Infinity, timeoutMs = 30_000) {
  const { queue, clock } = parts;
  let n = 0;
  for (; n < rounds && queue.messages().length > 0 && clock.now() < until; n += 1) {
    const { handle } = consumer(parts, handlers, table, change);
    const h = (e: any, c: any) => Promise.race([handle(e, c), clock.sleep(timeoutMs).then(() => { throw new Error('stopped'); })]);
    await runThrough(clock, queue.deliver(h as any, 10, lambdaContext({ clock, timeoutMs })));
    const next = Math.min(...queue.messages().map((m) => m.visibleAt));
    if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
  }
  return n;
}
const show = (parts: Parts, e: any, t0: number) => {
  const r: any = inboxRow(parts, e);
  return { min: Math.round((parts.clock.now() - t0) / 60000), row: r && { status: r.status, attempts: r.attempts, unfinished: r.unfinished, reason: r.reason, lastError: r.lastError }, dead: parts.queue.deadLetters().length, waiting: parts.queue.messages().map((m) => m.receiveCount) };
};

test('A transact hangs (SDK time-outs) for 4 h', async () => {
  for (const kind of ['commit', 'once', 'transactional']) {
    const parts = bench({ maxReceiveCount: 105 });
    const t0 = parts.clock.now();
    const e = send(parts);
    const table = patched(parts, {
      transact: (call) => async (...a: any[]) => {
        if (parts.clock.now() - t0 > 4 * 3_600_000) return call(...a);
        await parts.clock.sleep(15_300); // 3 tries of 5 s
        if (!JSON.stringify(a).includes('REJECTED')) throw named('TimeoutError');
        return call(...a);
      },
    });
    const handler = kind === 'commit' ? leased(ThingHappened, async (_e, ctx) => ctx.commit({ writes: [domainRow] }))
      : kind === 'once' ? leased(ThingHappened, async (_e, ctx) => { await ctx.once('x', async () => 1); })
      : transactional(ThingHappened, async () => ({ writes: [domainRow] }));
    const n = await drainKill(parts, [handler], table, D);
    console.log('A', kind, n, JSON.stringify(show(parts, e, t0)), 'TableFailures', parts.telemetry.counted('TableFailures'));
  }
});

test('C reads fail, writes work', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  let down = false;
  const es = [send(parts), send(parts)];
  let deaths = 0;
  const { deliver } = mortal(parts, ({ kill }) => [leased(ThingHappened, async () => { if (deaths < 2) { deaths += 1; await kill(); } })], D);
  await deliver();
  await parts.clock.advance(60_000);
  deaths = 1;
  await deliver();
  console.log('C before', JSON.stringify(es.map((e) => show(parts, e, t0))));
  await parts.clock.advance(60_000);
  const t1 = parts.clock.now();
  const table = patched(parts, { get: () => () => Promise.reject(named('ProvisionedThroughputExceededException')) });
  let ran = 0;
  const n = await drainKill(parts, [leased(ThingHappened, async () => { ran += 1; })], table, D);
  console.log('C', n, 'ran', ran, 's', (parts.clock.now() - t1) / 1000, JSON.stringify(es.map((e) => show(parts, e, t0))));
});

test('E transactional maxAttempts 1 out of time', async () => {
  for (const kind of ['transactional', 'leased']) {
    const parts = bench({ maxReceiveCount: 105 });
    const t0 = parts.clock.now();
    const e = send(parts);
    let slow = true;
    const work = async () => { const s = slow; slow = false; await parts.clock.sleep(s ? 40_000 : 1_000); };
    const h = kind === 'transactional' ? transactional(ThingHappened, async () => { await work(); return { writes: [domainRow] }; }) : leased(ThingHappened, work);
    await drainKill(parts, [h], parts.table, { ...D, maxAttempts: 1 });
    console.log('E', kind, JSON.stringify(show(parts, e, t0)));
  }
});

test('F missing fence', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  const e = send(parts);
  await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, e.eventId), schema: 1, status: 'PROCESSING', attempts: 1, leaseUntil: t0 - 1, endsBy: t0 - 1 } } });
  const n = await drainKill(parts, [leased(ThingHappened, async () => {})], parts.table, D);
  console.log('F', n, JSON.stringify(show(parts, e, t0)));
});

test('G NO_TIME_LEFT loop', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  const es = [send(parts), send(parts)];
  const slow = (call: any) => async (...a: any[]) => { await parts.clock.sleep(1_200); return call(...a); };
  const table = patched(parts, { get: slow, write: slow, transact: slow });
  parts.queue.receive(); // a first receive that was lost
  await parts.clock.advance(60_000);
  const n = await drainKill(parts, [leased(ThingHappened, async () => {})], table, D, 200, Infinity, 3_000);
  console.log('G', n, JSON.stringify(es.map((e) => show(parts, e, t0))));
});

test('H release cannot be written', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  const e = send(parts);
  const up = t0 + 4 * 3_600_000;
  const table = patched(parts, {
    transact: (call) => async (...a: any[]) => { if (parts.clock.now() < up && !JSON.stringify(a).includes('REJECTED')) throw named('ThrottlingException'); return call(...a); },
    write: (call) => async (...a: any[]) => { if (parts.clock.now() < up && JSON.stringify(a).includes(':FAILED, retryAt')) throw named('ThrottlingException'); return call(...a); },
  });
  const n = await drainKill(parts, [leased(ThingHappened, async (_e, ctx) => ctx.commit({ writes: [domainRow] }))], table, D);
  console.log('H', n, JSON.stringify(show(parts, e, t0)));
});

test('H2 complete cannot be written', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  const e = send(parts);
  const up = t0 + 4 * 3_600_000;
  const table = patched(parts, {
    write: (call) => async (...a: any[]) => { if (parts.clock.now() < up && JSON.stringify(a).includes(':PROCESSED')) throw named('ThrottlingException'); return call(...a); },
  });
  const n = await drainKill(parts, [leased(ThingHappened, async () => {})], table, D);
  console.log('H2', n, JSON.stringify(show(parts, e, t0)));
});

test('I redrive put back at its first receive', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  // a suspect in the queue
  const suspect = send(parts, { aggregateId: 'suspect' });
  await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, suspect.eventId), schema: 1, status: 'FAILED', fence: 'f', attempts: 1, unfinished: 2 } } });
  parts.queue.receive();
  await parts.clock.advance(60_000);
  // a dead letter that was never rejected, redriven
  const letter = send(parts, { aggregateId: 'letter' });
  await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, letter.eventId), schema: 1, status: 'PROCESSING', fence: 'f', attempts: 10, unfinished: 5, leaseUntil: t0 - 1, endsBy: t0 - 1, lastError: 'died' } } });
  let ran = 0;
  const n = await drainKill(parts, [leased(ThingHappened, async (ev: any) => { if (ev.aggregateId === 'letter') ran += 1; })], parts.table, D, 20);
  console.log('I', n, 'ran', ran, JSON.stringify(show(parts, letter, t0)));
});

test('J killer before its claim', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  let die: undefined | (() => Promise<never>);
  const schema = { '~standard': { version: 1, vendor: 'x', validate: async (v: any) => { if (v.n === 666) await die?.(); return { value: v }; } } };
  const Ev = defineEvent({ type: 'ThingHappened', version: 2, aggregateType: 'Thing', schema: schema as any, upcast: (d: any) => d });
  const killer = send(parts, { data: { n: 666 } } as any);
  let others: any[] = [];
  const { drain } = mortal(parts, ({ kill }) => { die = kill; return [leased(Ev as any, async () => {})]; }, D);
  let batches = 0;
  const n = await drain(400, 10, () => { batches += 1; if (others.length < 200) { others.push(send(parts)); } });
  console.log('J', n, JSON.stringify(show(parts, killer, t0)), 'others', others.filter((o) => (inboxRow(parts, o) as any)?.status === 'PROCESSED').length, others.length);
});

test('K slow calls rob a lone attempt', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const t0 = parts.clock.now();
  const e = send(parts);
  const up = t0 + 4 * 3_600_000;
  const slow = (call: any) => async (...a: any[]) => { if (parts.clock.now() < up) await parts.clock.sleep(8_000); return call(...a); };
  const table = patched(parts, { get: slow, write: slow, transact: slow });
  const n = await drainKill(parts, [leased(ThingHappened, async () => { await parts.clock.sleep(22_000); })], table, D);
  console.log('K', n, JSON.stringify(show(parts, e, t0)));
});

test('L outOfTime stays after a release', async () => {
  const parts = bench({ maxReceiveCount: 105 });
  const e = send(parts);
  const table = patched(parts, { transact: (call) => async (...a: any[]) => { throw named('ThrottlingException'); } });
  await drainKill(parts, [leased(ThingHappened, async (_e, ctx) => { await ctx.once('a', async () => 1).catch(() => {}); await new Promise((_r, rej) => ctx.signal.addEventListener('abort', () => setImmediate(() => setImmediate(() => rej(new Error('x')))))); })], table, D, 1);
  console.log('L', JSON.stringify(inboxRow(parts, e)));
});
