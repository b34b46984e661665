/** What a vendor answers instead of doing what was asked. */
export interface Refusal {
  status: number;
  body: unknown;
  /** The vendor's message alone, for the list of violations. */
  message: string;
}
