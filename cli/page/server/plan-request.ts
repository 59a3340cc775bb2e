import { errorMessage, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isObject } from '../../../lambdas/runtime/base/json.ts';
import { reasonArgument } from '../../terminal/arguments.ts';
import type { ApplyRequest, PlanRequest } from './protocol.ts';

/** The most dead letters of one plan: as many as one run of the command handles. */
const IDS_MAX = 1_000;

/** The ids of dead letters and events: nothing that the command could take for an option. */
const ID = /^[0-9A-Za-z][\w-]{7,127}$/;

/** The most characters of a cause: stored fingerprints are cut before this. */
const CAUSE_MAX = 1_000;

/** Reads a request for a plan. @throws `BAD_ARGUMENT`, naming the member */
export function planRequest(request: unknown): PlanRequest {
  const { kind, source, ids, cause, id, data, since, reject, effectsChecked } = membersOf(request);
  if (kind === 'redrive' || kind === 'discard') {
    const choice = {
      source: text('source', source),
      ...(ids === undefined ? {} : { ids: idList(ids) }),
      ...(cause === undefined ? {} : { cause: text('cause', cause) }),
    };
    if (kind === 'redrive') return { kind, ...choice };
    if (ids === undefined && cause === undefined)
      throw bad('ids', 'is missing: a discard names its dead letters by "ids" or by "cause"');
    return {
      ...{ kind, ...choice },
      reject: flag('reject', reject),
      effectsChecked: flag('effectsChecked', effectsChecked),
    };
  }
  if (kind === 'resend') {
    if (data === undefined) throw bad('data', 'is missing: send the new data of the event');
    return { kind, source: text('source', source), id: idOf('id', id), data };
  }
  if (kind === 'repair') return { kind, since: text('since', since) };
  throw bad('kind', 'must be "redrive", "discard", "resend" or "repair"');
}

/** Reads a request to apply a plan. @throws `BAD_ARGUMENT` if the reason is absent or a placeholder */
export function applyRequest(request: unknown): ApplyRequest {
  const { reason, confirmation } = membersOf(request);
  if (typeof reason !== 'string') throw bad('reason', 'must be a string');
  try {
    return { reason: reasonArgument(reason), confirmation: text('confirmation', confirmation) };
  } catch (error) {
    if (error instanceof MailroomError) throw error;
    throw bad('reason', `is refused. ${errorMessage(error)}`);
  }
}

function membersOf(request: unknown): Readonly<Partial<Record<string, unknown>>> {
  if (isObject(request) && !Array.isArray(request)) return request;
  throw new MailroomError('BAD_ARGUMENT', 'The request must be a JSON object.');
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= CAUSE_MAX) return value;
  throw bad(name, `must be a string of 1 to ${CAUSE_MAX} characters`);
}

function flag(name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  throw bad(name, 'must be true or false');
}

function idOf(name: string, value: unknown): string {
  if (typeof value === 'string' && ID.test(value)) return value;
  throw bad(name, 'must be the whole id of a dead letter or of its event');
}

function idList(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > IDS_MAX)
    throw bad('ids', `must be a list of 1 to ${IDS_MAX} ids`);
  return value.map((one) => idOf('ids', one));
}

function bad(name: string, problem: string): MailroomError {
  return new MailroomError('BAD_ARGUMENT', `"${name}" ${problem}.`);
}
