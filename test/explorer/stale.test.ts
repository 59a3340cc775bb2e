import { staleScenarios } from './stale-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('a stale message ends without an effect, or with all of them', staleScenarios);
