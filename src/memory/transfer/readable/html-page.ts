import { hash } from 'node:crypto';
import { escapeHtml } from '../../../core/text.ts';

const style = `
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6570; --paper: #fff; --tint: #f3f5f7; --line: #d5dae0; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7eb; --soft: #9aa5b1; --paper: #15191d; --tint: #1e242a; --line: #39424c; --link: #7db7f5; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 56rem; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
a { color: var(--link); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
nav ol { list-style: none; padding: 0; columns: 20rem; }
nav a { display: block; text-decoration: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
article { margin-top: 1.5rem; padding: 1rem 1.25rem; border: 1px solid var(--line); border-radius: .5rem; }
article.user { background: var(--tint); }
article > p.when { margin: 0 0 .75rem; color: var(--soft); font-size: .85rem; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: .35rem; background: var(--paper); tab-size: 2; }
code { font: .875em/1.5 ui-monospace, monospace; }
details { margin-top: .75rem; }
summary { cursor: pointer; color: var(--soft); overflow-wrap: anywhere; }
img { max-width: 100%; }
@media print { details > * { display: block; } article { break-inside: avoid; } }
`;

/** The styles are let in by their hash, pictures by their data; nothing else, wherever the file is opened. */
const policy = `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; img-src data:; base-uri 'none'; form-action 'none'`;

/** The beginning of a page, up to and with the opening of its body. */
export function pageHead(title: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
`;
}
