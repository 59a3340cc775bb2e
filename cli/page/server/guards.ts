import type { Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { createMiddleware } from 'hono/factory';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { errorHelp } from '../../../lambdas/runtime/base/documentation.ts';
import type { MailroomErrorCode } from '../../../lambdas/runtime/base/error-codes.ts';
import { EXIT, type ExitCode } from '../../terminal/io.ts';
import { refusalOf } from '../../terminal/report-error.ts';
import type { Refusal } from './quiet-run.ts';

/** The largest body of a request, bytes. */
export const BODY_MAX_BYTES = 1_000_000;

/** Headers of every response: the page loads from its own origin only, is in no frame, and is stored nowhere. */
const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Hono would answer a HEAD as a GET without its body: a live stream without a reader, which never ends. */
const METHODS: readonly string[] = ['GET', 'POST'];

interface GuardDeps {
  /** The address of the page, e.g. `http://127.0.0.1:40123`. */
  readonly origin: () => string;
  readonly accepts: (key: string) => boolean;
  readonly allowsChanges: boolean;
  /** Called for each request that has the key. */
  readonly onUse: () => void;
}

/** The checks of requests, in the order in which a request meets them. */
export type Guards = ReturnType<typeof guards>;

/**
 * Creates the checks of a server.
 *
 * A web page can make a browser send requests to a loopback port. It cannot choose the Host, unless DNS leads its own name here, and
 * then the Host is that name; and it has no key. There is one address, so Host and Origin are each compared with one text:
 * `localhost` would be a second origin, and may be another server on `::1`.
 */
export function guards({ origin, accepts, allowsChanges, onUse }: GuardDeps) {
  const isExternal = (c: Context): boolean => c.req.header('Origin') !== origin();
  const externalOrigin = (c: Context): Response =>
    refuse(c, 403, 'EXTERNAL_ORIGIN', `The request does not come from the page at ${origin()}.`);
  return {
    /** Every request: the exact Host, the method, and the headers of the response. */
    every: createMiddleware(async (c, next) => {
      const host = new URL(origin()).host;
      if (c.req.header('Host') !== host)
        c.res = refuse(
          c,
          403,
          'EXTERNAL_HOST',
          `The page was opened under another host name. Open ${origin()} instead.`,
        );
      else if (!METHODS.includes(c.req.method))
        c.res = refuse(
          c,
          405,
          'NOT_ALLOWED',
          `The method is ${c.req.method}, but must be ${METHODS.join(' or ')}.`,
        );
      else await next();
      for (const [name, value] of Object.entries(HEADERS)) c.res.headers.set(name, value);
    }),
    /** A request with a body: from the page's own origin, JSON, and not too large. */
    post: [
      createMiddleware(async (c, next) => {
        if (isExternal(c)) return externalOrigin(c);
        if (!isJson(c.req.header('Content-Type')))
          return refuse(c, 415, 'NOT_JSON', 'The Content-Type of the request must be application/json.');
        await next();
      }),
      bodyLimit({
        maxSize: BODY_MAX_BYTES,
        onError: (c) =>
          refuse(
            c,
            413,
            'TOO_LARGE',
            `The body of the request is too large; at most ${BODY_MAX_BYTES.toLocaleString('en')} bytes are allowed.`,
          ),
      }),
    ],
    /** A request for data. */
    key: createMiddleware(async (c, next) => {
      const [, key = ''] = /^Bearer ([\w-]{1,100})$/.exec(c.req.header('Authorization') ?? '') ?? [];
      if (!accepts(key))
        return refuse(
          c,
          401,
          'NO_KEY',
          'This tab has no key, or the key of an earlier run. Press Enter in the terminal that serves this page to open another tab.',
        );
      if (c.req.header('Origin') !== undefined && isExternal(c)) return externalOrigin(c);
      onUse();
      await next();
    }),
    /** A request that changes something. */
    change: createMiddleware(async (c, next) => {
      if (allowsChanges) return await next();
      return refuse(
        c,
        403,
        'READ_ONLY',
        'The page is read-only. To make changes from it, start mailroom ui with --allow-changes; or run the command in a terminal.',
      );
    }),
  };
}

/** A form can send JSON as text/plain without a preflight, and from any page; application/json it cannot. */
function isJson(contentType = ''): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType);
}

/** The status of a failed request, by the exit code that the command would have. */
const STATUS: Readonly<Record<ExitCode, ContentfulStatusCode>> = {
  [EXIT.ok]: 500,
  [EXIT.attention]: 500,
  [EXIT.usage]: 400,
  [EXIT.notFound]: 404,
  [EXIT.aws]: 502,
  [EXIT.defect]: 500,
  [EXIT.stopped]: 503,
};

/** The status of refused changes; of others, the exit code decides. */
const CHANGE_STATUS: Readonly<Record<string, ContentfulStatusCode>> = {
  READ_ONLY: 403,
  NO_SUCH_PLAN: 404,
  NO_SUCH_RUN: 404,
  ALREADY_RUNNING: 409,
  PLAN_EXPIRED: 410,
};

/** Responds with a {@link Refusal}. */
export function refuse(
  c: Context,
  status: ContentfulStatusCode,
  code: MailroomErrorCode,
  message: string,
): Response {
  return c.json({ code, message, help: errorHelp(code) } satisfies Refusal, status);
}

/** Responds with an error that a request caused: its code, its message and its remedy, and never its stack. */
export function refuseError(c: Context, error: unknown): Response {
  const { code, message, help, exit } = refusalOf(error, false);
  return c.json({ code, message, help } satisfies Refusal, CHANGE_STATUS[code] ?? STATUS[exit]);
}
