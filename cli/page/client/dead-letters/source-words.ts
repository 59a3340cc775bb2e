/**
 * The contents of a dead-letter source in a sentence.
 *
 * @param source - `dead`, `stream`, `rule:<consumer>` or `consumer:<consumer>`
 */
export function sourceWords(source: string): string {
  const [kind, consumer = ''] = source.split(':');
  switch (kind) {
    case 'dead':
      return 'Events in the outbox that EventBridge refused, or whose attempts are exhausted. Kept until you decide.';
    case 'stream':
      return 'Notices of stream batches that the stream relay could not publish. The sweep publishes their events.';
    case 'rule':
      return `Events that EventBridge could not deliver to the queue of ${consumer}.`;
    default:
      return `Messages that ${consumer} could not process.`;
  }
}

/** The consumer of a source; `null` for `dead` and `stream`. */
export function consumerOf(source: string): string | null {
  return source.split(':')[1] ?? null;
}
