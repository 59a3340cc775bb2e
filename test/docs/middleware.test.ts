import { expect, test } from 'vitest';
import {
  type Around,
  createConsumer,
  defineEvent,
  leased,
  transactionalBatch,
} from '../../lambdas/runtime/index.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../testing/index.ts';
import { consumerConfig, rig, runThrough, Unparsed } from '../support/runtime-rig.ts';
import { codeOf } from './page-module.ts';

const page = 'docs/middleware.md';
const { inTenant, tenant } = await codeOf<{ inTenant: Around; tenant(): string | undefined }>(
  page,
  'src/tenants.ts',
);

const TenantEvent = defineEvent({ ...Unparsed, version: 1, upcast: undefined });
const drafts = [{ tenantId: 'a' }, { tenantId: 'b' }, {}].map((data, n) =>
  TenantEvent.create({ aggregateId: `thing-${n}`, data: data as never }),
);

test.each(['leased', 'batch'])(
  'the page: each message has the context of its tenant, and one without a tenant is rejected: %s',
  async (kind) => {
    const { clock, memory: table, queue, telemetry, outbox } = rig();
    const seen: unknown[] = [];
    const see = async () => void seen.push(tenant());
    const handler =
      kind === 'leased'
        ? leased(TenantEvent, see)
        : transactionalBatch(TenantEvent, () => see().then(() => ({})));
    const config = consumerConfig;
    const consume = createConsumer({
      config,
      table,
      queue,
      clock,
      telemetry,
      handlers: [handler],
      around: inTenant,
    });
    const events = await outbox.commit({ events: drafts });
    for (const detail of events) queue.send({ source: 'things', 'detail-type': detail.type, detail });
    await runThrough(clock, queue.deliver(consume, 10, lambdaContext({ clock })));
    expect(seen.toSorted()).toEqual(['a', 'b']);
    const rows = events.map(({ eventId }) => table.item(inboxKey('worker', eventId))?.status);
    expect(rows).toEqual(['PROCESSED', 'PROCESSED', 'REJECTED']);
  },
);
