import { render } from 'preact';
import { App } from './frame/app.tsx';
import { RunPanel } from './screens/run-panel.tsx';
import { SCREENS } from './screens.ts';

render(<App screens={SCREENS} slots={[RunPanel]} />, document.body);
