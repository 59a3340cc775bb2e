import type { Context } from 'aws-lambda';
import type { Table } from '../../runtime/index.ts';
import { type OrderRequest, orderRequest } from '../events.ts';
import { callerOf, HttpError, type HttpRequest, type HttpResponse, json, jsonBody, problem } from './http.ts';
import { isOrderId, orderIdOf, orderJson, orderKey, orderOfRow } from './order.ts';

/** Dependencies of {@link createOrdersApi}. */
export interface OrdersApiDeps {
  /** Places an order and returns the response body, see `createPlaceOrder`. */
  readonly placeOrder: (
    key: string,
    request: OrderRequest,
    context: Context,
    caller: string | undefined,
  ) => Promise<string>;
  readonly table: Table;
  /** Called for every internal failure. */
  readonly onError: (message: string, error: Error) => void;
}

/**
 * The HTTP API of the orders service: `POST /orders` and `GET /orders/{id}`.
 *
 * @example
 * ```ts
 * export const handler = createOrdersApi({ placeOrder, table, onError });
 * ```
 */
export function createOrdersApi(deps: OrdersApiDeps) {
  return async (request: HttpRequest, context: Context): Promise<HttpResponse> => {
    try {
      return await route(deps, request, context);
    } catch (error) {
      if (error instanceof HttpError) return problem(error);
      deps.onError('The request failed', error instanceof Error ? error : new Error(String(error)));
      const message = 'The request failed; send it again with the same Idempotency-Key.';
      return problem(new HttpError(500, { code: 'INTERNAL', message }));
    }
  };
}

async function route(deps: OrdersApiDeps, request: HttpRequest, context: Context): Promise<HttpResponse> {
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

async function postOrder(deps: OrdersApiDeps, request: HttpRequest, context: Context): Promise<HttpResponse> {
  const caller = callerOf(request);
  // Two callers may choose the same key.
  const key = [...(caller === undefined ? [] : [caller]), idempotencyKey(request)].join('/');
  const body = await deps.placeOrder(key, parseOrder(jsonBody(request)), context, caller);
  return json(201, body, { location: `/orders/${orderIdOf(key)}` });
}

async function getOrder(
  { table }: OrdersApiDeps,
  orderId: string,
  caller: string | undefined,
): Promise<HttpResponse> {
  if (!isOrderId(orderId)) {
    const message = 'The order id must be one that POST /orders returned, a lowercase UUID.';
    throw new HttpError(400, { code: 'INVALID_REQUEST', message, field: 'orderId' });
  }
  const row = await table.get(orderKey(orderId), { consistent: true });
  // The same response for another caller's order, so that callers cannot learn which orders exist.
  if (row === undefined || orderOfRow(row).placedBy !== caller) {
    throw new HttpError(404, { code: 'NO_SUCH_ORDER', message: `Order ${orderId} does not exist.` });
  }
  return json(200, orderJson(orderOfRow(row)));
}

/** 1 to 255 visible ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

function idempotencyKey(request: HttpRequest): string {
  // A function URL passes header names in lowercase.
  const key = request.headers['idempotency-key'];
  if (key !== undefined && IDEMPOTENCY_KEY.test(key)) return key;
  const field = 'Idempotency-Key';
  if (key === undefined) {
    const message = 'The header Idempotency-Key is missing. Send a new random value with each new order.';
    throw new HttpError(400, { code: 'IDEMPOTENCY_KEY_MISSING', message, field });
  }
  const message = `The header Idempotency-Key has ${key.length} characters; it must be 1 to 255 visible ASCII characters.`;
  throw new HttpError(400, { code: 'INVALID_REQUEST', message, field });
}

function parseOrder(body: unknown): OrderRequest {
  const parsed = orderRequest.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...unknown].map(String).join('.') || 'body';
  const what = unknown.length > 0 ? 'is not known' : issue?.message;
  throw new HttpError(400, { code: 'INVALID_REQUEST', message: `${field} ${what}.`, field });
}
