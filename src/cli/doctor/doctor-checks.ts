/** One thing that was looked at. */
export interface Finding {
  /** `note`: a fact; `warn`: works, but not as it could; `fail`: something needed is broken. */
  state: 'ok' | 'note' | 'warn' | 'fail';
  /** What was looked at, e.g. `data folder`. */
  what: string;
  text: string;
  /** What to do now. */
  next?: string;
}
