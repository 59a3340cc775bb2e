/** The code of an event that a target does not accept: a retry would be refused again. */
export const TARGET_REFUSES = 'BRIDGE_REJECTED';

/** The result of a forwarded event, as its message's row stores it. */
export interface BridgeReceipt {
  /** The name of the target, e.g. `topic orders`. */
  readonly forwardedTo: string;
  /** Its place there, as the target names it: e.g. `{ partition: 3, offset: '812' }`. */
  readonly place: Readonly<Record<string, string | number>>;
  /** The target already had the event, and dropped this one. Absent: it did not say so. */
  readonly duplicate?: boolean | undefined;
  /** It was a duplicate although this was the first attempt to send it: another bridge of the same name has sent it. */
  readonly neverSent?: boolean | undefined;
}

/**
 * Returns the warning about a handler's result that is a receipt of an event which this bridge had never sent, and of which its target stored
 * nothing now.
 */
export function receiptWarning(result: unknown): string | undefined {
  const { forwardedTo, neverSent } = Object(result) as Partial<BridgeReceipt>;
  if (neverSent !== true) return undefined;
  return `${forwardedTo} already had the event, although this is the first attempt to send it: does another bridge of this name send there?`;
}

/**
 * Describes the receipt in the stored result of a message: `delivered to topic orders, partition 3, offset 812`.
 *
 * @param result - the row's `result`, as JSON
 * @returns `undefined` if it is not a receipt
 */
export function receiptText(result: string | undefined): string | undefined {
  const { forwardedTo, place, duplicate, neverSent } = parsed(result);
  if (typeof forwardedTo !== 'string' || typeof place !== 'object' || place === null) return undefined;
  const parts = Object.entries(place).map(([name, value]) => `${name} ${value}`);
  const first = neverSent === true ? ', although this was the first attempt' : '';
  const had = duplicate === true ? [`which already had it${first}`] : [];
  return [`delivered to ${forwardedTo}`, ...parts, ...had].join(', ');
}

function parsed(result: string | undefined): Partial<BridgeReceipt> {
  try {
    return Object(JSON.parse(result ?? 'null'));
  } catch {
    return {};
  }
}
