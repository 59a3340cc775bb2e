import { changedScenarios } from './changed-scenarios.ts';
import { relayScenarios } from './relay-scenarios.ts';
import { scheduledScenarios } from './scheduled-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('the relay loses nothing', relayScenarios);
walkTests('scheduled events are published in time, or cancelled', scheduledScenarios);
walkTests('rows that were changed by hand are put right', changedScenarios);
