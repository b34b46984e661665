/** A program that tests start. */
export interface Need {
  program: string;
  /** Arguments with which it only tells that it is there. */
  probe?: readonly string[];
  /** The Debian package that brings it. */
  aptPackage: string;
  /** Why the tests want it, for whoever has to install it. */
  purpose: string;
}

export interface Machine {
  /** Runs a program to its end; true when it could be started and succeeded. */
  runs(command: string, args: readonly string[], env?: Record<string, string>): boolean;
  /** Root on a Debian: packages may be installed without asking. */
  mayInstall: boolean;
  tell(text: string): void;
}

const silent = { DEBIAN_FRONTEND: 'noninteractive' };

/** Sees to it that every need is there, installing what may be installed. Answers a sentence for each that is not. */
export function provide(needs: readonly Need[], machine: Machine): string[] {
  const isThere = (need: Need): boolean => machine.runs(need.program, need.probe ?? ['--version']);
  const missing = needs.filter(need => !isThere(need));
  if (missing.length === 0) return [];
  if (machine.mayInstall) {
    const names = missing.map(need => need.aptPackage);
    machine.tell(`installing what the tests need: ${names.join(', ')}`);
    machine.runs('apt-get', ['update', '-q'], silent);
    machine.runs('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...names], silent);
  }
  return missing
    .filter(need => !isThere(need))
    .map(
      need =>
        `The tests need "${need.program}" (${need.purpose}): install it, on Debian with "apt-get install ${need.aptPackage}".`,
    );
}
