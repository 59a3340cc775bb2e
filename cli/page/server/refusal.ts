import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { EXIT, type ExitCode } from '../../terminal/io.ts';
import { refusalOf } from '../../terminal/report-error.ts';
import type { Refusal } from './quiet-run.ts';

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
export function refuse(c: Context, status: ContentfulStatusCode, code: string, message: string): Response {
  return c.json({ code, message } satisfies Refusal, status);
}

/** Responds with an error that a request caused: its code, its message and its remedy, and never its stack. */
export function refuseError(c: Context, error: unknown): Response {
  const { code, message, exit } = refusalOf(error, false);
  return refuse(c, CHANGE_STATUS[code] ?? STATUS[exit], code, message);
}
