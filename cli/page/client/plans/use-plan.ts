import { useEffect, useState } from 'preact/hooks';
import type { PlanRequest, Reading } from '../../server/protocol.ts';
import type { Api, RefusedError } from '../frame/api.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { errorOf, refused } from '../frame/use-reading.ts';
import { commandOf } from './plan-groups.ts';

/** A plan as the dialog shows it. */
export interface ShownPlan {
  /** The command that makes the same change in a terminal. */
  readonly command: string;
  /** `null` if a read-only page has not the rights to read it: the command is shown all the same. */
  readonly document: unknown;
  /** Why it could not be read; `null` if it was. */
  readonly notRead: string | null;
  /** `null` on a read-only page, which can only read the plan. */
  readonly toApply: {
    readonly id: string;
    readonly expiresAt: number;
    readonly count: number;
    readonly confirmation: string;
  } | null;
}

interface UsedPlan {
  /** `null` until it is made. */
  readonly plan: ShownPlan | null;
  readonly error: RefusedError | null;
  /** Makes a new plan. */
  readonly again: () => void;
}

/** Makes the plan of a request: on the server, which then applies exactly it; or on a read-only page, by reading it. */
export function usePlan(request: PlanRequest): UsedPlan {
  const { api, info } = useMailroom();
  const [tries, setTries] = useState(0);
  const [state, setState] = useState<Omit<UsedPlan, 'again'>>({ plan: null, error: null });
  // A dialog has one request; `tries` asks for a new plan.
  useEffect(() => {
    let isOpen = true;
    const settle = (result: Partial<UsedPlan>) => {
      if (isOpen) setState({ plan: null, error: null, ...result });
    };
    setState({ plan: null, error: null });
    (info.allowsChanges ? madePlan(api, request) : readPlan(api, request)).then(
      (plan) => settle({ plan }),
      (error) => settle({ error: refused(error) }),
    );
    return () => {
      isOpen = false;
    };
  }, [tries]);
  return { ...state, again: () => setTries(tries + 1) };
}

async function madePlan(api: Api, request: PlanRequest): Promise<ShownPlan> {
  const { id, command, document, expiresAt, count, confirmation } = await api.plan(request);
  return { command, document, notRead: null, toApply: { id, expiresAt, count, confirmation } };
}

async function readPlan(api: Api, request: PlanRequest): Promise<ShownPlan> {
  const reading = await planReading(api, request);
  const error = errorOf(reading);
  const command = commandOf(reading.command, request);
  // The read-only policy does not allow the check of the deployed code.
  if (error?.code === 'ACCESS_DENIED')
    return { command, document: null, notRead: error.message, toApply: null };
  if (error !== null) throw error;
  return { command, document: reading.document, notRead: null, toApply: null };
}

function planReading(api: Api, request: PlanRequest): Promise<Reading> {
  if (request.kind === 'repair') return api.read('audit', { since: request.since, repair: '1' });
  if (request.kind === 'resend') throw new Error('A read-only page cannot plan a resend.');
  const { kind, source, cause, ids = [] } = request;
  if (kind === 'discard' && cause === undefined && ids.length > 1)
    throw new Error('No option of the command selects these dead letters by cause. Open one to discard it.');
  const only =
    cause !== undefined ? { cause } : ids.length === 1 && ids[0] !== undefined ? { id: ids[0] } : {};
  return api.read(kind === 'redrive' ? 'redrive-plan' : 'discard-plan', { source, ...only });
}
