import { exploreScenario, type Scenario, type Violation } from '../../testing/explorer/exploration.ts';
import { AT_ONCE_HOLES } from './at-once-holes.ts';
import { BATCH_HANDLER_HOLES } from './batch-handler-holes.ts';
import { batchHandlerScenarios } from './batch-handler-scenarios.ts';
import { BATCH_HOLES } from './batch-holes.ts';
import { batchScenarios } from './batch-scenarios.ts';
import { BRIDGE_HOLES } from './bridge-holes.ts';
import { bridgeScenarios } from './bridge-scenarios.ts';
import { CHANGED_HOLES } from './changed-holes.ts';
import { changedScenarios } from './changed-scenarios.ts';
import { EFFECT_HOLES } from './effect-holes.ts';
import { EVENT_HOLES } from './event-holes.ts';
import { eventScenarios } from './event-scenarios.ts';
import { INBOX_HOLES } from './inbox-holes.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { LIMIT_HOLES } from './limit-holes.ts';
import { limitScenarios } from './limit-scenarios.ts';
import { OPERATOR_HOLES } from './operator-holes.ts';
import { ORDER_HOLES } from './order-holes.ts';
import { orderScenarios } from './order-scenarios.ts';
import { OUTAGE_HOLES } from './outage-holes.ts';
import { outageScenarios } from './outage-scenarios.ts';
import { PAYLOAD_HOLES } from './payload-holes.ts';
import { payloadScenarios } from './payload-scenarios.ts';
import { PLACE_HOLES } from './place-holes.ts';
import { REDRIVE_HOLES } from './redrive-holes.ts';
import { redriveScenarios } from './redrive-scenarios.ts';
import { REJECTION_HOLES } from './rejection-holes.ts';
import { rejectionScenarios } from './rejection-scenarios.ts';
import { type Hole, RELAY_HOLES } from './relay-holes.ts';
import { type Bounds, relayScenarios } from './relay-scenarios.ts';
import { RESEND_HOLES } from './resend-holes.ts';
import { resendScenarios } from './resend-scenarios.ts';
import { RETENTION_HOLES } from './retention-holes.ts';
import { retentionScenarios } from './retention-scenarios.ts';
import { SCHEDULED_HOLES } from './scheduled-holes.ts';
import { scheduledScenarios } from './scheduled-scenarios.ts';
import { STALE_HOLES } from './stale-holes.ts';
import { staleScenarios } from './stale-scenarios.ts';
import { THAW_HOLES } from './thaw-holes.ts';
import { thawScenarios } from './thaw-scenarios.ts';
import { UNIQUE_HOLES } from './unique-holes.ts';
import { uniqueScenarios } from './unique-scenarios.ts';
import { UNREADABLE_HOLES } from './unreadable-holes.ts';
import { unreadableScenarios } from './unreadable-scenarios.ts';
import { VERSION_HOLES } from './version-holes.ts';
import { versionScenarios } from './version-scenarios.ts';

/** A rule that is taken away, and the scenario in which it is missed. */
export interface PlantedHole {
  readonly rule: string;
  readonly scenario: Scenario;
  /** How often the nearest schedule that shows it leaves the ordinary way. */
  readonly deviations: number;
  /** What breaks without the rule. */
  readonly found: RegExp;
}

/** The furthest that a schedule leaves the ordinary way before a hole shows. */
const DEVIATIONS_MAX = 4;

/** Every rule that is taken away. */
export const HOLES: readonly PlantedHole[] = [
  ...RELAY_HOLES.map((hole) => planted('outbox', hole, relayScenarios)),
  ...AT_ONCE_HOLES.map((hole) => planted('outbox', hole, relayScenarios)),
  ...SCHEDULED_HOLES.map((hole) => planted('outbox', hole, scheduledScenarios)),
  ...UNIQUE_HOLES.map((hole) => planted('outbox', hole, uniqueScenarios)),
  ...CHANGED_HOLES.map((hole) => planted('outbox', hole, changedScenarios)),
  ...[...INBOX_HOLES, ...EFFECT_HOLES, ...OPERATOR_HOLES].map((hole) =>
    planted('inbox', hole, inboxScenarios),
  ),
  ...BATCH_HOLES.map((hole) => planted('inbox', hole, batchScenarios)),
  ...BATCH_HANDLER_HOLES.map((hole) => planted('inbox', hole, batchHandlerScenarios)),
  ...OUTAGE_HOLES.map((hole) => planted('inbox', hole, outageScenarios)),
  ...RETENTION_HOLES.map((hole) => planted('inbox', hole, retentionScenarios)),
  ...VERSION_HOLES.map((hole) => planted('inbox', hole, versionScenarios)),
  ...EVENT_HOLES.map((hole) => planted('inbox', hole, eventScenarios)),
  ...ORDER_HOLES.map((hole) => planted('inbox', hole, orderScenarios)),
  ...[...LIMIT_HOLES, ...PLACE_HOLES].map((hole) => planted('inbox', hole, limitScenarios)),
  ...STALE_HOLES.map((hole) => planted('inbox', hole, staleScenarios)),
  ...PAYLOAD_HOLES.map((hole) => planted('payload', hole, payloadScenarios)),
  ...BRIDGE_HOLES.map((hole) => planted('bridge', hole, bridgeScenarios)),
  ...THAW_HOLES.map((hole) => planted('inbox', hole, thawScenarios)),
  ...RESEND_HOLES.map((hole) => planted('resend', hole, resendScenarios)),
  ...UNREADABLE_HOLES.map((hole) => planted('unreadable', hole, unreadableScenarios)),
  ...REDRIVE_HOLES.map((hole) => planted('redrive', hole, redriveScenarios)),
  ...REJECTION_HOLES.map((hole) => planted('inbox', hole, rejectionScenarios)),
];

function planted<T>(
  part: string,
  { rule, where, needs = {}, tamper, found }: Hole<T>,
  scenariosOf: (bounds: Bounds, tamper?: T) => readonly Scenario[],
): PlantedHole {
  const { faults = 0, stalls = 0, deviations = 0 } = needs;
  const scenario = scenariosOf({ actors: 2, budget: { faults, stalls } }, tamper).find(({ name }) =>
    name.includes(where),
  );
  if (scenario === undefined) throw new Error(`There is no scenario "${where}"`);
  return { rule: `${part}: ${rule}`, scenario, deviations, found };
}

/**
 * A schedule that breaks a promise and leaves the ordinary way seldom.
 *
 * @param from - fewer deviations are not walked: they are known to show nothing
 */
export async function nearestViolation(scenario: Scenario, from: number): Promise<Violation | undefined> {
  for (let deviationsMax = from; deviationsMax <= DEVIATIONS_MAX; deviationsMax += 1) {
    const [violation] = (await exploreScenario(scenario, { deviationsMax })).violations;
    if (violation !== undefined) return violation;
  }
  return undefined;
}
