/** A group of the sidebar. A page that ends in `/*` stands for all pages of that folder, by title. */
export interface Section {
  title: string;
  pages: readonly string[];
  /** Folder of a section that is shown in full on its own pages, and elsewhere as one link. */
  folder?: string;
}

/** A part of the site with a sidebar of its own. */
export interface Area {
  title: string;
  /** Folders and pages that show this sidebar; the first area has the rest. */
  prefixes: readonly string[];
  sections: readonly Section[];
}

/** Files of the repository outside of docs/ that are pages of the site. */
export const otherPages: Readonly<Record<string, string>> = {
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security-policy.md',
  'CODE_OF_CONDUCT.md': 'code-of-conduct.md',
  'AGENTS.md': 'contributors-guide.md',
};

/** Pages with many entries → the folder in which each `##` heading becomes a page. */
export const splitPages: Readonly<Record<string, string>> = {
  'docs/reference/tools.md': 'reference/tools',
  'docs/reference/providers.md': 'reference/providers',
  'docs/reference/options.md': 'reference/options',
  'docs/reference/models.md': 'reference/models',
  'docs/troubleshooting.md': 'errors',
};

export const areas: readonly Area[] = [
  {
    title: 'Guide',
    prefixes: ['/'],
    sections: [
      { title: 'Start', pages: ['get-started', 'guides/first-hour', 'new-user', 'hosts', 'faq'] },
      {
        title: 'Guides',
        pages: [
          'guides/review-before-commit',
          'guides/panel',
          'guides/long-refactoring',
          'guides/local-models',
          'guides/team-daemon',
          'guides/redis',
          'recipes/ask-many-models',
          'debug-conversation',
        ],
      },
      {
        title: 'Concepts',
        pages: [
          'threads',
          'concepts/prompts-and-caches',
          'concepts/routing',
          'concepts/budgets',
          'concepts/masking',
          'models',
          'costs',
        ],
      },
      { title: 'Use', pages: ['tools', 'command-line', 'agent', 'clis', 'library', 'dashboard'] },
      {
        title: 'Operate',
        pages: [
          'packages',
          'platforms',
          'daemon',
          'deploy',
          'observability',
          'reliability',
          'security',
          'troubleshooting',
        ],
      },
      { title: 'About', pages: ['comparison', 'changelog', 'security-policy'] },
    ],
  },
  {
    title: 'Reference',
    prefixes: ['/reference/', '/frame-protocol'],
    sections: [
      { title: 'Tools', pages: ['reference/tools', 'reference/tools/*'], folder: 'reference/tools' },
      { title: 'Options', pages: ['reference/options', 'reference/options/*'], folder: 'reference/options' },
      { title: 'Providers', pages: ['reference/providers', 'reference/providers/*'], folder: 'reference/providers' },
      { title: 'Models', pages: ['reference/models', 'reference/models/*'], folder: 'reference/models' },
      { title: 'Hosts', pages: ['hosts/*'], folder: 'hosts' },
      { title: 'Errors', pages: ['errors/*'], folder: 'errors' },
      { title: 'Programs', pages: ['reference/library', 'frame-protocol'] },
    ],
  },
  {
    title: 'Contribute',
    prefixes: ['/contributing', '/contributors-guide', '/code-of-conduct', '/architecture', '/recipes/add-'],
    sections: [
      { title: 'Contribute', pages: ['contributing', 'contributors-guide', 'code-of-conduct', 'architecture'] },
      {
        title: 'Recipes',
        pages: ['recipes/add-a-tool', 'recipes/add-a-provider', 'recipes/add-a-store', 'recipes/add-an-option'],
      },
      { title: 'Decisions', pages: ['decisions/*'], folder: 'decisions' },
    ],
  },
];
