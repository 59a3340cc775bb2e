import { limitScenarios } from './limit-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('a limit is kept, and no message starves', limitScenarios);
