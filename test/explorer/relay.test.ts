import { relayScenarios } from './relay-scenarios.ts';
import { scheduledScenarios } from './scheduled-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('the relay loses nothing', relayScenarios);
walkTests('scheduled events are published in time, or cancelled', scheduledScenarios);
