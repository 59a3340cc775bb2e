import { eventScenarios } from './event-scenarios.ts';
import { orderScenarios } from './order-scenarios.ts';
import { outageScenarios } from './outage-scenarios.ts';
import { retentionScenarios } from './retention-scenarios.ts';
import { thawScenarios } from './thaw-scenarios.ts';
import { versionScenarios } from './version-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('a consumer doubles nothing and kills nothing healthy', (bounds) => [
  ...outageScenarios(bounds),
  ...retentionScenarios(bounds),
  ...versionScenarios(bounds),
  ...eventScenarios(bounds),
  ...thawScenarios(bounds),
  ...orderScenarios(bounds),
]);
