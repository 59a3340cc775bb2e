import { useState } from 'preact/hooks';
import type { PlanRequest } from '../../server/protocol.ts';
import { CauseView } from '../dead-letters/cause-view.tsx';
import { DeadLetterView } from '../dead-letters/dead-letter-view.tsx';
import { useReadSources } from '../dead-letters/read-sources.ts';
import { SourcePanel, UNKNOWN_CAUSE } from '../dead-letters/source-panel.tsx';
import { Button } from '../frame/button.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice } from '../frame/notice.tsx';
import { type Route, routeTo } from '../frame/route.ts';
import { Stored } from '../frame/stored.tsx';
import { PlanDialog } from './plan-dialog.tsx';

/**
 * Dead letters: by source and cause, then those of a cause (`#/dead-letters/<source>?cause=…`), then one
 * (`#/dead-letters/<source>?id=…`).
 */
export function DeadLettersScreen({ route }: { readonly route: Route }) {
  const [request, setRequest] = useState<PlanRequest | null>(null);
  return (
    <>
      <Content route={route} onPlan={setRequest} />
      {request !== null && <PlanDialog request={request} onClose={() => setRequest(null)} />}
    </>
  );
}

interface ContentProps {
  readonly route: Route;
  readonly onPlan: (request: PlanRequest) => void;
}

function Content({ route: { argument: source, query }, onPlan }: ContentProps) {
  const { of, read } = useReadSources();
  const { cause, id } = query;
  if (source !== '' && id !== undefined)
    return (
      <>
        <Heading source={source} title="Dead letter" />
        <DeadLetterView key={`${source} ${id}`} source={source} id={id} onPlan={onPlan} />
      </>
    );
  if (source !== '' && cause !== undefined)
    return (
      <>
        <Heading source={source} title={cause === UNKNOWN_CAUSE ? 'Unknown cause' : cause} />
        <CauseView
          source={source}
          cause={cause}
          state={of(source)}
          onRead={() => read(source)}
          onPlan={onPlan}
        />
      </>
    );
  return <Overview only={source} onPlan={onPlan} />;
}

/** The sources with dead letters first: the others are usually empty. */
function Overview({ only, onPlan }: { readonly only: string } & Pick<ContentProps, 'onPlan'>) {
  const { info, flow } = useMailroom();
  const { of, read } = useReadSources();
  const counts = new Map((flow?.status?.deadLetterSources ?? []).map(({ source, count }) => [source, count]));
  const known = only === '' ? info.sources : info.sources.filter((source) => source === only);
  const countOf = (source: string) => of(source).result?.total ?? counts.get(source) ?? 0;
  const isEmpty =
    (flow?.status ?? null) !== null && known.length > 0 && known.every((source) => countOf(source) === 0);
  const sources = known.toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  return (
    <>
      <Heading source="" title="Dead letters" />
      <div class="row">
        <p class="quiet-text reading-hint">
          Dead letters are read only on request, because receiving one hides it from other readers for up to
          30 seconds.
        </p>
        {only !== '' && <a href={routeTo('dead-letters')}>All sources</a>}
        {sources.length > 1 && (
          <Button
            isDisabled={sources.every((source) => of(source).isReading)}
            onClick={() => {
              for (const source of sources) read(source);
            }}
          >
            Read all sources
          </Button>
        )}
      </div>
      {isEmpty && <Notice is="ok" title="No dead letters" />}
      {sources.length === 0 && <p class="empty">This Mailroom has no such dead-letter source.</p>}
      {sources.map((source) => (
        <SourcePanel
          key={source}
          source={source}
          state={of(source)}
          onRead={() => read(source)}
          onPlan={onPlan}
        />
      ))}
    </>
  );
}

/** The title, below the way back. */
function Heading({ source, title }: { readonly source: string; readonly title: string }) {
  return (
    <div>
      {source !== '' && (
        <nav aria-label="Breadcrumb" class="breadcrumb">
          <a href={routeTo('dead-letters')}>Dead letters</a>
          <span aria-hidden="true">/</span>
          <a href={routeTo('dead-letters', source)}>
            <Stored text={source} />
          </a>
        </nav>
      )}
      <h1>
        <Stored text={title} clip={240} />
      </h1>
    </div>
  );
}
