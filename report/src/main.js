/* SPDX-License-Identifier: BSD-2-Clause */
/* The page: shows the measurements or the reproduction that "verbena report" has embedded. */
import { element } from './dom.js';
import { count, date } from './format.js';
import { experiments } from './experiments.js';
import { filterBox } from './filter.js';
import { findings } from './findings.js';
import { metadata } from './metadata.js';
import { overview } from './overview.js';
import { papers } from './papers.js';

const read = id => JSON.parse(document.getElementById(id).textContent);

/* Each returns { title, id, node, parts: [{ title, id }] }, or null if it has no content. */
const SECTIONS = [overview, papers, experiments, findings, metadata];

function title(data) {
    if (data.reproduction)
        return data.reproduction.change ? 'What if: the papers on a changed adapter'
                                        : 'The papers, reproduced';
    return data.runs.length > 1 ? `${count(data.runs.length, 'run')} side by side` : 'Measurements';
}

function subtitle(data) {
    const dates = [...new Set([data.reproduction, ...data.runs].filter(Boolean).map(one => one.date))];
    return `Verbena ${data.version} · ${dates.map(date).join(' · ')}`;
}

function links(parts) {
    return element('ul', {}, parts.map(part => element('li', {},
        element('a', { href: `#${part.id}` }, part.title),
        part.parts?.length > 1 ? links(part.parts) : null)));
}

const data = read('data');
const sections = SECTIONS.flatMap(make => make(data, read('methods')) ?? []);

const nav = element('nav', { 'aria-label': 'Contents', tabindex: 0 }, links(sections));
const main = element('main', { id: 'content', tabindex: -1 }, sections.map(section =>
    element('section', { id: section.id, 'aria-labelledby': `${section.id}-title` },
            element('h2', { id: `${section.id}-title` }, section.title), section.node)));

document.title = `Verbena: ${title(data)}`;
document.getElementById('page').replaceChildren(
    element('header', {}, element('h1', {}, title(data)), element('p', { class: 'muted' }, subtitle(data)),
            filterBox(main, nav)),
    element('div', { class: 'layout' }, nav, main));
