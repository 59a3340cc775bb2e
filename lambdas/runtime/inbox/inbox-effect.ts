import { CLOCK_SKEW_MS, timeText } from '../base/clock.ts';
import { FenceLost, MailroomError, type PoisonMessage } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { poison } from '../base/poison.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import type { StoredEffect } from '../store/stored-effect.ts';
import type { Claim, InboxRules } from './inbox.ts';
import { isOurs } from './inbox-admission.ts';
import { rowCause } from './stored-cause.ts';

/** The most effects of one message. With results of at most 4 KB, they take at most three quarters of its 400 KB row. */
export const EFFECTS_MAX = 64;

/** Longer errors of an effect are cut: its message's row keeps one of each effect. */
const EFFECT_ERROR_MAX_CHARS = 200;

/** The end of an effect: its result as JSON, `undefined` if it returned nothing; or its error, after which the next attempt runs it again. */
export type EffectEnd =
  | { readonly status: 'COMPLETED'; readonly result: string | undefined }
  | { readonly status: 'RELEASED'; readonly error: unknown; readonly nothingHappened: boolean };

/** One call of `ctx.once`, identified by the claim's fence and the number of the call, from 1. */
export interface EffectCall {
  readonly claim: Claim;
  readonly name: string;
  readonly run: number;
}

/** An effect may still be running under an earlier claim of this message: return the message, and retry after `until`. */
export class EffectInProgress extends MailroomError {
  readonly until: number;

  constructor(name: string, until: number) {
    super(
      'EFFECT_IN_PROGRESS',
      `Effect "${name}" may still be running elsewhere until ${timeText(until)}; the message is received again after that.`,
    );
    this.name = 'EffectInProgress';
    this.until = until;
  }
}

/** The completed effect, or the reason for which an effect was not started. @throws as {@link startEffect} */
export function notStarted(call: EffectCall, row: InboxRow | undefined): Pick<StoredEffect, 'result'> {
  const { claim, name } = call;
  if (!isOurs(row, claim.fence)) throw fenceLost(call, 'was not started');
  const effects: unknown = row?.effects;
  const stored = effectIn(effects, name);
  if (stored === undefined && isFull(effects)) throw tooMany(call);
  if (stored?.status === 'COMPLETED') return stored;
  const until = Number(stored?.endsBy) + CLOCK_SKEW_MS;
  const mayRun = stored?.status === 'IN_PROGRESS' || stored?.status === 'RELEASED';
  throw mayRun && Number.isFinite(until) ? new EffectInProgress(name, until) : unreadable(call);
}

/** @throws `FENCE_LOST` unless the row shows this end of the effect */
export function checkFinished(call: EffectCall, end: EffectEnd, row: InboxRow | undefined): void {
  const { claim, name, run } = call;
  const { fence } = claim;
  const stored = effectIn(row?.effects, name);
  const ours = stored?.fence === fence && stored.run === run;
  if (ours && stored.status === end.status) return; // this call wrote it, but the response was lost
  throw fenceLost(call, 'ran, but its result cannot be stored');
}

/** The attributes of an effect that has ended. */
export function ended(inbox: InboxRules, end: EffectEnd): Partial<StoredEffect> {
  const { status } = end;
  const now = inbox.clock.now();
  if (status === 'COMPLETED') return { status, completedAt: now, result: end.result };
  const error = rowCause(inbox, end.error).lastError.slice(0, EFFECT_ERROR_MAX_CHARS);
  return { status, endedAt: now, error, nothingHappened: end.nothingHappened || undefined };
}

/**
 * Returns the entry of an effect, if there is one; its attributes are unchecked. A name may be that of a property which every object has, such as `constructor`.
 *
 * @param effects - the row's attribute, as it was read
 */
export function effectIn(effects: unknown, name: string): Partial<StoredEffect> | null | undefined {
  return isObject(effects) && Object.hasOwn(effects, name)
    ? (effects[name] as Partial<StoredEffect> | null | undefined)
    : undefined;
}

function isFull(effects: unknown): boolean {
  return isObject(effects) && Object.keys(effects).length >= EFFECTS_MAX;
}

function fenceLost({ claim, name }: EffectCall, what: string): FenceLost {
  return new FenceLost(
    `Effect "${name}" of message ${claim.message.eventId} ${what}: this worker no longer holds the message, and another one continues it.`,
  );
}

function tooMany({ claim, name }: EffectCall): PoisonMessage {
  return poison(
    'TOO_MANY_EFFECTS',
    `Effect "${name}" was not started: message ${claim.message.eventId} has ${EFFECTS_MAX} effects, the most that its row stores, ` +
      'including those of earlier attempts and versions. Do not redrive it: code that publishes events instead repeats its effects under other keys. For ' +
      'later messages, combine effects, or let the handler publish an event for each.',
  );
}

function unreadable({ claim, name }: EffectCall): PoisonMessage {
  return poison(
    'EFFECT_UNREADABLE',
    `Effect "${name}" of message ${claim.message.eventId} cannot be read: Mailroom did not write its entry. Ask the effect's provider whether it ` +
      'happened, then resolve or discard the message.',
  );
}
