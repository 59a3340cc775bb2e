import { useEffect } from 'preact/hooks';
import type { DiscardChoice, Plan, PlanDocument, PlanRequest } from '../../server/protocol.ts';
import type { Reading } from '../../server/readings.ts';
import { type Api, RefusedError } from '../frame/api.ts';
import { useMailroom, useTask } from '../frame/mailroom.ts';

/** A plan as the dialog shows it. */
export interface ShownPlan {
  /** The command that makes the same change in a terminal. */
  readonly command: string;
  /** `null` if a read-only page lacks the permission to read it; the command is still shown. */
  readonly planned: PlanDocument | null;
  /** Why it could not be read; `null` if it was. */
  readonly notRead: string | null;
  /** `null` on a read-only page, which can only read the plan. */
  readonly toApply: Plan | null;
}

/** Makes the plan of a request: on the server, which then applies exactly it; or on a read-only page, by reading it. */
export function usePlan(request: PlanRequest) {
  const { info } = useMailroom();
  const { reject, effectsChecked }: DiscardChoice = request.kind === 'discard' ? request : {};
  const { result, error, isBusy, start } = useTask((api) =>
    info.allowsChanges ? madePlan(api, request) : readPlan(api, request),
  );
  const again = () => start(undefined);
  // A dialog has one request, and only the choice of a discard changes.
  useEffect(again, [reject, effectsChecked]);
  return {
    plan: isBusy || error !== null ? null : result,
    /** The latest plan, also while the next one is made; `null` before the first. */
    last: result,
    error: isBusy ? null : error,
    again,
  };
}

async function madePlan(api: Api, request: PlanRequest): Promise<ShownPlan> {
  const plan = await api.plan(request);
  return { command: plan.command, planned: plan, notRead: null, toApply: plan };
}

async function readPlan(api: Api, request: PlanRequest): Promise<ShownPlan> {
  const { command, error, planned } = await planReading(api, request);
  // The read-only policy does not allow the check of the deployed code.
  if (error !== null && error.code !== 'ACCESS_DENIED') throw new RefusedError(error);
  return { command: commandOf(command, request), planned, notRead: error?.message ?? null, toApply: null };
}

type PlanReading = Pick<Reading, 'command' | 'error'> & { readonly planned: PlanDocument | null };

async function planReading(api: Api, request: PlanRequest): Promise<PlanReading> {
  const { kind } = request;
  if (kind === 'resend') throw new Error('A read-only page cannot plan a resend.');
  if (kind === 'repair') {
    const reading = await api.read('audit', { since: request.since, repair: '1' });
    return { ...reading, planned: reading.document && { kind, document: reading.document } };
  }
  const { source, cause, ids = [] } = request;
  if (kind === 'discard' && cause === undefined && ids.length > 1)
    throw new Error('No option of the command selects these dead letters by cause. Open one to discard it.');
  const id = cause === undefined && ids.length === 1 ? ids[0] : undefined;
  if (kind === 'discard') {
    const { reject, effectsChecked } = request;
    const reading = await api.read('discard-plan', {
      ...{ source, cause, id },
      ...{ reject: reject ? '1' : undefined, effectsChecked: effectsChecked ? '1' : undefined },
    });
    return { ...reading, planned: reading.document && { kind, document: reading.document } };
  }
  const reading = await api.read('redrive-plan', { source, cause, id });
  return { ...reading, planned: reading.document && { kind, document: reading.document } };
}

/** The most ids in a command: more are hard to paste. */
const IDS_MAX = 20;

/**
 * The command that applies the plan of a read-only page.
 *
 * @param reading - the command that made the plan
 *
 * @example
 * ```ts
 * commandOf('npx cdk-mailroom dlq redrive dead --stage dev', { kind: 'redrive', source: 'dead' });
 * // 'npx cdk-mailroom dlq redrive dead --stage dev --apply --reason "…"'
 * ```
 */
export function commandOf(reading: string, request: PlanRequest): string {
  const ids = 'ids' in request && request.ids !== undefined && request.ids.length > 1 ? request.ids : [];
  // SQS's ids and event ids need no quotes; others are left out rather than quoted wrongly.
  const words = ids.filter((id) => /^[\w-]+$/.test(id)).slice(0, IDS_MAX);
  if (ids.length > 0 && words.length === 0) return reading; // it would select all of them
  const source = 'source' in request ? request.source : '';
  const selected =
    words.length === 0 ? reading : reading.replace(source, () => `${source} ${words.join(' ')}`);
  return `${selected} --apply --reason "…"`;
}

/** A form that confirms a plan. */
interface Confirmation {
  readonly reason: string;
  /** The text that was typed. */
  readonly typed: string;
}

/** The limits of a reason, as the command has them. */
const REASON_MIN = 3;
export const REASON_MAX = 500;

/**
 * The conditions that a plan still lacks before it can be applied, as sentences; empty once it can. The server checks them again.
 *
 * @param wanted - the text to type
 */
export function missingFrom({ reason, typed }: Confirmation, wanted: string): string[] {
  return [
    ...(reason.trim().length < REASON_MIN ? ['Write a reason.'] : []),
    ...(typed.trim() === wanted ? [] : [`Type ${wanted} to confirm.`]),
  ];
}
