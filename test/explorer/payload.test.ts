import { payloadScenarios } from './payload-scenarios.ts';
import { walkTests } from './walk-tests.ts';

walkTests('a committed event has its payload, and a handler gets no other', payloadScenarios);
