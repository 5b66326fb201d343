// The figures of README.md and its chart, from the tables of a whole run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toMarkdown } from './harness.mjs';

const CHART = { width: 640, row: 22, label: 250, value: 130 };

const FIGURES = '## Figures\n';

/** This folder's README with these figures. `tables`: `{ title, rows }` in the order of their parts. */
export function withFigures(readme, tables, machine) {
  const [text] = readme.split(FIGURES);
  const sections = tables.map(({ title, rows }) => `### ${title}\n\n${toMarkdown(rows)}`);
  return `${text}${FIGURES}
Less is better. A cell is a median, with the least and the most of all rounds in brackets. \`/ X\` is the ratio to X in the same
round. The hand-written recipe keeps a token in a variable until it expires; the @nestjs/axios recipe has an \`https.Agent\` and an interceptor.
Measured on ${machine}, with ${versions()}.

![CPU of a call: the ratios of the last table](calls.svg)

${sections.join('\n\n')}
`;
}

function versions() {
  const { devDependencies } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
  const ofRepository = ['axios', '@nestjs/axios', '@nestjs/core'].map((name) => {
    const manifest = join(import.meta.dirname, '..', '..', 'node_modules', name, 'package.json');
    return [name, JSON.parse(readFileSync(manifest, 'utf8')).version];
  });
  return [...ofRepository, ...Object.entries(devDependencies)]
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

/** Bars for one column of a table, with a line from the least to the most. */
export function barChart({ title, rows }, column) {
  const bars = rows.map((row) => ({ name: row.contender, text: row[column], ...parseSpread(row[column]) }));
  const longest = Math.max(...bars.map(({ most }) => most));
  const scale = (value) => Math.round((value / longest) * (CHART.width - CHART.label - CHART.value));
  const height = (bars.length + 2) * CHART.row;
  const middle = CHART.row / 2;
  const drawn = bars.map(({ name, text, median, least, most }, i) => {
    const isOurs = i === 0;
    return `<g transform="translate(0 ${(i + 1.5) * CHART.row})">
<text x="${CHART.label - 8}" y="${middle + 4}" text-anchor="end"${isOurs ? ' font-weight="bold"' : ''}>${escaped(name)}</text>
<rect x="${CHART.label}" y="3" width="${Math.max(1, scale(median))}" height="${CHART.row - 6}" fill="${isOurs ? '#d6336c' : '#868e96'}"/>
<path d="M${CHART.label + scale(least)} ${middle}H${CHART.label + scale(most)}" stroke="#f08c00" stroke-width="2"/>
<text x="${CHART.label + scale(most) + 8}" y="${middle + 4}">${escaped(text)}</text>
</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${CHART.width} ${height}" role="img" font-family="sans-serif" font-size="12" fill="#868e96">
<title>${escaped(`${title}, ${column}`)}</title>
<text x="8" y="${CHART.row - 6}" font-size="13">${escaped(`CPU of a call ${column}: median, least and most; less is better`)}</text>
${drawn.join('\n')}
</svg>
`;
}

function parseSpread(text) {
  const [median, least = median, most = median] = text.match(/\d+(\.\d+)?/g).map(Number);
  return { median, least, most };
}

function escaped(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
}
