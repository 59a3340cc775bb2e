import type { PlanRequest } from '../../server/protocol.ts';

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
  const ids = 'ids' in request && (request.ids?.length ?? 0) > 1 ? (request.ids ?? []) : [];
  // SQS's ids and event ids need no quotes; others are left out rather than quoted wrongly.
  const words = ids.filter((id) => /^[\w-]+$/.test(id)).slice(0, IDS_MAX);
  if (ids.length > 0 && words.length === 0) return reading; // it would select all of them
  const source = 'source' in request ? request.source : '';
  const selected =
    words.length === 0 ? reading : reading.replace(source, () => `${source} ${words.join(' ')}`);
  return `${selected} --apply --reason "…"`;
}
