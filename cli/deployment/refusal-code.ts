import type { QueueMessage } from '../../lambdas/runtime/operations/queues.ts';

/** The codes with which EventBridge cannot send to a queue, whatever the event: only a change of the queue or its policy helps. */
const CLOSED = /^NO_(PERMISSIONS|RESOURCE)$/;

/** EventBridge's error code of an event that it could not deliver, e.g. `NO_PERMISSIONS`; `undefined` if the message has none. */
export function refusalCode(received: Pick<QueueMessage, 'attributes'> | undefined): string | undefined {
  return received?.attributes.ERROR_CODE;
}

/** True for the code of a queue that EventBridge may not send to, or that does not exist. */
export function isClosed(code = ''): boolean {
  return CLOSED.test(code);
}
