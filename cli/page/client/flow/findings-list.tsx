import type { StatusFinding } from '../../../reports/status/status-findings.ts';
import { Command } from '../frame/command.tsx';
import { Notice } from '../frame/notice.tsx';
import { Stored } from '../frame/stored.tsx';

/** The findings of `mailroom status`, each with the commands to run first. */
export function FindingsList({ findings }: { readonly findings: readonly StatusFinding[] }) {
  if (findings.length === 0) return null;
  return (
    <section aria-labelledby="findings-title" class="findings">
      <h2 id="findings-title">What to do</h2>
      <ul>
        {findings.map(({ state, what, commands }) => (
          <li key={what}>
            <Notice is={state} title={<Stored text={what} />}>
              {commands.map((line) => (
                <p key={line}>
                  <Command line={line} />
                </p>
              ))}
            </Notice>
          </li>
        ))}
      </ul>
    </section>
  );
}
