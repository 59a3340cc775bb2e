import type { Context } from 'aws-lambda';
import { type HttpAnswer, httpProblem } from '../../runtime/http.ts';
import { type OrderRequest, orderRequest } from '../events.ts';
import { callerOf, HttpError, type HttpRequest, jsonBody } from './http.ts';
import { isOrderId, orderJson } from './order.ts';
import type { OrderRecords } from './order-records.ts';
import type { PlaceOrder } from './place-order.ts';

/** Dependencies of {@link createOrdersApi}. */
export interface OrdersApiDeps {
  readonly placeOrder: PlaceOrder;
  readonly orders: Pick<OrderRecords, 'find'>;
  /** The longest time to pay that a request may ask for, seconds. */
  readonly payWithinSeconds: number;
  /** Called for every internal failure. */
  readonly onError: (message: string, error: Error) => void;
}

/**
 * The HTTP API of the orders service: `POST /orders` and `GET /orders/{id}`.
 *
 * @example
 * ```ts
 * export const handler = createOrdersApi({ placeOrder, orders, payWithinSeconds: 1_800, onError });
 * ```
 */
export function createOrdersApi(deps: OrdersApiDeps) {
  return async (request: HttpRequest, context: Context): Promise<HttpAnswer> => {
    try {
      return await route(deps, request, context);
    } catch (error) {
      if (error instanceof HttpError) return error.answer;
      deps.onError('The request failed', error instanceof Error ? error : new Error(String(error)));
      const message = 'The request failed; send it again with the same Idempotency-Key.';
      return httpProblem(500, { code: 'INTERNAL', message });
    }
  };
}

async function route(deps: OrdersApiDeps, request: HttpRequest, context: Context): Promise<HttpAnswer> {
  const [, root, orderId, ...rest] = request.rawPath.split('/');
  if (root !== 'orders' || orderId === '' || rest.length > 0) {
    throw new HttpError(404, {
      code: 'NO_SUCH_ROUTE',
      message: `The route ${request.rawPath} does not exist.`,
    });
  }
  if (orderId === undefined) {
    allow('POST', request);
    return postOrder(deps, request, context);
  }
  allow('GET', request);
  return getOrder(deps, orderId, callerOf(request));
}

function allow(method: string, request: HttpRequest): void {
  const asked = request.requestContext.http.method;
  if (asked === method) return;
  const message = `${asked} is not allowed at ${request.rawPath}; use ${method}.`;
  throw new HttpError(405, { code: 'METHOD_NOT_ALLOWED', message }, { allow: method });
}

async function postOrder(
  { placeOrder, payWithinSeconds }: OrdersApiDeps,
  request: HttpRequest,
  context: Context,
): Promise<HttpAnswer> {
  return placeOrder({
    // A function URL passes header names in lowercase.
    idempotencyKey: request.headers['idempotency-key'],
    caller: callerOf(request),
    request: parseOrder(jsonBody(request), payWithinSeconds),
    remainingMs: context.getRemainingTimeInMillis(),
  });
}

async function getOrder(
  { orders }: OrdersApiDeps,
  orderId: string,
  caller: string | undefined,
): Promise<HttpAnswer> {
  if (!isOrderId(orderId)) {
    const message = 'The order id must be one that POST /orders returned, a lowercase UUID.';
    throw new HttpError(400, { code: 'INVALID_REQUEST', message, field: 'orderId' });
  }
  const order = await orders.find(orderId);
  // The same response for another caller's order, so that callers cannot learn which orders exist.
  if (order === undefined || order.placedBy !== caller) {
    throw new HttpError(404, { code: 'NO_SUCH_ORDER', message: `Order ${orderId} does not exist.` });
  }
  const headers = { 'content-type': 'application/json' };
  return { statusCode: 200, headers, body: orderJson(order) };
}

function parseOrder(body: unknown, payWithinMaxSeconds: number): OrderRequest {
  const parsed = orderRequest(payWithinMaxSeconds).safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...unknown].map(String).join('.') || 'body';
  const what = unknown.length > 0 ? 'is not known' : issue?.message;
  throw new HttpError(400, { code: 'INVALID_REQUEST', message: `${field} ${what}.`, field });
}
