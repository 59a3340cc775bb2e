import { Tags } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { DOCUMENTATION_URL } from '../../lambdas/runtime/base/documentation.ts';

/**
 * Tag with the name of a shared bus, on roles that publish there: the bus denies roles without it every event. It allows nothing more: each
 * Mailroom on the bus also denies its services to roles that it does not name.
 */
export const PUBLISHER_TAG = 'mailroom:publisher';

/** Tag with the bus's name, on the role of a forward to it: no Mailroom there denies it its sources, but the bus denies it all events unless its owner accepted it. */
export const FORWARD_TAG = 'mailroom:forward';

/** Tags every resource below a construct. A value may hold letters, digits, spaces and `_ . : / = + - @`. */
export function tag(construct: IConstruct, tags: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(tags)) Tags.of(construct).add(key, value);
}

/** The address of docs/operating.md, which alarms link to by default. */
export const RUNBOOK_URL = `${DOCUMENTATION_URL}/operating.md`;
