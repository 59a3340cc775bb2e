import { useId, useState } from 'preact/hooks';
import { type DataChange, dataChanges } from '../../../changes/resend/data-changes.ts';
import { Button } from '../frame/controls.tsx';
import { many } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { PlanDialog } from '../plans/plan-dialog.tsx';
import { editedData, storedData } from './edited-data.ts';

interface EditAndSendProps {
  readonly source: string;
  readonly id: string;
  readonly body: string;
}

/** Sends the event of a dead letter with other data: as a new event that names its cause, to this consumer only. */
export function EditAndSend({ source, id, body }: EditAndSendProps) {
  const { info } = useMailroom();
  const title = useId();
  const [, consumer] = source.split(':');
  if (consumer === undefined) return null; // DEAD events and stream batches are sent to no consumer
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
        <Notice is="idle" title="The web console is read-only.">
          <p>
            To resend it here, start the web console with <code>mailroom ui --payload --allow-changes</code>.
          </p>
        </Notice>
      )}
    </section>
  );
}

function Editor({ source, id, stored }: Omit<EditAndSendProps, 'body'> & { readonly stored: unknown }) {
  const ids = { field: useId(), hint: useId() };
  const original = JSON.stringify(stored, null, 2);
  const [text, setText] = useState(original);
  const [isPlanning, setPlanning] = useState(false);
  const edited = editedData(text);
  const isWrong = edited.is === 'wrong';
  const changes = isWrong ? [] : dataChanges(stored, edited.data);
  const hint = isWrong
    ? edited.problem
    : changes.length === 0
      ? 'Equal to the stored data. Redrive the dead letter to run it unchanged.'
      : `${many(changes.length, 'difference')} from the stored data.`;
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
          aria-invalid={isWrong}
          aria-describedby={ids.hint}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <p id={ids.hint} class={isWrong ? 'field-problem' : 'quiet-text'}>
          {hint}
        </p>
      </div>
      <Differences changes={changes} />
      <div class="row">
        <Button
          class="primary"
          isDisabled={changes.length === 0}
          aria-describedby={ids.hint}
          onClick={() => setPlanning(true)}
        >
          Plan a resend
        </Button>
        <button type="button" onClick={() => setText(original)}>
          Undo all edits
        </button>
      </div>
      {isPlanning && !isWrong && (
        <PlanDialog
          request={{ kind: 'resend', source, id, data: edited.data }}
          onClose={() => setPlanning(false)}
        >
          <Differences changes={changes} />
        </PlanDialog>
      )}
    </>
  );
}

/** The differences from the stored data. */
function Differences({ changes }: { readonly changes: readonly DataChange[] }) {
  if (changes.length === 0) return null;
  return <Table caption="Differences" columns={COLUMNS} rows={changes} keyOf={({ path }) => path} empty="" />;
}

const COLUMNS: readonly Column<DataChange>[] = [
  {
    title: 'Member',
    cell: ({ path }) => <code>{path === '' ? 'all data' : <Stored text={path} />}</code>,
  },
  { title: 'Stored', cell: ({ before }) => <Value as="del" value={before} /> },
  { title: 'New', cell: ({ after }) => <Value as="ins" value={after} /> },
];

function Value({ as: Tag, value }: { readonly as: 'del' | 'ins'; readonly value: unknown }) {
  if (value === undefined) return <span class="quiet-text">absent</span>;
  return (
    <code>
      <Tag>
        <Stored text={JSON.stringify(value)} clip={400} />
      </Tag>
    </code>
  );
}
