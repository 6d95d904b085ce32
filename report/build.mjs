/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the report template, a self-contained HTML file:
 *
 *     node build.mjs PAGE.html DOCS/experiments LICENSE
 *
 * The descriptions of the experiments' methods come from their documentation pages. */
import { build } from 'esbuild';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const SENTENCES = 2;

/* The first sentences of the paragraph that begins with "Method", as plain text. */
function method(text) {
    const paragraph = text.split(/\n\n|\n- /).find(part => part.startsWith('**Method.**'));
    if (!paragraph)
        return null;
    const plain = paragraph.replace('**Method.**', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replace(/[*`]/g, '').replace(/\s+/g, ' ').trim();
    return plain.split(/(?<=[.:])\s+(?=[A-Z])/).slice(0, SENTENCES).join(' ').replace(/:$/, '.');
}

function methods(directory) {
    const entries = readdirSync(directory)
        .filter(name => name.endsWith('.md'))
        .sort()
        .map(name => [name.slice(0, -3), method(readFileSync(join(directory, name), 'utf8'))]);
    return Object.fromEntries(entries.filter(([, text]) => text));
}

/* Text inside a script element must not contain its end tag. */
const inScript = text => text.replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--');

/* The names of the npm packages that are part of the bundle. */
function packagesIn(metafile) {
    const inputs = Object.values(metafile.outputs).flatMap(output => Object.entries(output.inputs));
    return inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0)
        .map(([path]) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1])
        .filter(Boolean);
}

const escaped = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

const entry = (title, path) =>
    `<h3>${escaped(title)}</h3>\n<pre>${escaped(readFileSync(path, 'utf8').trim())}</pre>\n`;

/* The licence text that must accompany the package. */
function notice(name) {
    const folder = join(here, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find(one => /^(licen[cs]e|copying)(\.|$)/i.test(one));
    if (!file)
        throw new Error(`${name} ${version}: no licence file found (${license}); the page must include it`);
    return entry(`${name} ${version}`, join(folder, file));
}

const packages = new Set();

async function bundle(entry) {
    const result = await build({
        entryPoints: [join(here, 'src', entry)],
        bundle: true,
        minify: true,
        write: false,
        target: 'es2020',
        legalComments: 'none',
        metafile: true,
    });
    packagesIn(result.metafile).forEach(name => packages.add(name));
    return result.outputFiles[0].text;
}

const [output, documentation, licence] = process.argv.slice(2);
const parts = {
    STYLE: await bundle('style.css'),
    METHODS: JSON.stringify(methods(documentation)).replace(/</g, '\\u003c'),
    SCRIPT: inScript(await bundle('main.js')),
};
parts.NOTICES = entry('Verbena', licence) + [...packages].sort().map(notice).join('');
const frame = readFileSync(join(here, 'src', 'page.html'), 'utf8');
writeFileSync(output, frame.replace(/@(STYLE|METHODS|SCRIPT|NOTICES)@/g, (_, name) => parts[name]));
