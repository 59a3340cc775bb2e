import { deadLetterQueues, peekDeadLetters } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { eachOf } from '../../deployment/rows-reader.ts';

/** The form of SQS's message ids. */
const MESSAGE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The most dead letters of one source that are read. */
const READ_MAX = 300;

/** Dead letters reappear after this many seconds if showing them again fails. */
const PEEK_HIDES_S = 15;

/** A dead letter that was found by an id. */
export interface NamedDeadLetter {
  /** Its source, e.g. `consumer:payments`. */
  readonly source: string;
  readonly eventId: string | undefined;
  /** SQS's message id. */
  readonly messageId: string;
  /** The id by which `why` finds its event: without a readable event id, that of its inbox row. */
  readonly traceId: string;
}

/**
 * Finds a dead letter by SQS's message id, or by the aggregate or correlation id of its event, whose outbox row may have expired.
 * Texts of another form than a message id are not searched for.
 */
export async function findDeadLetter(
  { directory, queues }: { readonly directory: Directory; readonly queues: Queues },
  messageId: string,
): Promise<NamedDeadLetter | undefined> {
  if (!MESSAGE_ID.test(messageId)) return undefined;
  const found = await eachOf(deadLetterQueues(directory), async (source) => {
    const { deadLetters } = await peekDeadLetters(queues, source, { limit: READ_MAX, hideS: PEEK_HIDES_S });
    return deadLetters
      .filter(
        ({ received }) =>
          received.messageId.toLowerCase() === messageId.toLowerCase() || holds(received.body, messageId),
      )
      .map(({ eventId, received }) => ({
        source: source.name,
        eventId,
        messageId: received.messageId,
        traceId: eventId ?? unreadableId(received.messageId),
      }));
  });
  return found.flat()[0];
}

/** True if the body is an event with the id as its aggregate or correlation id. */
function holds(body: string, id: string): boolean {
  try {
    const { detail } = Object(JSON.parse(body)) as { readonly detail?: unknown };
    const { aggregateId, correlationId } = Object(detail) as Readonly<Record<string, unknown>>;
    return aggregateId === id || correlationId === id;
  } catch {
    return false; // no JSON, so no event
  }
}
