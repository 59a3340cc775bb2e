import { bridgeScenarios } from './bridge-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('a bridge loses nothing and keeps a strict order', bridgeScenarios);
