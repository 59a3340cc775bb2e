import { relayScenarios } from './relay-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('the relay loses nothing', relayScenarios);
