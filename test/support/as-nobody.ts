/** A user other than root can be kept out of a folder; root can't. */
export async function asNobody(work: () => Promise<void>): Promise<void> {
  const { geteuid, seteuid } = process;
  if (geteuid?.() !== 0 || !seteuid) return work();
  seteuid(65_534);
  try {
    await work();
  } finally {
    seteuid(0);
  }
}
