import { describe, expect, test } from 'vitest';
import { auditRig, consumerEntry } from './audit-rig.ts';

const EVENTS = ['OrderPlaced', 'OrderPaid'].map((type) => ({ source: 'orders', type }));

describe('what is deployed', () => {
  const drifted = async (change: (rig: ReturnType<typeof auditRig>) => void) => {
    const rig = auditRig([consumerEntry('payments', { events: EVENTS })]);
    change(rig);
    return (await rig.run()).drift.map(({ problem }) => problem);
  };
  const rule = (rig: ReturnType<typeof auditRig>, change: object) => {
    const found = rig.rules.get('payments-rule');
    if (found !== undefined) rig.rules.set('payments-rule', { ...found, ...change });
  };

  test('has not drifted when it is what was declared, in any order', async () => {
    const pattern = '{"detail-type":["OrderPaid","OrderPlaced"],"source":["orders"]}';
    expect(await drifted((rig) => rule(rig, { pattern }))).toEqual([]);
  });

  test.each([
    ['takes other events', { pattern: '{"source":["orders"],"detail-type":["OrderPlaced"]}' }, 'pattern'],
    [
      'takes other sources',
      { pattern: '{"source":["order"],"detail-type":["OrderPlaced","OrderPaid"]}' },
      'pattern',
    ],
    [
      'looks into the events',
      { pattern: '{"source":["orders"],"detail-type":["OrderPlaced","OrderPaid"],"detail":{"type":["x"]}}' },
      'pattern',
    ],
    ['has no pattern', { pattern: '' }, 'pattern'],
    ['is disabled', { enabled: false }, 'rule-disabled'],
    ['hands over to others', { targets: ['arn:aws:sqs:eu-west-1:123456789012:other'] }, 'target'],
  ])('has drifted when a rule %s', async (_how, change, problem) => {
    expect(await drifted((rig) => rule(rig, change))).toEqual([problem]);
  });

  test('has drifted when its rule changes events on the way to its queue, and names the target without the change', async () => {
    const arn = 'arn:aws:sqs:eu-west-1:123456789012:payments-queue';
    const settings = { SqsParameters: { MessageGroupId: '$.detail.data.tenant' } };
    const targets = [{ id: 'Queue', arn, deadLetterQueue: undefined, input: 'InputPath', settings }];
    const rig = auditRig([consumerEntry('payments', { events: EVENTS })]);
    rule(rig, { targets });
    const [drift, ...others] = (await rig.run()).drift;
    expect(others).toEqual([]);
    expect(drift).toMatchObject({
      problem: 'target-input',
      targets: [{ Id: 'Queue', Arn: arn, ...settings }],
    });
    expect(drift?.text).toBe(
      'The rule payments-rule changes events (InputPath), so payments cannot read them.',
    );
  });

  test('has not drifted when another target of its rule changes events', async () => {
    const rig = auditRig([consumerEntry('payments', { events: EVENTS })]);
    const { targets = [] } = rig.rules.get('payments-rule') ?? {};
    const other = {
      id: 'Other',
      arn: 'arn:aws:sqs:eu-west-1:123456789012:other',
      deadLetterQueue: undefined,
    };
    rule(rig, { targets: [...targets, { ...other, input: 'Input' }] });
    expect((await rig.run()).drift).toEqual([]);
  });

  test('has drifted when rule or queue are not there', async () => {
    expect(await drifted((rig) => rig.rules.clear())).toEqual(['no-rule']);
    expect(await drifted((rig) => rig.queues.gone.add('payments-queue'))).toEqual(['no-queue']);
  });
});
