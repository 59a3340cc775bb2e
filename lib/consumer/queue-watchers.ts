import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { addToPolicyOf } from '../checks/granted.ts';
import type { QueueWatchers } from '../mailroom/mailroom-base.ts';

/**
 * Lets the Mailroom's sweep look at the dead-letter queues of a consumer, and audits also at the length of the source queue. The queues'
 * own policies grant it, because the roles cannot name queues of stacks that are deployed after their own.
 *
 * @param source - for audits @default they do not look
 */
export function letWatch(
  { sweep, audit, others }: QueueWatchers,
  dead: readonly Queue[],
  source?: Queue,
): void {
  const look = (queue: Queue, sid: string, watcher: QueueWatchers['sweep'], actions: readonly string[]) =>
    addToPolicyOf(
      queue,
      queue,
      queue.queueArn,
      'Mailroom cannot see its dead letters',
      new PolicyStatement({
        sid,
        principals: [watcher],
        actions: actions.map((action) => `sqs:${action}`),
        resources: [queue.queueArn],
      }),
    );
  const audits = source && { TheAuditLooks: audit, AuditsOnTheBusLook: others?.(source) };
  for (const [sid, watcher] of Object.entries(audits ?? {})) {
    if (watcher === undefined || source === undefined) continue;
    look(source, sid, watcher, ['GetQueueAttributes']);
    for (const queue of dead)
      look(queue, sid, watcher, ['GetQueueAttributes', 'ReceiveMessage', 'ChangeMessageVisibility']);
  }
  for (const queue of dead)
    look(queue, 'TheSweepLooksAtDeadLetters', sweep, ['GetQueueAttributes', 'ReceiveMessage']);
}
