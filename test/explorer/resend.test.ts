import { redriveScenarios } from './redrive-scenarios.ts';
import { rejectionScenarios } from './rejection-scenarios.ts';
import { resendScenarios } from './resend-scenarios.ts';
import { unreadableScenarios } from './unreadable-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('of an event and those in its place, one runs', resendScenarios);
walkTests('a message that did not run keeps its dead letter', redriveScenarios);
walkTests('a handler or an operator commits, never both', rejectionScenarios);
walkTests('an event whose message cannot be read runs once', unreadableScenarios);
