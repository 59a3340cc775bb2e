import { DescribeRuleCommand, DisableRuleCommand, EnableRuleCommand } from '@aws-sdk/client-eventbridge';
import type { DeployedSystem } from '../deployed-system.ts';
import { passed, type VerifyCheck } from './check.ts';

const CUSTOMERS = 'verify-rule';

/** EventBridge may match events for a while after a rule was disabled. */
const TRIES = 20;

/** The part of `audit --json` that is read. */
interface Audited {
  readonly repair: {
    readonly events: readonly { readonly eventId: string; readonly outcome: string }[];
  } | null;
}

/** A consumer whose rule is disabled: EventBridge drops what it misses, and only the audit finds it. */
export const ruleCheck: VerifyCheck = {
  name: "a consumer's rule is off: the audit finds the lost event, and its repair delivers it once",
  run: async (system) => {
    const { events, consumer, directory, until, confirmed } = system;
    const rule = { Name: consumer('notifications').rule, EventBusName: directory.mailroom.bus };
    const setRule = async (state: 'ENABLED' | 'DISABLED'): Promise<void> => {
      const command = state === 'ENABLED' ? new EnableRuleCommand(rule) : new DisableRuleCommand(rule);
      await events.send(command);
      await until(`the rule is ${state}`, async () => {
        const { State } = await events.send(new DescribeRuleCommand(rule));
        return State === state;
      });
    };
    await setRule('DISABLED');
    let lost: Lost;
    try {
      lost = await loseOne(system);
    } finally {
      await setRule('ENABLED');
    }
    await repair(system, lost.eventId);
    await confirmed(CUSTOMERS, [lost.orderId]);
    return passed(`event ${lost.eventId} was sent again to notifications alone`);
  },
};

/** An order whose payment notifications never received. */
interface Lost {
  readonly orderId: string;
  readonly eventId: string;
}

/** Looks at empty queues before an event counts as lost: SQS counts messages approximately. */
const LOOKS = 5;

/** Places orders until an event is processed by the other consumer of its type, and the queues are empty without it. */
async function loseOne(system: DeployedSystem): Promise<Lost> {
  for (let n = 0; n < TRIES; n += 1) {
    const orderId = await system.placeOrder(CUSTOMERS);
    let empty = 0;
    const { eventId, received } = await system.until(`order-status processes order ${orderId}`, async () => {
      const { events, inbox, queued } = await system.read(CUSTOMERS);
      const payment = events.find(({ envelope: { type, data } }) => {
        return type === 'PaymentCaptured' && (data as { readonly orderId: string }).orderId === orderId;
      });
      const eventId = payment?.envelope.eventId ?? '';
      const received = inbox.notifications.has(eventId);
      if (inbox['order-status'].get(eventId)?.status === 'PROCESSED' && queued === 0) empty += 1;
      return (received || empty >= LOOKS) && { eventId, received };
    });
    if (!received) return { orderId, eventId };
  }
  throw new Error(`Notifications received ${TRIES} events although its rule is off`);
}

/** Audits until the event counts as missing and is sent again. */
async function repair({ mailroom, until }: DeployedSystem, eventId: string): Promise<void> {
  await until(`mailroom audit --repair --apply sends event ${eventId}`, async () => {
    const range = ['--since', '1h', '--grace', '1s'];
    const reason = ['--reason', 'its rule was disabled'];
    const { out } = await mailroom('audit', ...range, '--repair', '--apply', ...reason, '--json');
    const { repair } = JSON.parse(out) as Audited;
    return repair?.events.some((event) => event.eventId === eventId && event.outcome === 'sent');
  });
}
