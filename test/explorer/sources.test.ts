import { inboxScenarios } from './inbox-scenarios.ts';
import { outageScenarios } from './outage-scenarios.ts';
import { sourceConsumer } from './source-consumer.ts';
import { walkTests } from './walk-tests.ts';

walkTests('the inbox of another source doubles nothing', (bounds) => [
  ...inboxScenarios(bounds, { makeConsumer: sourceConsumer }),
  ...outageScenarios(bounds, { makeConsumer: sourceConsumer }),
]);
