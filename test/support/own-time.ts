const sum = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;

/**
 * Milliseconds of processor time that this thread has used so far. What a piece of work needs of it is the same on a crowded
 * machine, or one that was stopped meanwhile: tests that something is no slower than its length measure with this.
 */
export function ownTime(): number {
  return sum(process.threadCpuUsage());
}

/** The same with all threads of this process, those that read files for it among them. */
export function processTime(): number {
  return sum(process.cpuUsage());
}
