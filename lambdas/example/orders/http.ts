import type {
  APIGatewayEventRequestContextIAMAuthorizer,
  APIGatewayProxyEventV2,
  APIGatewayProxyStructuredResultV2,
} from 'aws-lambda';

/** A request to a Lambda function URL (payload format 2.0). */
export type HttpRequest = APIGatewayProxyEventV2;

/**
 * The caller whom IAM has identified: the unique id of the role or the user, whatever the session is called.
 *
 * @returns `undefined` where the function URL demands no identity, as on a laptop
 */
export function callerOf(request: HttpRequest): string | undefined {
  const { authorizer } = request.requestContext as {
    readonly authorizer?: Pick<APIGatewayEventRequestContextIAMAuthorizer, 'iam'>;
  };
  return authorizer?.iam.callerId.split(':')[0];
}

/** The answer of a Lambda function URL. */
export type HttpResponse = APIGatewayProxyStructuredResultV2;

/** The largest body, bytes: an order of the most items with the longest names takes about half of it. */
export const BODY_BYTES_MAX = 65_536;

/** What was wrong with a request, as the caller is told. */
export interface Problem {
  /** A stable, upper-case name. */
  readonly code: string;
  readonly message: string;
  /** Where in the request, e.g. `items.0.quantity` or `Idempotency-Key`. */
  readonly field?: string | undefined;
}

/** A request that is refused, thrown from wherever that turns out. */
export class HttpError extends Error {
  readonly statusCode: number;
  readonly problem: Problem;
  readonly headers: Readonly<Record<string, string>>;

  constructor(statusCode: number, problem: Problem, headers: Readonly<Record<string, string>> = {}) {
    super(problem.message);
    this.name = 'HttpError';
    this.statusCode = statusCode;
    this.problem = problem;
    this.headers = headers;
  }
}

/** A JSON answer. `body` is JSON already, so that what was stored is sent byte for byte. */
export function json(statusCode: number, body: string, headers: Record<string, string> = {}): HttpResponse {
  return { statusCode, headers: { 'content-type': 'application/json', ...headers }, body };
}

/** The answer to a refused request: `{ error: { code, message, field? } }`. */
export function problem(error: HttpError): HttpResponse {
  return json(error.statusCode, JSON.stringify({ error: error.problem }), error.headers);
}

/**
 * Reads the body of a request as JSON.
 *
 * @throws {@link HttpError} 413 when it is larger than {@link BODY_BYTES_MAX}, 400 when it is not JSON
 */
export function jsonBody(request: HttpRequest): unknown {
  const body = Buffer.from(request.body ?? '', request.isBase64Encoded ? 'base64' : 'utf8');
  if (body.byteLength > BODY_BYTES_MAX) {
    throw new HttpError(413, {
      code: 'BODY_TOO_LARGE',
      message: `The body has ${body.byteLength} bytes; at most ${BODY_BYTES_MAX} are read.`,
    });
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new HttpError(400, { code: 'NOT_JSON', message: 'The body is not JSON.', field: 'body' });
  }
}
