import type { PlanDocument, PlanRequest } from '../../server/protocol.ts';
import { count, many } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { Table } from '../frame/table.tsx';
import { type PlanGroup, planGroups } from './plan-groups.ts';

/** The errors that a verdict shows; the screen behind the dialog has them all. */
const REASONS_MAX = 3;

/** The effect of a plan by verdict, each with what can be done. */
export function PlanTable({ request, plan }: { readonly request: PlanRequest; readonly plan: PlanDocument }) {
  const ids = 'ids' in request ? request.ids : undefined;
  const groups = planGroups(plan, ids);
  return (
    <Table
      caption="What would happen"
      columns={[
        { title: 'Count', isNumber: true, cell: (group: PlanGroup) => count(group.count) },
        { title: 'Verdict', cell: ({ is, label }) => <State is={is}>{label}</State> },
        { title: 'Meaning', cell: (group) => <Meaning group={group} /> },
      ]}
      rows={groups}
      keyOf={({ label }) => label}
      empty="No dead letter or event matches."
    />
  );
}

function Meaning({ group: { todo, reasons } }: { readonly group: PlanGroup }) {
  return (
    <div class="meaning">
      <p>{todo}</p>
      {reasons.slice(0, REASONS_MAX).map(([reason, number]) => (
        <p key={reason} class="quiet-text">
          {number > 1 && `${count(number)} × `}
          <Stored text={reason} clip={200} />
        </p>
      ))}
      {reasons.length > REASONS_MAX && (
        <p class="quiet-text">and {many(reasons.length - REASONS_MAX, 'other error')}</p>
      )}
    </div>
  );
}
