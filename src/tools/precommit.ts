import { z } from 'zod';
import { inSteps, reviewActions, severity, wordsOf, workflowFields } from '../calls/fields.ts';
import type { ChangedFile, Evidence, EvidencePiece, RepositoryChanges, WorkflowProgress } from '../calls/tool.ts';
import { defineTool } from '../calls/tool.ts';
import { type JsonObject, jsonOf } from '../core/json.ts';
import { printablePath } from '../core/text.ts';

const role = `You are the last reviewer before a commit. You were given the changes themselves (patches, as git tells them) and what the caller found in them. Judge the changes and what they touch, not the rest of the project.

First work out what the change is meant to do, from the task and the patches; for a fix, whether it removes the cause or hides the symptom. Then go through each patch:
- trace it: ordinary input, boundaries, errors, concurrent use, what happens half-way;
- follow what it changes to all that use it: callers, stored data, settings, interfaces, other platforms;
- security: input that is now trusted, rights no longer checked, secrets, injection, unsafe defaults;
- performance where it will be felt; resources that are not released;
- what such changes get wrong: new code that nothing calls, a case added in one place of three, a dependency that is not declared, something removed that is still needed, work beyond the task, leftovers of debugging;
- documentation and tests that should have changed too. Do not ask for tests where the project has none, unless the risk is high.

Placeholders like [masked:…] stand for secrets. A change that adds one must not be committed.

${severity.scale}
A secret, and a build that breaks, are CRITICAL too.

Answer in Markdown:
1. **Repositories**: for each its path, how many files changed, and the change in one sentence.
2. **Issues**, CRITICAL first, in this form: \`[SEVERITY] file:line – what is wrong\`, then what happens because of it, then the fix. At most 15; group those that repeat.
3. **Where I differ from the caller.**
4. **Before the commit**: what must be done; then what is good and should stay.
End with a separate line, and nothing behind it: \`RECOMMENDATION: GO\` when it can be committed as it is, \`RECOMMENDATION: NO-GO\` otherwise.

Name what you could not see. Only if you cannot give a single supported finding without it, answer instead with this JSON object alone: {"status": "files_required_to_continue", "mandatory_instructions": "what you need it for", "files_needed": ["path"]}`;

const { confidence: _confidence, use_assistant_model: _expert, ...stepByStep } = workflowFields;
const own = {
  path: z.string().describe('Repository, or a parent of several').optional(),
  compare_to: z.string().describe('Branch, tag or commit').optional(),
  include_staged: z.boolean().optional(),
  include_unstaged: z.boolean().optional(),
  focus_on: z.string().optional(),
  severity_filter: severity.filter,
  precommit_type: z.enum(['external', 'internal']).optional(),
};

type Settings = Partial<z.output<z.ZodObject<typeof own>>>;

export const precommit = defineTool({
  name: 'precommit',
  title: 'Validate changes',
  description: 'Validate git changes before a commit: reads the diff, flags secrets; an expert says go or no-go.',
  toolset: 'code',
  ...inSteps({ ...stepByStep, ...own }, { review_type: 'focus_on' }),
  mode: {
    kind: 'workflow',
    words: wordsOf('precommit', 'validation', {
      skipped: {
        status: 'validation_complete_ready_for_commit',
        reason: 'skipped_due_to_internal_analysis_type',
        because: 'The validation is internal, as you asked',
      },
    }),
    asks: 'Check the changes before they are committed.',
    neededAtFirst: ['path'],
    settings: Object.keys(own),
    certain: (_step, _args, { precommit_type }) => precommit_type === 'internal',
    counters: (_step, { issuesFound, settings }) => ({
      issues_identified: issuesFound.length,
      precommit_type: settings.precommit_type ?? 'external',
    }),
    brief: ({ path, compare_to, focus_on, severity_filter, ...included }) => [
      path && `Path: ${path}`,
      compare_to
        ? `Compared with: ${compare_to}`
        : `Staged changes: ${includes('staged', included) ? 'included' : 'left out'}; unstaged: ${includes('unstaged', included) ? 'included' : 'left out'}`,
      focus_on && `Focus on: ${focus_on}`,
      severity.lowest(severity_filter, 'issues'),
    ],
    requiredActions: reviewActions({
      first: [
        'Read every change in full (git diff --cached, git diff, the new files) and say what it is meant to do',
        'Check that all of it belongs to this commit, and that nothing of the task is missing',
        'Look into each of "hints" and of "issues_found"',
      ],
      // A short pass is enough.
      again: [
        'Go through the changes once more for what was not spoken of in this thread',
        'Sum up what you found, then set next_step_required to false',
      ],
      second: [
        'Read the changed files around the changes, and all users of what changed',
        'Run the tests and the checks of the project, and record how they ended',
      ],
      last: [
        'Check that every issue has a severity, file and line, and a fix that can be carried out',
        'Check that tests, documentation and settings go with the change, and that the tests pass',
        'Set next_step_required to false',
      ],
    }),
    keys: ({ progress }) => ownIssues(progress),
    async evidence({ path = '.', compare_to: compareTo, ...included }, { git, root, scope, signal }) {
      const [staged, unstaged] = [includes('staged', included), includes('unstaged', included)];
      const { repositories, notes } = await git.changes({ path, root, compareTo, staged, unstaged, scope, signal });
      const isAll = repositories.every(each => each.files.length + each.conflicted.length + each.notes.length === 0);
      const nothing = isAll && notes.length === 0 ? nothingIn(staged, unstaged, compareTo) : undefined;
      return { ...evidenceOf(repositories, notes), nothing };
    },
    /** What the expert says of the caller's issues counts more than the caller's rating. */
    verdict({ progress, evidence }, answer) {
      const word = [...(answer ?? '').matchAll(/RECOMMENDATION:\W*(NO[\W_]?GO|GO)\b/gi)].at(-1)?.[1];
      const grave = progress.issuesFound.filter(
        ({ severity, found_by }) =>
          /^(critical|high)$/i.test(String(severity)) && (found_by === 'precommit' || word === undefined),
      );
      const reasons = [
        ...(evidence?.document.files_changed === 0 ? ['There is nothing to commit.'] : []),
        ...grave.slice(0, 20).map(({ description }) => String(description ?? 'An issue without a description')),
        ...(word !== undefined && /^no/i.test(word) ? ['The expert recommends not to commit.'] : []),
        ...(answer !== undefined && word === undefined
          ? ['The expert gave no recommendation: read its answer first.']
          : []),
      ];
      if (reasons.length === 0) return { recommendation: 'go' };
      return { recommendation: 'no-go', recommendation_reasons: reasons };
    },
    expert: { role, json: false, after: 'Fix what prevents a GO, then validate the changes again.' },
  },
});

/** Hosts that fill in every field send false for both: that leaves out neither. */
function includes(area: 'staged' | 'unstaged', { include_staged, include_unstaged }: Settings): boolean {
  const isWanted = area === 'staged' ? include_staged : include_unstaged;
  return isWanted !== false || include_staged === include_unstaged;
}

function nothingIn(staged: boolean, unstaged: boolean, compareTo?: string): string {
  if (compareTo !== undefined)
    return `There is nothing to review: nothing differs from ${JSON.stringify(printablePath(compareTo))}. Set compare_to to another branch, tag or commit, or path to another repository, then send step 1 again.`;
  const what =
    staged && unstaged ? 'staged, changed or new' : staged ? 'staged' : 'changed or new besides what is staged';
  const other = staged && unstaged ? '' : ' Leave out include_staged and include_unstaged to review both.';
  return `There is nothing to review: no file is ${what}.${other} To review commits, set compare_to to the branch, tag or commit before them; otherwise set path to another repository. Then send step 1 again.`;
}

const maxListed = 100;

/** What the tool found by itself, at every step: the caller can't look into what only counts. */
function ownIssues({ issuesFound }: WorkflowProgress): JsonObject {
  const own = issuesFound.filter(({ found_by }) => found_by === 'precommit');
  return own.length === 0 ? {} : { issues_found: own.slice(0, maxListed).map(issue => jsonOf(issue)) };
}

function evidenceOf(repositories: readonly RepositoryChanges[], notes: readonly string[]): Evidence {
  const several = repositories.length > 1;
  const changes = repositories.flatMap(({ path, files }) =>
    files.map(file => ({ file, name: printablePath(several ? `${path}/${file.path}` : file.path) })),
  );
  const conflicts = repositories.flatMap(({ path, conflicted }) => conflicted.map(file => ({ path, file })));
  const unread = repositories.flatMap(({ path, notes: own }) => own.map(note => `${printablePath(path)}: ${note}`));
  const issues = [
    ...changes.flatMap(({ file, name }) => issuesOf(file, name)),
    ...conflicts.map(({ path, file }) => ({
      severity: 'critical',
      description: `${printablePath(several ? `${path}/${file}` : file)} has conflicts of a merge that are not resolved`,
    })),
  ];
  const hints = changes.length === 0 ? ['There is nothing to commit.'] : missingCompany(repositories);
  return {
    document: {
      repositories: repositories.map(repositoryDocument),
      files_changed: changes.length,
      ...(hints.length > 0 && { hints }),
      ...(notes.length > 0 && { notes: [...notes] }),
    },
    // A file that is staged and changed again has an issue once.
    issues: [...new Map(issues.map(issue => [issue.description, issue])).values()],
    turn: repositories.map(
      ({ path, branch, files }) =>
        `Changes in ${printablePath(path)} (${branch ?? 'no branch'}): ${files.slice(0, 30).map(oneLine).join('; ') || 'none'}${files.length > 30 ? '; …' : ''}`,
    ),
    forExpert: [
      { title: 'changed files', text: changes.map(({ file, name }) => `${name}: ${oneLine(file)}`).join('\n') },
      ...(hints.length > 0 ? [{ title: 'hints', text: hints.join('\n') }] : []),
      ...(notes.length + unread.length > 0 ? [{ title: 'not read', text: [...notes, ...unread].join('\n') }] : []),
      ...changes.flatMap(({ file, name }): EvidencePiece[] =>
        file.patch === undefined ? [] : [{ title: `${file.area} ${name}`, text: file.patch }],
      ),
    ],
  };
}

function repositoryDocument({ files, conflicted, path, notes, ...where }: RepositoryChanges): JsonObject {
  const { branch, head, upstream, ahead, behind, comparedWith } = where;
  const count = (area: ChangedFile['area']) => files.filter(file => file.area === area).length;
  return {
    path: printablePath(path),
    ...{ branch, head: head?.slice(0, 12), upstream, ahead, behind, compared_with: comparedWith?.slice(0, 12) },
    counts: {
      ...{ staged: count('staged'), unstaged: count('unstaged'), untracked: count('untracked') },
      compared: comparedWith === undefined ? undefined : count('compared'),
      conflicted: conflicted.length,
      added_lines: sum(files.map(file => file.added)),
      removed_lines: sum(files.map(file => file.removed)),
    },
    files: files.slice(0, maxListed).map(fileDocument),
    files_not_listed: files.length > maxListed ? files.length - maxListed : undefined,
    notes: notes.length > 0 ? notes : undefined,
  };
}

const fileDocument = ({ path, area, status, from, added, removed, submodule, withheld }: ChangedFile): JsonObject => ({
  ...{ path: printablePath(path), area, status, from: from && printablePath(from) },
  ...{ added, removed, submodule: submodule || undefined, not_shown: withheld },
});

const sum = (numbers: readonly (number | undefined)[]): number =>
  numbers.reduce<number>((total, number = 0) => total + number, 0);

function oneLine(file: ChangedFile): string {
  const lines = file.added === undefined ? '' : ` +${file.added} -${file.removed ?? 0}`;
  const from = file.from === undefined ? '' : ` from ${printablePath(file.from)}`;
  const hidden = file.withheld === undefined ? '' : ` (not shown: ${file.withheld})`;
  return `${file.area} ${file.status} ${printablePath(file.path)}${from}${lines}${hidden}`;
}

function issuesOf(file: ChangedFile, name: string): Record<string, unknown>[] {
  const secrets = file.secrets.map(({ kind, line }) => ({
    severity: 'critical',
    location: `${name}:${line}`,
    kind,
    description: `${name}:${line} adds a secret (${kind.replaceAll('_', ' ')}): take it out, and revoke it if it was ever pushed`,
  }));
  if (!file.secretFile || file.status === 'deleted') return secrets;
  const severity = file.area === 'untracked' ? 'high' : 'critical';
  return [
    ...secrets,
    { severity, description: `${name} holds credentials, by its name: keep it out, ignore it in git` },
  ];
}

const testFile = /(?:^|\/)(?:tests?|spec|__tests__|e2e)\/|[._-](?:test|spec)s?\.\w+$|(?:^|\/)test_[^/]+$/i;
const docFile = /\.(?:md|mdx|rst|adoc|txt)$|(?:^|\/)docs?\//i;
const codeFile =
  /\.(?:[cm]?[jt]sx?|vue|svelte|py|go|rs|java|kt|scala|cs|fs|c|cc|cpp|h|hpp|m|mm|swift|rb|php|pl|lua|ex|exs|erl|hs|clj|dart|sh|sql)$/i;

const missingCompany = (repositories: readonly RepositoryChanges[]): string[] =>
  repositories.flatMap(({ path, files }) => {
    const paths = files.map(file => file.path);
    if (!paths.some(name => codeFile.test(name) && !testFile.test(name))) return [];
    const where = repositories.length > 1 ? ` in ${printablePath(path)}` : '';
    return [
      ...(paths.some(name => testFile.test(name)) ? [] : [`Code changed${where}, but no test.`]),
      ...(paths.some(name => docFile.test(name)) ? [] : [`Code changed${where}, but no documentation.`]),
    ];
  });
