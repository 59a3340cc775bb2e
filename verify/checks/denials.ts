import { InvokeCommand } from '@aws-sdk/client-lambda';
import { required } from '../../demo/readings.ts';
import type { DeployedSystem } from '../deployed-system.ts';
import type { ProbeCall, ProbeOutcome } from '../probe-call.ts';
import {
  type Attempted,
  type Attempts,
  consumerAttempts,
  intruderAttempts,
  producerAttempts,
  relayAttempts,
} from './attempts.ts';
import { notShown, passed, type VerifyCheck } from './check.ts';

/** A role, the output with the name of the function that runs with it, and its attempts. */
interface Probe {
  readonly role: string;
  readonly output: string;
  readonly attempts: (system: Attempted) => Promise<Attempts>;
}

/** The probes of the deployment. */
export const PROBES: readonly Probe[] = [
  { role: "a consumer's role", output: 'ProbeConsumer', attempts: consumerAttempts },
  { role: "a producer's role", output: 'ProbeProducer', attempts: producerAttempts },
  { role: "the relay's role", output: 'ProbeRelay', attempts: relayAttempts },
  { role: 'a role with every right', output: 'ProbeIntruder', attempts: intruderAttempts },
];

/** Calls that IAM and the policies of table, bus and queues deny; no local engine enforces them. */
export const denialChecks: readonly VerifyCheck[] = PROBES.map(({ role, output, attempts }) => ({
  name: `IAM: ${role} is denied what it may not do`,
  run: async (system) => {
    const { allowed, denied } = await attempts(system);
    // A role that may do nothing would be denied everything: its rights must work, which IAM may take a minute to publish.
    await system.until(
      `${role} may do what it needs: ${allowed.map(({ what }) => what).join(', ')}`,
      async () => {
        const outcomes = await invoke(
          system,
          output,
          allowed.map(({ call }) => call),
        );
        const refused = outcomes.filter(({ kind }) => kind !== 'allowed');
        if (refused.length > 0) throw new Error(refused.map(({ error }) => error).join('\n'));
        return true;
      },
    );
    const outcomes = await invoke(
      system,
      output,
      denied.map(({ call }) => call),
    );
    const wrong = denied.flatMap(({ what }, n) => {
      const { kind, error = '' } = outcomes[n] ?? { kind: 'unknown' };
      return kind === 'denied' ? [] : [{ what, kind, error }];
    });
    if (wrong.length === 0) return passed(`denied: ${denied.map(({ what }) => what).join('; ')}`);
    const enforcesNothing = wrong.length === denied.length && wrong.every(({ kind }) => kind === 'allowed');
    if (system.target.endpoint !== undefined && enforcesNothing)
      return notShown(`the engine enforces no IAM: it let all ${denied.length} forbidden calls through`);
    throw new Error(wrong.map(({ what, kind, error }) => `${what}: ${kind} ${error}`.trim()).join('\n'));
  },
}));

async function invoke(
  { lambda, outputs }: DeployedSystem,
  output: string,
  calls: readonly ProbeCall[],
): Promise<ProbeOutcome[]> {
  const { Payload, FunctionError } = await lambda.send(
    new InvokeCommand({ FunctionName: required(outputs, output), Payload: JSON.stringify({ calls }) }),
  );
  const answer = new TextDecoder().decode(Payload);
  if (FunctionError !== undefined) throw new Error(`The probe ${output} failed: ${answer}`);
  return JSON.parse(answer) as ProbeOutcome[];
}
