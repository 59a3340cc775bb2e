import { Tags } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** Names the Mailroom, by its path in the app, on every resource that belongs to one. Its queues refuse messages from a role that has it. */
export const MAILROOM_TAG = 'mailroom';

/** Names the service, on every resource of a producer or a consumer. */
export const SERVICE_TAG = 'mailroom:service';

/** Names the consumer, on every resource that belongs to one. */
export const CONSUMER_TAG = 'mailroom:consumer';

/** Tags every resource below a construct. A value may hold letters, digits, spaces and `_ . : / = + - @`. */
export function tag(construct: IConstruct, tags: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(tags)) Tags.of(construct).add(key, value);
}
