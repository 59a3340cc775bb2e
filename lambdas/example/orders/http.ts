import type { APIGatewayEventRequestContextIAMAuthorizer, APIGatewayProxyEventV2 } from 'aws-lambda';
import { type HttpAnswer, httpProblem } from '../../runtime/http.ts';

/** A request to a Lambda function URL (payload format 2.0). */
export type HttpRequest = APIGatewayProxyEventV2;

/**
 * Returns the caller that IAM identified: the unique id of the role or user, whatever the session name.
 *
 * @returns `undefined` if the function URL requires no identity, as in the local environment
 */
export function callerOf(request: HttpRequest): string | undefined {
  const { authorizer } = request.requestContext as {
    readonly authorizer?: Pick<APIGatewayEventRequestContextIAMAuthorizer, 'iam'>;
  };
  return authorizer?.iam.callerId.split(':')[0];
}

/** The maximum body size, bytes: an order with the most items and the longest names takes about half of it. */
export const BODY_BYTES_MAX = 65_536;

/** Refuses a request; thrown where the problem is found. */
export class HttpError extends Error {
  readonly answer: HttpAnswer;

  constructor(...[statusCode, problem, headers]: Parameters<typeof httpProblem>) {
    super(problem.message);
    this.name = 'HttpError';
    this.answer = httpProblem(statusCode, problem, headers);
  }
}

/**
 * Reads the body of a request as JSON.
 *
 * @throws {@link HttpError} 413 if it is larger than {@link BODY_BYTES_MAX}, 400 if it is not JSON
 */
export function jsonBody(request: HttpRequest): unknown {
  const body = Buffer.from(request.body ?? '', request.isBase64Encoded ? 'base64' : 'utf8');
  if (body.byteLength > BODY_BYTES_MAX) {
    throw new HttpError(413, {
      code: 'BODY_TOO_LARGE',
      message: `The body has ${body.byteLength} bytes; at most ${BODY_BYTES_MAX} are allowed.`,
    });
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new HttpError(400, { code: 'NOT_JSON', message: 'The body is not JSON.', field: 'body' });
  }
}
