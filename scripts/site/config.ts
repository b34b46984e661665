import { renderMermaidSVG } from 'beautiful-mermaid';
import type { DefaultTheme, UserConfig } from 'vitepress';
import { slug } from '../doc-links/read-document.ts';
import { areas } from './contents.ts';

/** A diagram as it is drawn on the page, whose colors and font are in style.css: no script draws it in the browser. */
const drawn = (diagram: string): string =>
  `<div class="diagram" tabindex="0">${renderMermaidSVG(diagram, { transparent: true })
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .replace(/ style="[^"]*"/, ' role="img" aria-label="Diagram"')}</div>`;

/** How VitePress builds the pages that scripts/site.ts wrote. `DOCS_BASE` is the path below which the site will be served. */
export function siteConfig(sidebar: DefaultTheme.SidebarMulti, outDir: string): UserConfig<DefaultTheme.Config> {
  return {
    title: 'Polylogue',
    description: 'An MCP server that lets coding agents consult other models and remember what they said',
    lang: 'en-US',
    base: process.env.DOCS_BASE ?? '/',
    outDir,
    cleanUrls: true,
    lastUpdated: false,
    // A page brings only what it shows; the others are loaded when they are asked for.
    router: { prefetchLinks: false },
    markdown: {
      // Everything in angle brackets is text, as in the repository's pages, which are not Vue templates.
      html: false,
      linkify: false,
      anchor: { slugify: slug },
      theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
      config: md => {
        const { fence } = md.renderer.rules;
        md.renderer.rules.fence = (tokens, at, ...more) => {
          const { info, content } = tokens[at] ?? {};
          return info === 'mermaid' && content ? drawn(content) : (fence?.(tokens, at, ...more) ?? '');
        };
        md.core.ruler.push('braces', ({ tokens }) => {
          for (const token of tokens.flatMap(({ children }) => children ?? []))
            if (token.type === 'text') token.content = token.content.replaceAll('{{', '{\u2060{');
        });
      },
    },
    themeConfig: {
      nav: areas.map(({ title, sections }) => ({ text: title, link: `/${sections[0]?.pages[0]}` })),
      sidebar,
      outline: [2, 3],
      search: { provider: 'local', options: { detailedView: false } },
      docFooter: { prev: false, next: false },
    },
  };
}
