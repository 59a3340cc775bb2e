import { uniqueScenarios } from './unique-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('of one fact, one event is committed', uniqueScenarios);
