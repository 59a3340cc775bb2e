import { pause } from '../../demo/shop.ts';
import type { Act, Answer } from './fault-proxy.ts';

/** How often a call that is kept back looks whether it may go on. */
const HOLD_LOOK_MS = 50;

/** A call is kept back no longer: longer than any scenario runs. */
const HOLD_MAX_MS = 3_600_000;

/** An error as AWS answers it. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
}

/** How AWS refuses a call for now. */
export const THROTTLED: Refusal = { status: 400, code: 'ThrottlingException' };

/** Refuses the call: the engine never hears of it. */
export function refuse({ status, code }: Refusal): Act {
  return async () => jsonAnswer(status, { __type: code, message: 'Refused by a chaos scenario' });
}

/** Refuses some entries of a PutEvents call, as EventBridge does: the call succeeds, and its answer names each. */
export function refuseEntries(code: string, isRefused: (entry: BusEntryInput) => boolean): Act {
  return async (call, forward) => {
    const entries = (call.body.Entries ?? []) as readonly BusEntryInput[];
    const taken = entries.filter((entry) => !isRefused(entry));
    const answer = taken.length === 0 ? undefined : await forward({ ...call.body, Entries: taken });
    const results = answer === undefined ? [] : ((JSON.parse(answer.body).Entries ?? []) as object[]);
    return jsonAnswer(200, {
      FailedEntryCount: entries.length - taken.length,
      Entries: entries.map((entry) =>
        isRefused(entry)
          ? { ErrorCode: code, ErrorMessage: 'Refused by a chaos scenario' }
          : results[taken.indexOf(entry)],
      ),
    });
  };
}

/** An entry of PutEvents as it is sent. */
export interface BusEntryInput {
  readonly Source?: string;
  readonly DetailType?: string;
  readonly Detail?: string;
}

/** Kills the caller before the engine hears of its call. */
export function killBefore(kill: (pid: number) => Promise<void>): Act {
  return async (call) => {
    await kill(call.pid);
    return undefined;
  };
}

/** Kills the caller when the engine has done what it asked for, and before it hears so. */
export function killAfter(kill: (pid: number) => Promise<void>): Act {
  return async (call, forward) => {
    await forward();
    await kill(call.pid);
    return undefined;
  };
}

/** Lets the engine do it, and keeps the answer back until it may come. */
export function answerWhen(mayCome: () => boolean): Act {
  return async (_call, forward) => {
    const answer = await forward();
    await waitFor(mayCome);
    return answer;
  };
}

/** Keeps the call back like that, and lets the engine do it then: also when its caller has discarded. */
export function forwardWhen(mayCome: () => boolean): Act {
  return async (_call, forward) => {
    await waitFor(mayCome);
    return forward();
  };
}

/** Cuts the connection before the engine hears of the call. */
export const cut: Act = async () => undefined;

async function waitFor(mayCome: () => boolean): Promise<void> {
  const endsAt = Date.now() + HOLD_MAX_MS;
  while (!mayCome() && Date.now() < endsAt) await pause(HOLD_LOOK_MS);
}

function jsonAnswer(status: number, body: object): Answer {
  return {
    status,
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-requestid': 'chaos' },
    body: JSON.stringify(body),
  };
}
