import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import { envelopeJson } from '../../lambdas/runtime/store/stored-envelope.ts';

/** The envelope of an outbox row as it is stored. */
export function envelopeOf(row: object | undefined): Envelope {
  const stored = envelopeJson({ ...row });
  if (stored.problem !== undefined) throw new Error(`There is no envelope: ${stored.problem}`);
  return JSON.parse(stored.json) as Envelope;
}
