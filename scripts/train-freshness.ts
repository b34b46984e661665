/**
 * Trains the small classifier that tells questions about the present from others: a linear model over hashed pieces of words,
 * learnt from the sentences in scripts/data/freshness/train.txt. Run: `node scripts/train-freshness.ts [--report]`. It prints
 * what it would reach on sentences that it has not seen (each tenth is kept apart in turn) and writes the weights.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { buckets, cueCount, cuesIn, featuresOf, fileParts } from '../src/models/routing/freshness.ts';

const { values } = parseArgs({ options: { report: { type: 'boolean' } } });

interface Template {
  language: string;
  isNow: boolean;
  text: string;
}

/** What the places of a template are filled with: the same for both kinds, so that no name speaks for one of them. */
const fillings: Record<string, string[]> = {
  P: [
    'GitHub',
    'Node.js',
    'Kubernetes',
    'iPhone 18',
    'PostgreSQL',
    'Claude',
    'ChatGPT',
    'Windows 11',
    'Firefox',
    'Slack',
    'React',
    'Django',
    'Ubuntu',
    'Netflix',
    'npm',
    'Python 3.15',
    'WhatsApp',
    'Docker',
    'Steam Deck',
    'Gemini',
    'Rust',
    'Cloudflare',
  ],
  C: [
    'Berlin',
    'Paris',
    'Tokyo',
    'Madrid',
    'Istanbul',
    'Mumbai',
    'Kyiv',
    'Lisbon',
    'Seoul',
    'Cairo',
    'Hanoi',
    'Prague',
    'Chicago',
    'Zürich',
  ],
  L: ['Germany', 'France', 'Japan', 'Brasil', 'Polska', 'India', 'Canada', 'Chile', 'Norway', 'Kenya', 'Italia'],
  O: ['Apple', 'Google', 'OpenAI', 'Nvidia', 'Tesla', 'Microsoft', 'Siemens', 'Samsung', 'Boeing', 'Anthropic'],
  T: ['Real Madrid', 'FC Bayern', 'Lakers', 'Liverpool', 'Juventus', 'Galatasaray', 'Yankees', 'Ajax'],
  K: ['Python', 'JavaScript', 'Rust', 'SQL', 'Go', 'C#', 'Kotlin'],
  Y: ['2026', '2027', '2025'],
};

/** Names as some languages write them. */
const native: Record<string, Record<string, string[]>> = {
  zh: { L: ['美国', '德国', '日本', '巴西'], C: ['北京', '上海', '东京'], O: ['苹果', '谷歌', '华为'] },
  ja: { L: ['日本', 'アメリカ', 'ドイツ'], C: ['東京', '大阪', 'パリ'], O: ['トヨタ', 'ソニー', 'アップル'] },
  ko: { L: ['한국', '미국', '독일'], C: ['서울', '부산', '도쿄'], O: ['삼성', '네이버', '애플'] },
  ru: { L: ['США', 'Германии', 'Франции'], C: ['Москве', 'Берлине', 'Казани'], O: ['Яндекс', 'Сбер'] },
  uk: { L: ['США', 'Польщі', 'України'], C: ['Києві', 'Львові', 'Одесі'] },
  ar: { L: ['مصر', 'فرنسا', 'المغرب'], C: ['القاهرة', 'باريس', 'دبي'] },
  hi: { L: ['भारत', 'अमेरिका', 'नेपाल'], C: ['दिल्ली', 'मुंबई', 'पटना'] },
};

const copies = 5;
const rounds = 14;
const rate = 0.6;
const decay = 1.5e-5;
const signRate = 0.15;
const signDecay = 1e-4;

/** A small generator with a seed, so that the weights are the same with each run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function readTemplates(): Template[] {
  const templates: Template[] = [];
  let language = '';
  for (const line of readFileSync(new URL('./data/freshness/train.txt', import.meta.url), 'utf8').split('\n')) {
    if (line.startsWith('# ')) language = line.slice(2).trim();
    else if (line.startsWith('+ ') || line.startsWith('- '))
      templates.push({ language, isNow: line.startsWith('+'), text: line.slice(2) });
  }
  return templates;
}

function fill({ text, language }: Template, random: () => number): string {
  const pick = (list: string[]) => list[Math.floor(random() * list.length)] ?? '';
  const filled = text.replace(/\{([A-Z])\}/g, (_, slot: string) => {
    const own = native[language]?.[slot];
    return pick((own && random() < 0.6 ? own : fillings[slot]) ?? []);
  });
  return random() < 0.3 ? filled.replace(/[?？؟¿.!]/g, '') : filled;
}

interface Example {
  features: number[];
  signs: number[];
  isNow: boolean;
}

interface Weights {
  bias: number;
  of: Float64Array;
  signs: Float64Array;
}

function examplesOf(templates: Template[], random: () => number): Example[] {
  return templates.flatMap(template =>
    Array.from({ length: template.text.includes('{') ? copies : 3 }, () => ({
      isNow: template.isNow,
      ...seen(fill(template, random)),
    })),
  );
}

const seen = (text: string) => ({ features: [...featuresOf(text)], signs: cuesIn(text) });

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

function predict({ bias, of, signs }: Weights, { features, signs: shown }: Omit<Example, 'isNow'>): number {
  let sum = 0;
  let told = bias;
  for (const sign of shown) told += signs[sign] ?? 0;
  for (const feature of features) sum += of[feature] ?? 0;
  return sigmoid(told + sum / Math.sqrt(features.length));
}

function train(examples: Example[], random: () => number): Weights {
  const weights: Weights = { bias: 0, of: new Float64Array(buckets), signs: new Float64Array(cueCount) };
  for (let round = 0; round < rounds; round++) {
    const step = rate / (1 + round * 0.3);
    for (let count = 0; count < examples.length; count++) {
      const example = examples[Math.floor(random() * examples.length)];
      if (!example) continue;
      const { features, signs: shown, isNow } = example;
      const error = (isNow ? 1 : 0) - predict(weights, example);
      const change = (step * error * 4) / Math.sqrt(features.length);
      weights.bias += step * error * 0.05;
      for (const sign of shown)
        weights.signs[sign] = (weights.signs[sign] ?? 0) * (1 - signDecay) + step * error * signRate;
      for (const feature of features) weights.of[feature] = (weights.of[feature] ?? 0) * (1 - decay) + change;
    }
  }
  return weights;
}

/** Recall and precision by language on templates that were kept apart, a tenth at a time. */
function report(templates: Template[]): void {
  const counts = new Map<string, { hit: number; missed: number; wrong: number }>();
  const wrong: string[] = [];
  for (let fold = 0; fold < 10; fold++) {
    const random = randomFrom(fold + 1);
    const weights = train(
      examplesOf(
        templates.filter((_, at) => at % 10 !== fold),
        random,
      ),
      random,
    );
    for (const template of templates.filter((_, at) => at % 10 === fold)) {
      const { language, isNow, text } = template;
      const count = counts.get(language) ?? { hit: 0, missed: 0, wrong: 0 };
      counts.set(language, count);
      const p = predict(weights, seen(fill(template, random)));
      if (p >= 0.5 && isNow) count.hit += 1;
      else if (isNow) count.missed += 1;
      else if (p >= 0.5) count.wrong += 1;
      if (p >= 0.5 !== isNow) wrong.push(`${language} ${p.toFixed(2)} ${isNow ? '+' : '-'} ${text}`);
    }
  }
  for (const [language, { hit, missed, wrong: taken }] of counts)
    process.stdout.write(
      `${language}  recall ${(hit / (hit + missed)).toFixed(2)}  precision ${(hit / (hit + taken)).toFixed(2)}\n`,
    );
  process.stdout.write(`${wrong.join('\n')}\n`);
}

const templates = readTemplates();
if (values.report) report(templates);
const random = randomFrom(7);
const { bias, of, signs: told } = train(examplesOf(templates, random), random);
const scale = of.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0) / 127;
const data = Buffer.alloc(fileParts.head + cueCount * fileParts.sign + buckets);
data.writeFloatLE(scale, 0);
data.writeFloatLE(bias, 4);
for (const [at, weight] of told.entries()) data.writeFloatLE(weight, fileParts.head + at * fileParts.sign);
for (const [at, weight] of of.entries())
  data.writeInt8(Math.round(weight / scale), fileParts.head + cueCount * fileParts.sign + at);
writeFileSync(new URL('../src/models/routing/freshness.gen.bin', import.meta.url), data);
process.stdout.write(
  `${templates.length} sentences, ${of.filter(weight => weight !== 0).length} of ${buckets} buckets\n`,
);
