import { useId, useState } from 'preact/hooks';
import { type DataChange, dataChanges } from '../../../reports/dead-letters/data-changes.ts';
import { Button } from '../frame/controls.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { Table } from '../frame/table.tsx';
import { PlanDialog } from '../plans/plan-dialog.tsx';
import { type EditedData, editedData, storedData } from './edited-data.ts';
import { consumerOf } from './sources.ts';

interface EditAndSendProps {
  readonly source: string;
  readonly id: string;
  readonly body: string;
}

/** Sends the event of a dead letter with other data: as a new event that names its cause, to this consumer only. */
export function EditAndSend({ source, id, body }: EditAndSendProps) {
  const { info } = useMailroom();
  const title = useId();
  const consumer = consumerOf(source);
  if (consumer === null) return null; // DEAD events and stream batches are sent to no consumer
  const stored = storedData(body);
  return (
    <section class="panel stack" aria-labelledby={title}>
      <h2 id={title}>Resend with other data</h2>
      <p>
        Sends a new event, to {consumer} only, which names the event of this dead letter as its cause. The
        dead letter does not change: discard it once the new event is processed.
      </p>
      {stored.is === 'none' ? (
        <Notice is="look" title={<Stored text={stored.why} />} />
      ) : info.allowsChanges ? (
        <Editor source={source} id={id} stored={stored.data} />
      ) : (
        <Notice is="idle" title="This page is read-only.">
          <p>
            To resend it here, start the page with <code>mailroom ui --payload --allow-changes</code>.
          </p>
        </Notice>
      )}
    </section>
  );
}

interface EditorProps {
  readonly source: string;
  readonly id: string;
  readonly stored: unknown;
}

function Editor({ source, id, stored }: EditorProps) {
  const ids = { field: useId(), hint: useId() };
  const [text, setText] = useState(() => JSON.stringify(stored, null, 2));
  const [isPlanning, setPlanning] = useState(false);
  const edited = editedData(text);
  const changes = edited.is === 'data' ? dataChanges(stored, edited.data) : [];
  return (
    <>
      <div class="field">
        <label for={ids.field}>Data of the new event (JSON)</label>
        <textarea
          id={ids.field}
          rows={Math.min(24, Math.max(6, text.split('\n').length + 1))}
          value={text}
          spellcheck={false}
          autocomplete="off"
          aria-invalid={edited.is === 'wrong'}
          aria-describedby={ids.hint}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <p id={ids.hint} class={edited.is === 'wrong' ? 'field-problem' : 'quiet-text'}>
          {hintOf(edited, changes)}
        </p>
      </div>
      <Changes changes={changes} />
      <div class="row">
        <Button
          class="primary"
          isDisabled={edited.is === 'wrong' || changes.length === 0}
          aria-describedby={ids.hint}
          onClick={() => setPlanning(true)}
        >
          Plan a resend
        </Button>
        <button type="button" onClick={() => setText(JSON.stringify(stored, null, 2))}>
          Undo all edits
        </button>
      </div>
      {isPlanning && edited.is === 'data' && (
        <PlanDialog
          request={{ kind: 'resend', source, id, data: edited.data }}
          onClose={() => setPlanning(false)}
        >
          <Changes changes={changes} />
        </PlanDialog>
      )}
    </>
  );
}

function hintOf(edited: EditedData, changes: readonly DataChange[]): string {
  if (edited.is === 'wrong') return edited.problem;
  if (changes.length === 0) return 'Equal to the stored data. Redrive the dead letter to run it unchanged.';
  return `${changes.length} ${changes.length === 1 ? 'difference' : 'differences'} from the stored data.`;
}

/** The differences from the stored data. */
function Changes({ changes }: { readonly changes: readonly DataChange[] }) {
  if (changes.length === 0) return null;
  return (
    <Table
      caption="Differences"
      columns={[
        {
          title: 'Member',
          cell: ({ path }: DataChange) => <code>{path === '' ? 'all data' : <Stored text={path} />}</code>,
        },
        { title: 'Stored', cell: ({ before }) => <Value is="removed" value={before} /> },
        { title: 'New', cell: ({ after }) => <Value is="added" value={after} /> },
      ]}
      rows={changes}
      keyOf={({ path }) => path}
      empty=""
    />
  );
}

function Value({ is, value }: { readonly is: 'added' | 'removed'; readonly value: unknown }) {
  if (value === undefined) return <span class="quiet-text">absent</span>;
  const text = <Stored text={JSON.stringify(value)} clip={400} />;
  return <code>{is === 'added' ? <ins>{text}</ins> : <del>{text}</del>}</code>;
}
