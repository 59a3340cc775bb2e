import { expect, test } from 'vitest';
import { makeRepair, planAuditRepair, shownRepair } from '../../../cli/changes/repair/audit-repair.ts';
import { plannedChange } from '../../../cli/page/server/planned-change.ts';
import { repairJson } from '../../../cli/reports/audit/repair-text.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { withStored } from '../../support/with-stored.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;
const request = { kind: 'repair', since: '1h' } as const;

test('a repair that is bound to a plan sends exactly its events: none that became missing later, and none that arrived', async () => {
  const rig = auditRig([consumerEntry('payments')]);
  const [first, second] = [await rig.event(LONG_AGO), await rig.event(LONG_AGO)];
  const deployment = {
    ...rig.deps,
    clockIsTrusted: true,
    region: 'eu-west-1',
    operator: async () => 'arn:aws:sts::111122223333:assumed-role/ops/ada',
  };
  const plan = await shownRepair(
    withStored(deployment),
    await planAuditRepair(withStored(deployment), await rig.run()),
  );
  const change = plannedChange(deployment, request, {
    kind: 'repair',
    document: { repair: repairJson(plan) } as never,
  });
  expect(change).toMatchObject({ confirmation: '2', terminal: ['audit', '--since', '70m', '--repair'] });

  await rig.inbox('payments', second.eventId);
  const third = await rig.event(LONG_AGO);
  const report = await rig.run();
  expect(report.missing.map(({ eventId }) => eventId)).toContain(third.eventId);
  const sending = await planAuditRepair(withStored(deployment), report, change.planned);
  const applied = await makeRepair(withStored(deployment), sending, 'the rule had drifted');
  expect(repairJson(applied).events).toEqual([
    { eventId: first.eventId, consumer: 'payments', outcome: 'sent', why: null },
    {
      eventId: second.eventId,
      consumer: 'payments',
      outcome: 'unsent',
      why: 'the audit no longer finds it missing',
    },
  ]);
  expect(rig.queues.sent).toHaveLength(1);
});
