import { roughly } from './format.ts';
import { Icon } from './icon.tsx';
import { type Connection, useMailroom, useNow } from './mailroom.ts';

/** Live data older than this is stale: five of its intervals. */
const STALE_MS = 10_000;

/** The place, what may be changed and how old the data is: on every screen. */
export function Band() {
  const { info } = useMailroom();
  const { stack, region, account, isLocal, allowsChanges, isDemo } = info;
  return (
    <section class={`band ${isLocal ? 'is-local' : 'is-aws'}`} aria-label="Environment">
      <strong class="place">{isDemo ? 'Demo' : isLocal ? 'Local' : 'AWS'}</strong>
      <dl>
        <div>
          <dt>Stack</dt>
          <dd>
            <strong>{stack}</strong>
          </dd>
        </div>
        {!isLocal && (
          <div>
            <dt>Account</dt>
            <dd>{account}</dd>
          </div>
        )}
        <div>
          <dt>Region</dt>
          <dd>{region}</dd>
        </div>
        <div>
          <dt>Changes</dt>
          <dd class={allowsChanges ? 'allowed' : undefined}>
            <Icon name={allowsChanges ? 'edit' : 'lock'} />
            {allowsChanges ? 'Changes allowed' : 'Read-only'}
          </dd>
        </div>
        <div class="far">
          <dt>Data</dt>
          <dd>
            <Age />
          </dd>
        </div>
      </dl>
    </section>
  );
}

const WORDS: Readonly<Record<Connection, string>> = {
  connecting: 'Connecting',
  open: 'Live',
  paused: 'Paused',
  lost: 'Disconnected',
};

/** The age of the live data. Only a change of the connection is announced, not every second. */
function Age() {
  const { connection, flow } = useMailroom();
  const now = useNow();
  const ageMs = flow === null ? null : Math.max(0, now - flow.at);
  const isStale = connection === 'lost' || (ageMs !== null && ageMs > STALE_MS);
  const word = connection === 'open' && isStale ? 'Stale' : WORDS[connection];
  return (
    <span class={`age ${isStale ? 'is-stale' : ''}`}>
      <Icon name={isStale ? 'look' : connection === 'open' ? 'ok' : 'busy'} />
      <span role="status">{word}</span>
      {ageMs !== null && <span>{`${roughly(ageMs)} ago`}</span>}
    </span>
  );
}
