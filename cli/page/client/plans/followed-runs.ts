const followed = new Set<string>();
const started = new Set<string>();

/** Shows a run until it is dismissed: one that this tab started or saw going on. The operations log has the others. */
export function followRun(id: string): void {
  followed.add(id);
}

/** Follows a run that this tab has started: it receives the focus once it is shown. */
export function followStartedRun(id: string): void {
  followRun(id);
  started.add(id);
}

/** True if a run is shown. */
export function isFollowed(id: string): boolean {
  return followed.has(id);
}

/** True once for a run that this tab has started. */
export function takesFocus(id: string): boolean {
  return started.delete(id);
}
