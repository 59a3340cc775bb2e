import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type LaunchOptions } from 'playwright-core';
import { localFile } from '../../../localstack/workspace.ts';

const NO_BROWSER =
  'There is no browser for these tests: @sparticuz/chromium runs on Linux x64 only. Install Google Chrome, or set CHROME_PATH to a ' +
  'Chrome or Chromium.';

/**
 * Launches the Chrome at `CHROME_PATH`, else the Chromium of the npm package on Linux x64, else the Chrome of this machine.
 *
 * @param more - further arguments of the browser
 * @returns `undefined` if there is none; on CI that is an error
 */
export async function launchBrowser(more: readonly string[] = []): Promise<Browser | undefined> {
  try {
    return await chromium.launch(await launchOptions(more));
  } catch (error) {
    if (process.env.CI || process.env.CHROME_PATH || isPackaged()) throw error;
    console.warn(NO_BROWSER);
    return undefined;
  }
}

function isPackaged(): boolean {
  return process.platform === 'linux' && process.arch === 'x64';
}

async function launchOptions(more: readonly string[]): Promise<LaunchOptions> {
  const args = ['--disable-gpu', '--font-render-hinting=none', ...more];
  const { CHROME_PATH } = process.env;
  if (CHROME_PATH) return { executablePath: CHROME_PATH, args };
  if (!isPackaged()) return { channel: 'chrome', args };
  const dir = await unpackedChromium();
  return {
    executablePath: join(dir, 'chromium'),
    // Its sandbox needs a setuid helper, which the package does not have. It opens the pages of this test only.
    args: [...args, '--no-sandbox', '--no-zygote'],
    env: {
      ...process.env,
      FONTCONFIG_FILE: join(dir, 'fonts.conf'),
      LD_LIBRARY_PATH: join(dir, 'al2023', 'lib'),
    },
  };
}

/** The package's font for text, and this machine's for what it lacks: a fixed width, symbols. */
function fontsConf(dir: string): string {
  const first = (family: string, font: string) =>
    `<alias binding="same"><family>${family}</family><prefer><family>${font}</family></prefer></alias>`;
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(dir, 'fonts')}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${join(dir, 'fonts-cache')}</cachedir>
  ${first('sans-serif', 'Open Sans')}${first('system-ui', 'Open Sans')}${first('monospace', 'DejaVu Sans Mono')}
</fontconfig>
`;
}

/** The folder with the unpacked Chromium. Several test processes may unpack at once: each does it elsewhere and moves it here. */
async function unpackedChromium(): Promise<string> {
  const { version } = createRequire(import.meta.url)(
    join(import.meta.dirname, '../../../node_modules/@sparticuz/chromium/package.json'),
  ) as { version: string };
  const dir = localFile(`chromium-${version}`);
  if (existsSync(dir)) return dir;
  const fresh = await mkdtemp(`${dir}-`);
  const before = { ...process.env };
  // It unpacks to the temporary folder, and its system libraries only where it believes to be in Lambda.
  Object.assign(process.env, { TMPDIR: fresh, AWS_LAMBDA_JS_RUNTIME: 'nodejs20.x' });
  try {
    const { default: packaged } = await import('@sparticuz/chromium');
    await packaged.executablePath();
  } finally {
    for (const name of ['TMPDIR', 'AWS_LAMBDA_JS_RUNTIME', 'FONTCONFIG_PATH', 'LD_LIBRARY_PATH', 'HOME']) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  }
  await writeFile(join(fresh, 'fonts.conf'), fontsConf(dir));
  try {
    await rename(fresh, dir);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    if (!existsSync(dir)) throw error;
  }
  return dir;
}
