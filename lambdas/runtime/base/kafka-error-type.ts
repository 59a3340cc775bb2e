import { errorCode } from './errors.ts';

interface Wrapped {
  readonly type?: unknown;
  readonly cause?: unknown;
}

/** An error is wrapped at most this often, e.g. once the retries of `kafkajs` are exhausted. */
const DEPTH_MAX = 5;

/** The innermost type of Kafka's protocol in an error and its causes, e.g. `REBALANCE_IN_PROGRESS`; undefined if the broker did not answer. */
export function kafkaAnswerType(error: unknown): string | undefined {
  return causesOf(error)
    .map(({ type }) => type)
    .findLast((type) => typeof type === 'string');
}

/** The type of Kafka's protocol, or else the code of the innermost cause. */
export function kafkaErrorType(error: unknown): string {
  return kafkaAnswerType(error) ?? errorCode(causesOf(error).at(-1) ?? error);
}

function causesOf(error: unknown): Wrapped[] {
  const causes: Wrapped[] = [];
  for (let inner = error as Wrapped | null | undefined; inner && causes.length < DEPTH_MAX; ) {
    causes.push(inner);
    inner = inner.cause as Wrapped | null | undefined;
  }
  return causes;
}
