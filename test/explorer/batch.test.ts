import { batchScenarios } from './batch-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('a batch, an outage and an incident kill nothing healthy', batchScenarios);
