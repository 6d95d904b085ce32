/* Makes the template of the report, one file that needs nothing else:
 *
 *     node build.mjs PAGE.html DOCS/experiments
 *
 * The methods of the experiments come from their pages in the documentation. */
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

/* Text that stands in a script element must not end it. */
const inScript = text => text.replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--');

async function bundle(entry) {
    const result = await build({
        entryPoints: [join(here, 'src', entry)],
        bundle: true,
        minify: true,
        write: false,
        target: 'es2020',
        legalComments: 'none',
    });
    return result.outputFiles[0].text;
}

const [output, documentation] = process.argv.slice(2);
const parts = {
    STYLE: await bundle('style.css'),
    METHODS: JSON.stringify(methods(documentation)).replace(/</g, '\\u003c'),
    SCRIPT: inScript(await bundle('main.js')),
};
const frame = readFileSync(join(here, 'src', 'page.html'), 'utf8');
writeFileSync(output, frame.replace(/@(STYLE|METHODS|SCRIPT)@/g, (_, name) => parts[name]));
