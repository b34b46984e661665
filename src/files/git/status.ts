/** What `git status --porcelain=v2 --branch -z` says. */
export interface GitStatus {
  /** Absent when no branch is checked out. */
  branch?: string;
  /** Absent while there are no commits. */
  head?: string;
  upstream?: string;
  /** Commits that only this side, or only the upstream, has. */
  ahead?: number;
  behind?: number;
  untracked: string[];
  conflicted: string[];
}

export function parseStatus(output: string): GitStatus {
  const status: GitStatus = { untracked: [], conflicted: [] };
  const records = output.split('\0')[Symbol.iterator]();
  for (const record of records) {
    const [kind] = record;
    if (kind === '#') readHeader(status, record);
    else if (kind === '?') status.untracked.push(record.slice(2));
    else if (kind === 'u') status.conflicted.push(record.split(' ').slice(10).join(' '));
    // A renamed entry is followed by the name it had.
    else if (kind === '2') records.next();
  }
  return status;
}

function readHeader(status: GitStatus, record: string): void {
  const [, name = '', ...rest] = record.split(' ');
  const value = rest.join(' ');
  if (name === 'branch.oid' && value !== '(initial)') status.head = value;
  if (name === 'branch.head' && value !== '(detached)') status.branch = value;
  if (name === 'branch.upstream') status.upstream = value;
  if (name !== 'branch.ab') return;
  const [, ahead, behind] = /^\+(\d+) -(\d+)$/.exec(value) ?? [];
  status.ahead = Number(ahead ?? 0);
  status.behind = Number(behind ?? 0);
}
