import { inboxScenarios } from './inbox-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('the inbox doubles nothing', inboxScenarios);
