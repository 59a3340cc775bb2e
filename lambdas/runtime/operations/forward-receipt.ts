/** The result of a forwarded event, as its message's row stores it. */
export interface ForwardReceipt {
  /** The name of the target, e.g. `topic orders`. */
  readonly forwardedTo: string;
  /** Its place there, as the target names it: e.g. `{ partition: 3, offset: '812' }`. */
  readonly place: Readonly<Record<string, string | number>>;
  /** The target already had the event, and dropped this one. Absent: it did not say so. */
  readonly duplicate?: boolean | undefined;
}

/**
 * Describes the receipt in the stored result of a message: `delivered to topic orders, partition 3, offset 812`.
 *
 * @param result - the row's `result`, as JSON
 * @returns `undefined` if it is not a receipt
 */
export function receiptText(result: string | undefined): string | undefined {
  const { forwardedTo, place, duplicate } = parsed(result);
  if (typeof forwardedTo !== 'string' || typeof place !== 'object' || place === null) return undefined;
  const parts = Object.entries(place).map(([name, value]) => `${name} ${value}`);
  const had = duplicate === true ? ['which already had it'] : [];
  return [`delivered to ${forwardedTo}`, ...parts, ...had].join(', ');
}

function parsed(result: string | undefined): Partial<ForwardReceipt> {
  try {
    return Object(JSON.parse(result ?? 'null'));
  } catch {
    return {};
  }
}
