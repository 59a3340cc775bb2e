import { batchHandlerScenarios } from './batch-handler-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('each message of a batch is applied once, and fails alone', batchHandlerScenarios);
