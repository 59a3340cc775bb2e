import { errorCode } from './errors.ts';

interface Wrapped {
  readonly type?: unknown;
  readonly cause?: unknown;
}

/** An error of the protocol is wrapped at most this often, e.g. once the retries of `kafkajs` are exhausted. */
const DEPTH_MAX = 5;

/** The type of the innermost error of Kafka's protocol, e.g. `REBALANCE_IN_PROGRESS`; without one, the code of the error. */
export function kafkaErrorType(error: unknown): string {
  let type = errorCode(error);
  let inner = error as Wrapped | null | undefined;
  for (let depth = 0; inner && depth < DEPTH_MAX; depth += 1) {
    if (typeof inner.type === 'string') type = inner.type;
    inner = inner.cause as Wrapped | null | undefined;
  }
  return type;
}
