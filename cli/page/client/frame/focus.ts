/** The id of the element that holds the screen. */
export const MAIN = 'main';

/** Moves the focus to the screen: for a control that leaves the page with its own click. */
export function focusMain(): void {
  document.getElementById(MAIN)?.focus();
}

/** False if nothing has the focus, e.g. because the element that had it is gone. */
export function hasFocus(): boolean {
  return document.activeElement !== null && document.activeElement !== document.body;
}
