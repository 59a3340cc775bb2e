import { isMailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import { isObject, jsonObject } from '../../../../lambdas/runtime/base/json.ts';
import { exactJson, lossyNumberText } from '../../../terminal/exact-json.ts';

/** The data of an event in the body of a dead letter. */
type StoredData =
  | { readonly is: 'data'; readonly data: unknown }
  | { readonly is: 'none'; readonly why: string };

/** Edited JSON: its value, or what is wrong with it. */
export type EditedData =
  | { readonly is: 'data'; readonly data: unknown }
  | { readonly is: 'wrong'; readonly problem: string };

/**
 * The data of the event in a dead letter's body, which is the message as EventBridge delivered it.
 *
 * @example
 * ```ts
 * storedData('{"detail":{"eventId":"01a1…","data":{"orderId":"42"}}}'); // { is: 'data', data: { orderId: '42' } }
 * ```
 */
export function storedData(body: string): StoredData {
  const why = lossyNumberText(body);
  if (why !== undefined) return { is: 'none', why };
  const detail = jsonObject(body)?.detail;
  const { eventId, data, payload } = isObject(detail) ? detail : {};
  if (typeof eventId === 'string' && data !== undefined) return { is: 'data', data };
  if (typeof eventId === 'string' && isObject(payload))
    return {
      is: 'none',
      why: 'Its payload is in S3. To send other data, pass the whole of it to `dlq resend` in a file.',
    };
  return { is: 'none', why: 'Its body is not an event of Mailroom, so it has no data to edit.' };
}

/**
 * Reads edited JSON.
 *
 * @example
 * ```ts
 * editedData('{"total": 10'); // { is: 'wrong', problem: 'Not JSON: …' }
 * ```
 */
export function editedData(text: string): EditedData {
  try {
    return { is: 'data', data: exactJson(text) };
  } catch (error) {
    if (isMailroomError(error)) return { is: 'wrong', problem: error.message };
    return { is: 'wrong', problem: `Not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
